"""The shipped catalog with those of the living plugins, for the tests of the performance engine."""

from __future__ import annotations

import functools

from trnspec_inferentia import plugin as inferentia
from trnspec_nvidia import plugin as nvidia

from trnspec.api import graph, load
from trnspec.catalog.catalog import Catalog
from trnspec.graph.graph import Graph

FOLDERS = (*map(str, nvidia.catalogs), *map(str, inferentia.catalogs))


@functools.cache
def everything() -> Graph:
    """Every chip, server and calibration that is known, whether or not the plugins are installed."""
    return graph(FOLDERS)


@functools.cache
def shipped() -> Catalog:
    """The catalog that trnspec ships."""
    return load()
