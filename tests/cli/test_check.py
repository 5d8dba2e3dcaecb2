"""``trnspec check``: a value against the catalog, with the exit status of the result."""

import pytest


@pytest.mark.parametrize(
    ("value", "status", "outcome"),
    [("46.4 TB/s", 0, "agrees"), ("50 TB/s", 0, "rounded"), ("2.9 TB/s", 1, "differs"), ("fast", 2, None)],
)
@pytest.mark.parametrize("format_", ["text", "json", "csv", "markdown"])
def test_status_and_formats(here, value, status, outcome, format_):
    result = here("check", "trn2.48xlarge", "memory.bandwidth", value, "--format", format_)

    assert result.status == status
    assert bool(result.err) == (status == 2)
    if format_ == "text" and outcome:
        assert result.out.startswith(f"{outcome}: ")
        assert [line for line in result.out.splitlines() if len(line) > 80] == []
    if format_ == "json" and outcome:
        page = result.data
        assert (page["outcome"], page["value"]) == (outcome, "46.4 TB/s")
        assert {row["source"] for row in page["rows"]} >= {"neuron-trn2-2026-08", "neuron-trainium2-2026-08"}
