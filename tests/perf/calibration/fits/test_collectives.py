"""Fits of the protocols of a collective library: what was put in is found, chips borrow from each other, limits are kept."""

import functools

import attrs
import numpy as np
import pytest

from tests.support.engine import everything
from trnspec.api import load
from trnspec.errors import UsageError
from trnspec.perf.calibration.document import document, printed_learned
from trnspec.perf.calibration.fits.collectives import LIBRARIES, CollectiveRuns, fit_collectives
from trnspec.perf.calibration.fits.fit import Fitted
from trnspec.perf.calibration.fits.limits import COLLECTIVE
from trnspec.perf.calibration.measured.collectives import CollectiveCase, collective_cases
from trnspec.perf.collectives.library import launched, timed
from trnspec.perf.lowering.calibrated import calibrated
from trnspec.quantities.quantity import parse

TRUE = attrs.evolve(
    LIBRARIES["nccom"],
    protocols=(
        attrs.evolve(LIBRARIES["nccom"].protocols[0], call=2e-5, hop=1e-6, link=0.1),
        attrs.evolve(LIBRARIES["nccom"].protocols[1], call=3e-5, hop=3e-6, link=0.3),
        attrs.evolve(LIBRARIES["nccom"].protocols[2], call=4e-5, hop=2e-6, link=0.8),
        *LIBRARIES["nccom"].protocols[3:],
    ),
)


@functools.cache
def rows(on: str = "trn2.48xlarge") -> tuple[CollectiveCase, ...]:
    """All-reduces and all-gathers of 16 sizes, with the times of ``TRUE``."""
    table = [
        {
            "kind": "collective", "id": f"{kind} {2**i}", "hardware": on, "n_chips": str(ranks), "lnc": "2" * (on[3] > "1"),
            "collective": kind, "size_bytes": str(2**i), "time_us": "1", "framework": "nccom",
        }
        for kind in ("all_reduce", "all_gather") for ranks in (16, 32) for i in range(10, 30)
    ]  # fmt: skip
    cases = [c for c in collective_cases(everything(), table) if isinstance(c, CollectiveCase)]
    times = CollectiveRuns.of(cases, TRUE).times({})["collective"]
    return tuple(attrs.evolve(c, seconds=float(t)) for c, t in zip(cases, times, strict=True))


@functools.cache
def fitted() -> Fitted:
    (found,) = fit_collectives(rows(), "nccom")
    return found


def test_fit_recovers_known_parameters() -> None:
    result = fitted()

    assert np.abs(result.main.fit).max() < 0.05
    assert np.abs(result.main.held_out).max() < 0.1
    # Latency and rate of the largest buffers are determined by the rows.
    found, true = result.library.protocols[2], TRUE.protocols[2]
    assert found.link == pytest.approx(true.link, rel=0.05)


def test_arrays_are_timed_as_single_rows() -> None:
    """By the library, of whose protocols a row uses the fastest that it can use."""
    library = fitted().library
    for case, together in zip(rows(), CollectiveRuns.of(rows(), library).times({})["collective"], strict=True):
        every = timed(library, case.machine, case.kind, case.ranks, 1.0, case.size)
        alone = next(one.time for one in every if case.can_use(one.protocol))
        assert together == launched(library, case.launch, alone, case.size, case.machine.seconds_per_byte)


def test_parameters_stay_within_limits() -> None:
    wrong = [attrs.evolve(c, seconds=c.seconds * (20.0 if c.size < 2**20 else 0.05)) for c in rows()]
    (result,) = fit_collectives(wrong, "nccom")

    for protocol in result.library.protocols:
        for name, limit in COLLECTIVE.items():
            value = getattr(protocol, name, None)
            if value:
                assert limit.low * (1 - 1e-9) <= value <= limit.high * (1 + 1e-9), (protocol.name, name)
    assert np.abs(result.main.fit).max() > 0.5


def test_a_protocol_that_no_row_uses_stays_near_the_pooled_one() -> None:
    found, typical = fitted().library.protocols[3], LIBRARIES["nccom"].protocols[3]
    for name in ("call", "hop", "network_hop", "link", "network"):
        assert getattr(found, name) == pytest.approx(getattr(typical, name), rel=1e-9), name


def test_undetermined_parameters_are_in_the_note() -> None:
    assert "Pooled or typical, without rows of this chip: P2P, eager, synchronous, the network." == fitted().note


def test_too_few_rows_and_unknown_libraries() -> None:
    with pytest.raises(UsageError, match="too few rows of nccom"):
        fit_collectives(rows()[:5], "nccom")
    with pytest.raises(UsageError, match="no collective library is named 'mpi'"):
        fit_collectives(rows(), "mpi")


def test_a_fit_is_read_as_it_was_written(tmp_path) -> None:
    """Protocols, what the rows add to each of their parameters, and the interval of a collective by its size."""
    found = fitted()
    (tmp_path / "made.yaml").write_text(
        document(
            found, name="made", of="collectives", software="Made", source="neuron-benchmarks-2026-08", data="rows.csv",
            date="2026-11-21", schema="x.json",
        )
    )  # fmt: skip
    read = calibrated(load([str(tmp_path)]).graph, "trainium2", "collectives", "made")

    assert read.library is not None
    for one, other in zip(read.library.protocols, found.library.protocols, strict=True):
        numbers = [(x.call, x.hop, x.network_hop, x.link, x.network, x.own) for x in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], rel=5e-4)
        assert (one.name, one.algorithm, one.kinds) == (other.name, other.algorithm, other.kinds)
    own = [(x.host, x.wait, x.copies) for x in (read.library, found.library)]
    assert own[0] == pytest.approx(own[1], rel=5e-4)
    assert (read.low, read.high) == pytest.approx((found.main.low, found.main.high), rel=5e-4)
    for group in found.groups:
        for size in group.size:
            by_size = read.at({"size": size, "ranks": 16.0, "servers": 1.0}, collective="all-reduce")
            assert (by_size.low, by_size.high) == pytest.approx((group.low, group.high), rel=5e-4)
    printed = printed_learned(found)
    assert {each.name for each in found.learned} == {name for name, *_ in printed}
    for _, value, prior, each in printed:
        assert [float(parse(text)) for text in (value, prior)] == pytest.approx([each.value, each.prior], rel=5e-4)
