"""The kinds of documents that trnspec itself knows, apart from its rules, which reading does not need."""

from __future__ import annotations

from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.plugin import Kind

KINDS = (
    Kind("Core", "cores", Core),
    Kind("Chip", "chips", Chip),
    Kind("Link", "links", Link),
    Kind("Server", "servers", Server),
    Kind("UltraServer", "ultraservers", UltraServer),
    Kind("Cluster", "clusters", Cluster),
    Kind("Source", "sources", Source),
)
