"""trnspec.checks.reconcile.proportions: quotients of siblings, with the figures and the arithmetic that explain them."""

import pytest

from tests.support.rules import bare, claim, put, shipped
from trnspec.checks.reconcile.proportions import proportions
from trnspec.graph.graph import Graph


def described(graph: Graph) -> dict[str, list[tuple[str, str, str]]]:
    """The quotients of each proportion: what, the value and the verdict."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for proportion in proportions(graph):
        found.setdefault(proportion.name, []).extend((s.of, str(s), s.note) for s in proportion.shares)
    return found


def cause(graph: Graph, name: str) -> str:
    return next(p.cause for p in proportions(graph) if p.name == name)


def test_hosts_are_sized_by_server() -> None:
    found = described(bare())

    assert found["vCPUs per trainium3"] == [
        ("768 of trn3-gen1-ultraserver", "12", ""), ("2304 of trn3-gen2-ultraserver", "16", ""),
    ]  # fmt: skip
    assert found["host memory per trainium3"] == [
        ("8,192 GiB of trn3-gen1-ultraserver", "128 GiB", ""), ("27,648 GiB of trn3-gen2-ultraserver", "192 GiB", ""),
    ]  # fmt: skip
    assert cause(bare(), "vCPUs per trainium3").count(" chips in a server") == 2
    assert "trn3-gen1-ultraserver has 16 chips in a server, trn3-gen2-ultraserver has 4 chips" in cause(
        bare(), "host memory per trainium3"
    )
    # Only one UltraServer of this chip, or one whose host is known: nothing differs.
    assert "vCPUs per trainium2" not in found
    assert "vCPUs per trainium3" not in described(put(bare(), "trn3-gen1-ultraserver", "stated.host.vcpus", None))


def test_network_bandwidth_of_a_chip() -> None:
    """Of servers and UltraServers of several chips, with the claims that were not accepted."""
    found = described(shipped())["network bandwidth per chip"]

    assert found == [
        ("3,200 Gbps of trn2.48xlarge", "200 Gbit/s", ""),
        ("800 Gbit/s of trn2.48xlarge", "50 Gbit/s", "rejected"),
        ("3,200 Gbps of trn2u.48xlarge", "200 Gbit/s", ""),
        ("3,200 Gbps of trn3-gen1-server", "200 Gbit/s", ""),
        ("800 Gbps of trn3-gen2-server", "200 Gbit/s", ""),
        ("3,200 Gbps of trn2-ultraserver", "50 Gbit/s", "rejected"),
        ("12,800 Gbps of trn3-gen1-ultraserver", "200 Gbit/s", ""),
        ("28,800 Gbps of trn3-gen2-ultraserver", "200 Gbit/s", ""),
    ]
    assert (
        cause(shipped(), "network bandwidth per chip")
        == "3,200 Gbps of trn2-ultraserver is one server's figure, 1 of 4"
    )


@pytest.mark.parametrize(
    ("verdict", "shown"),
    [("other-scope", False), (None, False), ("rejected", True), ("rounded", True), ("unresolved", True)],
)
def test_claims_shown_in_a_proportion(verdict: str | None, shown: bool) -> None:
    at = "spec.network.{bandwidth,storage_baseline}"
    graph = claim(shipped(), "trn2u.48xlarge", at, "1,600 Gbps", verdict=verdict, reason="Of two.")
    found = described(graph)["network bandwidth per chip"]

    assert (("1,600 Gbps of trn2u.48xlarge", "100 Gbit/s", verdict) in found) is shown
    other = claim(
        shipped(), "trn2u.48xlarge", "spec.network.storage_baseline", "1,600 Gbps", verdict="rejected", reason="-"
    )
    assert not [of for of, *_ in described(other)["network bandwidth per chip"] if of.startswith("1,600")]


NAME = "FP32 over BF16, dense"
ONE, TWO, THREE = (f"{n} of {c}" for n, c in (("45.9 TFLOPS / 183.5 TFLOPS = 0.25", "trainium1"),
                                             ("157.3 TFLOPS / 629.1 TFLOPS = 0.25", "trainium2"),
                                             ("157.3 TFLOPS / 629.1 TFLOPS = 0.25", "trainium3")))  # fmt: skip


@pytest.mark.parametrize(
    ("missing", "shares", "explained"),
    [
        ((), 3, [ONE, TWO, THREE]),
        (("tensor_peak.dense.fp32",), 3, [ONE, THREE]),
        (("tensor_peak.dense.bf16",), 3, [ONE, THREE]),
        (("tensor_peak.dense.fp32", "tensor_peak.dense.bf16"), 3, [ONE, THREE]),
        (("peak.dense.fp32",), 2, [ONE, THREE]),
        (("peak.dense.bf16",), 2, [ONE, THREE]),
    ],
)
def test_a_figure_may_be_missing(missing: tuple[str, ...], shares: int, explained: list[str]) -> None:
    """A chip has a quotient if both peaks are known, and an explanation if both rates of its tensor engines are, too."""
    graph = bare()
    for at in missing:
        graph = put(graph, "trainium2", at, None)

    assert len(described(graph)[NAME]) == shares
    assert cause(graph, NAME).partition("whose own share is ")[2].split(", ") == explained


@pytest.mark.parametrize("at", ["peak.sparse.fp8", "peak.dense.fp8", "peak.sparse.bf16", "peak.dense.bf16"])
def test_one_of_four_rates_is_missing(at: str) -> None:
    name = "sparse over dense of trainium2"

    assert described(bare())[name] == [
        ("2,563 TFLOPS / 1,299 TFLOPS for fp8 of trainium2", "1.973", ""),
        ("2,563 TFLOPS / 667 TFLOPS for bf16 of trainium2", "3.843", ""),
    ]
    assert name not in described(put(bare(), "trainium2", at, None))


def test_rates_of_one_date_are_compared() -> None:
    """The adopted ones with each other, and the superseded ones with each other."""
    verdicts = [
        {s.note for s in p.shares} for p in proportions(shipped()) if p.name == "sparse over dense of trainium2"
    ]

    assert verdicts == [{""}, {"superseded"}]
