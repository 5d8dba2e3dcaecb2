"""``trnspec tree``: from the UltraServer to the engines."""

import pytest

from tests.support.programs import ROOT, forked
from trnspec import load

CATALOG = load()
SYSTEMS = [d.name for d in CATALOG if d.kind in ("UltraServer", "Server", "Chip", "Core", "Cluster")]


@pytest.mark.parametrize("name", SYSTEMS)
def test_counts_multiply(here, name) -> None:
    """How many there are of a part is the product of the counts on the way to it, and that of the catalog."""
    result = here("tree", name, "--format", "csv")
    rows = result.rows
    page = here("tree", name)

    assert (result.status, page.status) == (0, 0)
    assert [line for line in page.out.splitlines() if len(line) > 80] == []
    product = {-1: 1}
    for row in rows:
        depth = int(row["depth"])
        if not row["count"].isdigit():  # not known, or a bound
            break
        product[depth] = product[depth - 1] * int(row["count"])
        assert int(row["all together"]) == product[depth]
        if row["kind"] == "Chip" and CATALOG[name].kind in ("Server", "UltraServer"):
            assert int(row["all together"]) == CATALOG[name].chip_count


def test_without_line_drawing_characters() -> None:
    text = forked("tree", "trn2.48xlarge", cwd=ROOT, path=ROOT, PYTHONIOENCODING="ascii").out

    assert "`- 16 x trainium2" in text
    assert text.isascii()
