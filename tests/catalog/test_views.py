"""Tab completion: what Python's own completer and IPython are offered."""

import rlcompleter

import pytest

import trnspec

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
