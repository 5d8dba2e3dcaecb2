"""``trnspec query``."""

import json

import trnspec

QUERY = "server where peak.dense.bf16 >= 3 PFLOPS and memory.capacity > 1 TiB"


def rows(text: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(text)["rows"]
    return found


def test_the_same_as_in_python(here) -> None:
    result = here("query", QUERY, "--format", "json")

    assert [b.name for b in trnspec.load().query(QUERY)] == [r["name"] for r in rows(result.out)]
    assert len(rows(result.out)) > 1


def test_a_text_that_no_document_has_is_noted(here) -> None:
    """With the nearest that one has; not where nothing is near, nor for a text that a document has."""
    noted = here("query", "server where region = us-est-2")
    notes = [here("query", f"server where region = {name}").out.count("note: ") for name in ("mars", "us-east-2")]

    assert [0, 0] == notes
    assert 'note: no Server has "us-est-2" at region; did you mean' in noted.out
    assert "'us-east-2'" in noted.out
    (hint,) = here("query", "server where not region = us-est-2", "--format", "json").data["hints"]
    assert "us-est-2" in hint
