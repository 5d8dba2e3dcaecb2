"""``trnspec source``: the values that come from a source."""

import pytest

from trnspec import load

CATALOG = load()


def rows(here, *args: str) -> list[dict]:
    return here("source", *args, "--format", "json").data["rows"]


@pytest.mark.parametrize("name", ["neuron-trainium2-2026-08", "semianalysis-2024-12", "neuron-trn1-2023-02"])
def test_source_lists_all_dependants(here, name) -> None:
    """Its adopted figures and its claims, each with its path and verdict, are those of the catalog."""
    found = rows(here, name)
    figures = {(d.name, at) for d in CATALOG for at, f in d.figures.items() if f.source_name == name}
    claims = sorted((d.name, at, r.says, r.verdict) for d in CATALOG for at, rs in d.claims.items() for r in rs if r.source == name)  # fmt: skip
    ratios = {(r["document"], r["at"]) for r in found if r["at"].startswith("ratios.")}
    claimed = [r for r in found if r["verdict"] != "adopted" and (r["document"], r["at"]) not in ratios]

    assert figures <= {(r["document"], r["at"]) for r in found}
    assert claims == sorted((r["document"], r["at"], r["says"], r["verdict"]) for r in claimed)
    assert {r["source"] for r in found} == {name}


def test_list_of_all(here) -> None:
    found = rows(here)

    assert {(r["source"], r["date"], r["rank"]) for r in found} == {
        (s.name, s.as_of, s.rank) for s in CATALOG.sources.values()
    }
    for row in found[:: len(found) // 4]:
        mine = rows(here, row["source"])
        adopted = sum(r["verdict"] == "adopted" for r in mine)
        assert (row["adopted"], row["claims"]) == (adopted, len(mine) - adopted), row["source"]
