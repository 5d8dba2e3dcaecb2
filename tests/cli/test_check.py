"""``trnspec check``: a value against the catalog, with the exit status of the result."""

from __future__ import annotations

import json

import pytest

from tests.support.programs import Here


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    return Here(tmp_path, monkeypatch, capsys)


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
        page = json.loads(result.out)
        assert (page["outcome"], page["value"]) == (outcome, "46.4 TB/s")
        assert {row["source"] for row in page["rows"]} >= {"neuron-trn2-2026-08", "neuron-trainium2-2026-08"}


def test_unknown_figure_has_a_suggestion(here):
    result = here("check", "trainium2", "memory.bandwith", "3 TB/s")

    assert result.status == 2
    assert "memory.bandwidth" in result.err


def test_catalog_of_the_user(here, tmp_path):
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips" / "acme.yaml").write_text(
        "api_version: trnspec/v1\nkind: Chip\nmetadata: {name: acme, title: Acme, source: neuron-trn1-2023-02}\n"
        "spec: {peak: {dense: {bf16: 190 TFLOPS}}, memory: {capacity: 32 GiB}}\n"
    )

    assert here("check", "acme", "memory.capacity", "32 GiB", "--catalog", str(tmp_path)).status == 0
    assert here("check", "acme", "memory.capacity", "32 GB", "--catalog", str(tmp_path)).status == 1


def test_a_value_without_unit_has_a_hint(here):
    result = here("check", "trn2.48xlarge", "memory.bandwidth", "46")

    assert (2, "") == (result.status, result.out)
    assert result.err.startswith('trnspec: "46" has no unit\nhint: units of bandwidth: ')


def test_a_value_without_a_space_before_its_unit(here):
    assert here("check", "trn2.48xlarge", "memory.bandwidth", "46.4TB/s").status == 0


def test_claims_are_listed_where_nothing_is_adopted(here):
    result = here("check", "trn2.3xlarge", "network.baseline", "50 Gbps")

    assert result.status == 2
    for part in ("50.0 Gbps, unresolved", "200,000 Mbps, unresolved"):
        assert part in result.err
