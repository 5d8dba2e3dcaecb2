"""Systems for tests: those of the catalogs, and servers of one fabric of any shape."""

import functools

import pytest
from inferentia import catalog as inferentia
from nvidia_catalog import catalog as nvidia

from trnspec.api import graph
from trnspec.perf.collectives.algorithms import plans
from trnspec.perf.collectives.groups import LinkRates
from trnspec.perf.collectives.timing import time_plan
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import Level, LoweredSystem

GIB = 2.0**30
PASSES = ("all-reduce", "all-gather", "reduce-scatter")
KINDS = (*PASSES, "all-to-all", "broadcast", "send")
NVIDIA = ("p4", "p5", "p6", "dgx", "hgx", "gb", "a100", "grand")
"""How names in the catalog of that plugin begin."""


def near(value):
    return pytest.approx(value, rel=1e-12, abs=0.0)


@functools.cache
def system(name):
    """A system of the catalog that has it."""
    from_ = inferentia if name.startswith("inf") else nvidia if name.startswith(NVIDIA) else graph
    return lower(from_(), name)


@functools.cache
def servers():
    """The names of all servers and UltraServers of the catalog and of the living plugins."""
    nodes = [node for each in (graph(), inferentia(), nvidia()) for node in each]
    return tuple(dict.fromkeys(n.metadata.name for n in nodes if n.kind in ("Server", "UltraServer")))


def on(shape, link=10.0, degree=2.0, per_chip=1.0, latency=0.0):
    """A server of one fabric whose links carry ``link``."""
    level = Level(
        name="server",
        ranks=shape.nodes * per_chip,
        rate=link * degree / per_chip,
        latency=latency,
        shape=shape,
        place="p",
    )
    inner = (Level(name="chip", ranks=per_chip, rate=1e6, place="m"),) if per_chip > 1 else ()
    return LoweredSystem(
        name="made",
        chip="chip",
        chips=float(shape.nodes),
        servers=1.0,
        ranks=shape.nodes * per_chip,
        ranks_per_chip=per_chip,
        lnc=0.0,
        rates={},
        published={},
        capacity=1.0,
        bandwidth=1.0,
        levels=(*inner, level),
    )


def timings(where, of, kind, size):
    """The time of every algorithm, fastest first; of equally fast ones the one with fewer steps."""
    found = [time_plan(plan, LinkRates(where), size) for plan in plans(where, of, kind)]
    return sorted(found, key=lambda t: (t.time, float("inf") if t.steps is None else t.steps))
