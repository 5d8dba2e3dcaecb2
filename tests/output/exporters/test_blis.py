"""Hardware entries of BLIS.

BLIS is written in Go and not on PyPI; what its loader asserts of an entry (sim/latency/config.go: keys, positive values,
both bandwidths or neither) is asserted here.
"""

import json

import pytest

from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog

CAT = Catalog(everything())
REQUIRED = {"TFlopsPeak", "TFlopsFP8", "BwPeakTBs", "mfuPrefill", "mfuDecode", "MemoryGiB"}
NETWORK = {"IntraNodeBwGBps", "InterNodeBwGBps"}


def entry(name: str) -> dict:
    """The entry, once it is known that the loader would take it."""
    (found,) = json.loads(CAT[name].export("blis").text).items()
    assert name == found[0]
    values = {k: v for k, v in found[1].items() if not k.startswith("_comment")}
    assert all(isinstance(v, str) for k, v in found[1].items() if k not in values)
    assert REQUIRED <= set(values) <= REQUIRED | NETWORK
    assert len(NETWORK & set(values)) in (0, 2)
    assert all(v > 0 for k, v in values.items() if k != "TFlopsFP8")
    assert values["TFlopsFP8"] >= 0
    return values


@pytest.mark.parametrize("name", [*CAT.servers, *CAT.ultraservers])
def test_the_loader_would_take_it(name) -> None:
    entry(name)


def test_the_values() -> None:
    assert {
        "TFlopsPeak": 989.4,
        "TFlopsFP8": 1978.9,
        "BwPeakTBs": 3.35,
        "mfuPrefill": 1,
        "mfuDecode": 1,
        "MemoryGiB": 80,
        "IntraNodeBwGBps": 450,
        "InterNodeBwGBps": 50,
    } == entry("p5.48xlarge")


def test_a_network_that_is_not_known_is_left_out_and_no_figure_of_it_is_listed() -> None:
    made = CAT["trn3-gen1-server"].export("blis")

    assert not NETWORK & set(entry("trn3-gen1-server"))
    (why,) = [a.says for a in made.assumptions if "BwGBps" in a.field]
    assert why.startswith("left out: IntraNodeBwGBps needs fabric.bandwidth.per_direction or fabric.bandwidth.both of")
    assert not [u for u in made.used if "BwGBps" in u.field]
