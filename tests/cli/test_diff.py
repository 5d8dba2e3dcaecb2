"""``trnspec diff``."""

import pytest


@pytest.fixture
def copy(edited):
    """A copy of the catalog with one figure changed, and why."""
    claim = "  - {at: spec.peak.dense.bf16, says: 667 TFLOPS, source: neuron-trainium2-2026-08, verdict: rejected, reason: a | b}\n"
    edited("chips/trainium2", "claims:\n", f"claims:\n{claim}")
    return edited("chips/trainium2", "bf16: 667 TFLOPS", "bf16: 700 TFLOPS")


def test_a_folder(here, copy) -> None:
    result = here("diff", "working", copy)

    assert result.status == 1
    assert "  peak.dense.bf16: 667 TFLOPS -> 700 TFLOPS  x 1.049\n" in result.out
    assert "why  rejected: a | b\n" in result.out
    assert result.out.startswith("From the working edition to ")


def test_more_than_a_screen_is_counted_by_document(here) -> None:
    short, whole, one = (
        here("diff", "2026.11", "working", *more).out for more in ((), ("--full",), ("--name", "trainium1"))
    )

    assert len(short.splitlines()) < 60 < len(whole.splitlines())
    assert "\nDocuments added: Model " in short
    assert "\ntrainium1 " in short
    assert "--name NAME" in short
    assert "  peak.dense" not in short
    assert one.splitlines()[2] == "trainium1"
    assert set(one.splitlines()[2:]) <= set(whole.splitlines())
