"""Catalogs of the tests of plans."""

import pytest

import trnspec
from trnspec.catalog.catalog import Catalog


@pytest.fixture(scope="session")
def powered(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The catalog with the power of a chip."""
    overlay = tmp_path_factory.mktemp("power") / "power.yaml"
    overlay.write_text(
        "add:\n"
        "  - {api_version: trnspec/v1, kind: Source, metadata: {name: sheet, title: Sheet},"
        " spec: {publisher: Example, as_of: 2026-01, rank: vendor-chip-page, address: https://example.org/sheet}}\n"
        "  - {api_version: trnspec/v1, kind: Power, metadata: {name: trainium2-tdp, title: Power, source: sheet},"
        " spec: {of: trainium2, type: tdp, power: 450 W}}\n"
    )
    return trnspec.load().overlay(overlay)
