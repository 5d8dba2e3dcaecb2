"""Tab completion: what Python's own completer and IPython are offered."""

import rlcompleter

import pytest
from attrs import evolve, fields, frozen

import trnspec
from trnspec.catalog.catalog import Catalog
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip

CATALOG = trnspec.load()


def offered(text: str) -> set[str]:
    """What the completer of the interactive prompt offers, without brackets."""
    completer = rlcompleter.Completer({"trnspec": trnspec, "cat": CATALOG, "chip": CATALOG.chips["trainium2"]})
    found = []
    while (each := completer.complete(text, len(found))) is not None:
        found.append(each)
    return {each.rstrip("()").rpartition(".")[2] for each in found}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("trnspec.lo", {"load"}),
        ("cat.u", {"ultraservers", "unknown"}),
        ("chip.memory.", {"bandwidth", "capacity", "stacks", "technology"}),
        ("chip.peak.dense.fp", {"fp16", "fp32", "fp4", "fp6", "fp64", "fp8"}),
        ("chip.memory.capacity.so", {"source", "source_name", "source_title"}),
    ],
)
def test_attributes(text, names) -> None:
    assert offered(text) == names


@pytest.mark.parametrize(
    "kind", ["cores", "chips", "links", "servers", "ultraservers", "clusters", "models", "sources"]
)
def test_keys_of_a_kind(kind) -> None:
    """What IPython offers behind ``cat.chips["``: names and other names, and each of them is taken."""
    named = getattr(CATALOG, kind)
    keys = named._ipython_key_completions_()

    assert set(named) <= set(keys)
    assert {a for each in named.values() for a in each.aliases} <= set(keys)
    assert [k for k in keys if k not in named] == []


@frozen(kw_only=True)
class DieSpec(Chip):
    """A kind that is derived from chips, whose name is not that of its class."""


def test_a_condition_is_on_a_kind_and_those_derived_from_it() -> None:
    node = CATALOG.graph.named("trainium2")
    spec = DieSpec(**{field.name: getattr(node.spec, field.name) for field in fields(Chip)})
    die = evolve(node, kind="Die", spec=spec, metadata=evolve(node.metadata, name="die", aliases=()))
    known = Catalog(Graph({"die": die, **CATALOG.graph.nodes}))
    found = [{row.name for row in of.where("memory.capacity = 96 GiB").rows} for of in (known.chips, known.of(DieSpec))]

    assert [{"die", "trainium2"}, {"die"}] == found
