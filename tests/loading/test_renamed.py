"""trnspec.loading.renamed: documents with former paths are read as those with present ones, at the author's lines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import frozen

import trnspec
from trnspec.api import registry
from trnspec.loading.pipeline import load_document
from trnspec.loading.renamed import upgrade_data
from trnspec.loading.schema.check import validator
from trnspec.loading.structure import plain
from trnspec.model.annotations import Count
from trnspec.model.document import Node
from trnspec.model.json_schema import document_schema
from trnspec.model.server import Server
from trnspec.yaml import read_text

KNOWN = registry()
OLD = Path(__file__).with_name("renamed_old.yaml").read_text("utf-8")
NEW = Path(__file__).with_name("renamed_new.yaml").read_text("utf-8")


def node_of(text: str) -> Node[Any]:
    node = load_document(read_text(text, "box.yaml"), KNOWN).node
    assert node is not None
    return node


def problems(text: str) -> list[tuple[str, int, int]]:
    found = load_document(read_text(text, "box.yaml"), KNOWN).problems
    return [(p.code, p.place.line, p.place.column) for p in found if p.place is not None]


def test_a_former_document_equals_the_present_one():
    assert plain(node_of(NEW)) == plain(node_of(OLD))
    assert [] == problems(NEW)


def test_each_former_path_is_reported_where_it_is_written():
    assert [
        ("TRN057", 8, 26), ("TRN057", 14, 5), ("TRN057", 16, 5), ("TRN057", 17, 5), ("TRN057", 18, 5),
        ("TRN057", 22, 9), ("TRN057", 25, 10), ("TRN057", 26, 10),
    ] == sorted(problems(OLD))  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("cards: 8", 'cards: "8"', ("TRN103", 17, 12)),
        ("800 Gbps", "800 GB", ("TRN112", 18, 24)),
        ("bandwidth: 384 GB/s", "bandwidth: 384", ("TRN110", 14, 16)),
        ("cards: 8", "crads: 8", ("TRN101", 17, 5)),
        ("storage: 80 Gbps", "storage: 80 Gbps\n    nics: 8", ("TRN109", 17, 5)),
        ("bandwidth: 384 GB/s", "bandwidth: {both: 384 GB/s, value: 384 GB/s}", ("TRN101", 14, 33)),
    ],
)
def test_a_mistake_at_a_former_path_is_one_error_at_its_line(old, new, expected):
    found = load_document(read_text(OLD.replace(old, new, 1), "box.yaml"), KNOWN).problems
    assert [expected] == [(p.code, p.place.line, p.place.column) for p in found if p.place and p.code != "TRN057"]
    assert [(21, 5)] * (expected[0] == "TRN109") == [(p.see.line, p.see.column) for p in found if p.see is not None]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("efa: {}", []), ("fabric: {link: neuronlink-v2, bandwidth: {}}", []), ("efa: 8", [("TRN103", 6)]),
        ("efa: null", [("TRN103", 6)]), ("efa: [8]", [("TRN103", 6)]),
        ("fabric: {link: neuronlink-v2, bandwidth: null}", [("TRN103", 6)]),
        ("fabric: {link: neuronlink-v2, bandwidth: [1 GB/s]}", [("TRN103", 6)]),
        ("efa: {cards: 8}\n  network: 5", [("TRN103", 7)]),
    ],
)  # fmt: skip
def test_forms_that_never_were(text, left):
    head = "api_version: trnspec/v1\nkind: Server\nmetadata: {name: box, title: Box}\nspec:\n"
    found = problems(f"{head}  chips: {{chip: trainium1, count: 16}}\n  {text}\n")
    assert left == [(code, line) for code, line, _ in found if code != "TRN057"]


@pytest.mark.parametrize("text", [OLD, NEW])
def test_the_schema_accepts_both_forms(text):
    assert [] == list(validator("Server", Server).iter_errors(read_text(text, "box.yaml").data))


@frozen(kw_only=True)
class Blade(Server):
    """A server that is derived from another kind.

    Attributes:
        slots: How many slots it takes. Example: 2
    """

    slots: Count | None = None


@frozen(kw_only=True)
class Astray:
    """A class whose table leads nowhere."""

    RENAMED: ClassVar[Mapping[str, str]] = {"old": "new"}


def test_a_derived_kind_inherits_the_former_paths():
    data = {**(read_text(OLD, "box.yaml").data or {}), "kind": "Blade"}
    upgraded = upgrade_data(Blade, data)

    assert [] == list(validator("Blade", Blade).iter_errors(data))
    assert (read_text(NEW, "box.yaml").data or {})["spec"] == upgraded["spec"]


def test_a_table_that_leads_nowhere_is_refused():
    with pytest.raises(TypeError, match=r"Astray.RENAMED leads to new"):
        document_schema("Astray", Astray)


def test_replace_accepts_former_paths():
    cat = trnspec.load()
    old = cat.replace("trn1.32xlarge", {"efa.cards": 4, "fabric.bandwidth": "400 GB/s"})
    new = cat.replace("trn1.32xlarge", {"network.nics": 4, "fabric.bandwidth.both": "400 GB/s"})
    gone = cat.replace("trn1.32xlarge", {"efa": None})

    assert plain(new.graph.named("trn1.32xlarge")) == plain(old.graph.named("trn1.32xlarge"))
    assert gone.graph.named("trn1.32xlarge").spec.network is None


def test_an_edition_from_before_the_rename_differs_in_no_figure_of_it():
    old, new = trnspec.load(edition="2026.11"), trnspec.load(edition="2026.11.1")
    changed = [c for c in old.diff(new).figures if c.old is not None]
    paths = {c.at for c in changed} | {c.at for c in old.diff(new).restated}

    assert not {p for p in paths if "network" in p or "fabric" in p or "efa" in p or "between_servers" in p}
    assert {"network.technology"} == {c.at for c in old.diff(new).words if c.at.startswith("network")}
