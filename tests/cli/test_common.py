"""The options that choose a catalog, the same for every command that asks."""

from __future__ import annotations

import pytest

from tests.support.programs import Here

OVERLAY = """
change:
  trainium2: {memory.capacity: 128 GiB}
add:
  - api_version: trnspec/v1
    kind: Server
    metadata: {name: mine.8xlarge, title: My own server}
    spec: {chips: {chip: trainium2, count: 8}}
"""


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "my.yaml").write_text(OVERLAY)
    return Here(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["show", "mine.8xlarge"], "1,024 GiB"),
        (["compare", "trainium2", "mine.8xlarge"], "128         1,024     8x"),
        (["list", "servers"], "mine.8xlarge"),
        (["tree", "mine.8xlarge"], "8 x trainium2: bf16 667 TFLOPS, 128 GiB"),
    ],
)
def test_overlay(here, args, text) -> None:
    """Figures, totals and documents of one's own; without the option nothing of it is left."""
    assert text in here(*args, "--overlay", "my.yaml").out
    assert text not in here(*args).out


def test_edition_beside_the_working_one(here, edited) -> None:
    """What was frozen stays, whatever is edited later."""
    assert here("edition", "freeze", "2026.12.1", "--catalog", edited()).status == 0
    edited("chips/trainium1", "bf16: 190 TFLOPS", "bf16: 201 TFLOPS")

    assert "201 TFLOPS" in here("show", "trainium1", "--catalog", "mine").out
    frozen = here("show", "trainium1", "--catalog", "mine", "--edition", "2026.12.1")
    assert (frozen.status, "201 TFLOPS" in frozen.out, "190 TFLOPS" in frozen.out) == (0, False, True)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--catalog", "nowhere"], "nowhere does not exist"),
        (["--overlay", "nowhere.yaml"], "nowhere.yaml"),
        (["--edition", "1999.01"], "1999.01"),
        (["--as-of", "soon"], "soon"),
    ],
)
def test_misuse(here, args, message) -> None:
    for command in (["show", "trainium1"], ["list"], ["source"], ["tree", "trainium1"]):
        result = here(*command, *args)

        assert (result.status, result.out) == (2, "")
        assert message in result.err
