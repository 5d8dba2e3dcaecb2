"""A server with any fabric, for the tests of what draws and writes fabrics."""

from __future__ import annotations

from hypothesis import strategies as st

import trnspec

CAT = trnspec.load()

TOPOLOGIES = st.one_of(
    st.tuples(st.sampled_from(["torus", "mesh"]), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    st.tuples(
        st.sampled_from(["ring", "chain", "fully-connected"]), st.lists(st.integers(1, 12), min_size=1, max_size=1)
    ),
    st.tuples(st.just("hypercube"), st.lists(st.integers(0, 5), min_size=1, max_size=1)),
)


def with_topology(shape: str, dims: list[int]) -> trnspec.Catalog:
    """The catalog with another fabric in trn1.32xlarge."""
    count = 2 ** dims[0] if shape == "hypercube" else 1
    for size in dims if shape != "hypercube" else []:
        count *= size
    dimensions = {"dimensions": dims} if shape != "hypercube" or dims[0] else {}
    changes = {"chips.count": count, "fabric.topology": {"shape": shape, **dimensions}}
    return CAT.replace("trn1.32xlarge", changes)
