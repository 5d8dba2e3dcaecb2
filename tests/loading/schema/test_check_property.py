"""The generated schemas and the classes say the same: what one accepts, the other accepts, for every kind."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.schema import KINDS, Sampler, damaged, documents, normal, unplaced
from trnspec.api import registry
from trnspec.loading.forms.lists import list_problems
from trnspec.loading.pipeline import load_document
from trnspec.loading.renamed import upgrade_data
from trnspec.loading.schema.check import check
from trnspec.loading.schema.prune import prune
from trnspec.loading.structure import StructureError, plain, structure
from trnspec.model.document import Node
from trnspec.model.json_schema import document_schema
from trnspec.model.kinds import LISTS
from trnspec.plugins.api import Kind, Plugin, Registry

ROUNDED_ZERO = re.compile(r'"[~ ]*0[0.,]* ?[KMBT]"')
EACH = pytest.mark.parametrize("kind", KINDS)
KNOWN = Registry.of([*registry().plugins, Plugin(name="test", api=1, kinds=(Kind("Sampler", "samplers", Sampler),))])
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def faults(kind: str, data: Any) -> list[Any]:
    return check(kind, KINDS[kind], unplaced(data), data)


def structured(kind: str, data: Any) -> Node[Any] | None:
    try:
        return structure(kind, KINDS[kind], unplaced(data), upgrade_data(KINDS[kind], data))
    except StructureError:
        return None


@pytest.mark.slow
@EACH
@quick
@given(data=st.data())
def test_schema_documents_round_trip(kind, data):
    document = data.draw(documents(kind))
    # The pattern of a rounded count allows 0, which its minimum does not.
    assume(not ROUNDED_ZERO.search(json.dumps(document)))
    assert faults(kind, document) == []
    assert Draft202012Validator(document_schema(kind, KINDS[kind])).is_valid(document)
    node = structured(kind, document)
    assert node is not None
    again = plain(node)
    assert normal(kind, again) == normal(kind, document)
    assert faults(kind, again) == []
    assert json.loads(json.dumps(again)) == again
    second = structured(kind, again)
    assert second is not None
    assert (second.metadata, second.spec, second.claims) == (node.metadata, node.spec, node.claims)
    assert plain(second) == again


@pytest.mark.slow
@EACH
@quick
@given(data=st.data())
def test_a_damaged_document_is_reported_and_its_rest_is_sound(kind, data):
    """Schema and classes agree; no mistake is reported in the words of the classes (TRN190), none goes unsaid."""
    document = data.draw(damaged(kind))
    found = faults(kind, document)
    event("sound" if not found else "unsound")
    assert (structured(kind, document) is None) == bool(found), found
    document = upgrade_data(KINDS[kind], document)
    found = faults(kind, document)
    rest, positions = prune(KINDS[kind], document, [u.drop for u in found])
    reading = load_document(unplaced(document), KNOWN)
    of_list = list(list_problems(reading.node)) if kind in LISTS and reading.node is not None else []
    codes = {p.code for p in reading.problems if p not in of_list}
    assert codes <= {f"TRN{n}" for n in (101, 102, 103, 104, 105, 106, 107, 108, 110, 111, 112, 113)}
    assert all(p.message for p in reading.problems)
    if rest is None:
        assert codes
        return
    if document.get("api_version") == "trnspec/v1" and document.get("kind") == kind:
        assert bool(codes) == bool(found)
        assert faults(kind, rest) == []
        assert structured(kind, rest) is not None
        assert reading.node is not None
        kept = rest.get("claims", [])
        assert len(kept) == len(positions)
        assert list(positions) == sorted(set(positions))
        for claim, position in zip(kept, positions, strict=True):
            assert claim.items() <= document["claims"][position].items()
