"""The values of two documents of the catalog, from ``values.txt``; run as a program, this module writes them."""

from pathlib import Path

from attrs import asdict

from trnspec.api import graph
from trnspec.site.document_values import entry

FILE = Path(__file__).with_name("values.txt")


def values() -> str:
    """Each value on a line, without what is empty; lines of files only as whether they are known."""
    known, lines = graph(), []
    for name in ("trn1.2xlarge", "neuronlink-v2"):
        shown = entry(known, known.named(name))
        for value in (*shown.values, *shown.chosen):
            fields = {k: v for k, v in asdict(value, recurse=False).items() if v and k not in ("line", "others")}
            fields["numbers"] = " ".join(f"{float(n):.9g}" for n in value.numbers or () if n is not None)
            fields["others"] = [f"{o.says} {o.verdict} {o.source}" for o in value.others]
            lines.append(f"{name} {fields} {value.line > 0} {all(o.line > 0 for o in value.others)}\n")
    return "".join(lines)


def test_values() -> None:
    assert FILE.read_text("utf-8").splitlines() == values().splitlines()


if __name__ == "__main__":
    FILE.write_text(values(), "utf-8")
