"""Hover texts: figures, references, keys."""

import pytest

from tests.lsp.conftest import edited, session, spot_in
from trnspec.lsp.fields import described, field_at, fields_at
from trnspec.lsp.hover import hover
from trnspec.model.chip import Chip
from trnspec.model.server import Server


def text_at(words: str, offset: int = 0, old: str = "", new: str = "") -> list[str]:
    result = edited(old, new)
    spot, _ = spot_in(result, words, offset)
    return hover(spot, Chip, result.node, result.graph, session().known.units).split("\n")


def test_figure() -> None:
    """Value, interval, source, every conflicting value with its verdict, and the totals of systems."""
    lines = text_at("2.9 TB/sec")

    assert "2.9 TB/sec  (memory.bandwidth of trainium2)" in lines
    assert "  interval     [2.85, 2.95) TB/s" in lines
    assert "  source       Trainium2 Architecture, 2026-08-21 (neuron-trainium2-2026-08)" in lines
    assert "  rejected     2,400 GB/s (awesomeagents-trainium2, 2024-12)" in lines
    assert "  total        46.4 TB/s of trn2.48xlarge (16 x 2.9 TB/sec)" in lines


def test_it_is_the_text_in_the_editor() -> None:
    lines = text_at("2.3 TB/sec", old="2.9 TB/sec", new="2.3 TB/sec")

    assert "  interval     [2.25, 2.35) TB/s" in lines
    assert "  total        36.8 TB/s of trn2.48xlarge (16 x 2.3 TB/sec)" in lines


def test_figure_as_a_mapping() -> None:
    assert text_at("24 GiB") == text_at("line 93, 0x6")
    assert "24 GiB  (memory.stacks.capacity of trainium2)" in text_at("24 GiB")
    assert text_at("24 GiB")[-1] == "```"
    assert text_at("1.28 TB/sec")[-1].startswith("Both directions, by the 640 GB/s that others print of one.")
    source = text_at('neuron-driver-fca19f7, where: "v3')
    assert ("**neuron-driver-fca19f7** (Source)", True) == (source[0], any("<https://" in line for line in source))


def test_key() -> None:
    assert "Peak rate between the chip and its memory." in text_at("bandwidth: 2.9", 2)
    assert ["The figures of the document."] == text_at("spec:", 1)
    regions = field_at(Server, ("spec", "availability", "regions"))
    assert regions is not None
    assert regions == field_at(Server, ("spec", "availability", "regions", 1))
    for path in (("spec", "nothing"), ("spec", "availability", "regions"), ("spec", "other")):
        assert [] == fields_at(Server, path)


def test_invalid_document() -> None:
    result = edited("kind: Chip", "kind: Chip\nspec: {}")
    spot, _ = spot_in(result, "name: trainium2", 1)

    assert result.node is None
    assert "required" in hover(spot, Chip, None, result.graph, session().known.units)


@pytest.mark.parametrize(
    ("words", "offset", "line"),
    [
        ("spec.cores.count, says: 8", 0, "8  (cores.count of trainium2)"),
        ("neuroncore-v3", 0, "**neuroncore-v3** (Core)"),
        ("629.1 TFLOPS", 0, "  source       derived: 8 x 128 x 128 x 2 x 2.4 GHz"),
        ("dies: {value: 2", 14, "2  (dies of trainium2)"),
    ],
)
def test_claim_reference_derived_figure_and_count(words, offset, line) -> None:
    assert line in text_at(words, offset)


def test_six_units_are_listed() -> None:
    table = session().known.units
    fields = {
        len(f.units(table)): described(f, table)
        for f in (*fields_at(Chip, ("spec",)), *fields_at(Chip, ("spec", "memory")))
    }
    assert {n > 6: ", ...]" in text for n, text in sorted(fields.items())} == {False: False, True: True}
    assert {"GiB", "GB"} < {u for f in fields_at(Chip, ("spec", "memory")) for u in f.units(table)}
