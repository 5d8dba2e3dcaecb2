"""Systems for tests: those of the catalogs, and servers of one fabric of any shape."""

import functools

import pytest
from attrs import evolve
from inferentia import catalog as inferentia
from nvidia_catalog import catalog as nvidia

from tests.support.engine import system as levelled
from trnspec.api import graph
from trnspec.perf.collectives.algorithms import plans
from trnspec.perf.collectives.groups import LinkRates
from trnspec.perf.collectives.timing import time_plan
from trnspec.perf.lowering.lower import lower

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
    ranks = shape.nodes * per_chip
    inner = (("chip", per_chip, 1e6, 0.0),) if per_chip > 1 else ()
    made = levelled((*inner, ("server", ranks, link * degree / per_chip, latency)), ranks)
    *chip, level = made.levels
    return evolve(
        made, chips=float(shape.nodes), ranks_per_chip=per_chip, levels=(*chip, evolve(level, shape=shape, place="p"))
    )


def timings(where, of, kind, size):
    """The time of every algorithm, fastest first; of equally fast ones the one with fewer steps."""
    found = [time_plan(plan, LinkRates(where), size) for plan in plans(where, of, kind)]
    return sorted(found, key=lambda t: (t.time, float("inf") if t.steps is None else t.steps))
