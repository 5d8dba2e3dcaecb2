"""The values of some documents of the catalog, from ``values.txt``; run as a program, this module writes them."""

from pathlib import Path

from attrs import asdict

from tests.support.engine import everything
from trnspec.api import graph
from trnspec.site.document_values import entry

FILE = Path(__file__).with_name("values.txt")


def values() -> str:
    """Each value on a line, without what is empty, a repetition or follows from its source; lines only where unknown."""
    known, lines = graph(), []
    for name in ("trn1.2xlarge", "neuronlink-v2", "trn3-gen2-server"):
        shown = entry(known, known.named(name))
        for value in (*shown.values, *shown.chosen):
            numbers = " ".join(f"{float(n):.9g}" for n in value.numbers or () if n is not None)
            others = [f"{o.says} {o.verdict} {o.source}" for o in value.others]
            follows = {"label": value.at, "cited": value.source, "document": name, "verdict": "adopted"}
            plain = {**asdict(value, recurse=False), "numbers": numbers, "others": others}
            fields = {k: v for k, v in plain.items() if v and k not in ("line", "as_of") and follows.get(k) != v}
            placed = all(one.line > 0 for one in (value, *value.others))
            lines.append(f"{name} {fields}{'' if placed else ' without a line'}\n")
    return "".join(lines)


def test_values() -> None:
    assert FILE.read_text("utf-8").splitlines() == values().splitlines()


def test_claims_about_a_count_that_is_not_adopted_are_at_its_total() -> None:
    made = entry(everything(), everything().named("inf2.24xlarge"))

    assert [("chips", 1)] == [(value.at, len(value.others)) for value in made.totals if value.others]
    assert "chips" not in {value.at for value in made.stated}


if __name__ == "__main__":
    FILE.write_text(values(), "utf-8")
