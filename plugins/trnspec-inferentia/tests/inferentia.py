"""The catalog of this plugin, linked with the one it builds on."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from trnspec_inferentia import plugin

from trnspec.api import graph

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph

FOLDER = plugin.catalogs[0]


@functools.cache
def catalog() -> Graph:
    """The shipped catalog and that of the plugin, whether or not the plugin is installed."""
    return graph([str(FOLDER)])
