"""trnspec itself, told as a plugin: it has no door that others have not."""

from __future__ import annotations

from trnspec import catalog
from trnspec.codes import CODES
from trnspec.model.chip import Chip
from trnspec.model.cluster import Cluster
from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.plugin import API, Kind, Plugin
from trnspec.rules.names import name_not_file_name
from trnspec.rules.provenance import conflict_without_verdict, decimal_memory, misplaced_claim, unsourced_figure
from trnspec.rules.sums import aggregate_mismatch

plugin = Plugin(
    name="trnspec",
    api=API,
    kinds=(
        Kind("Core", "cores", Core),
        Kind("Chip", "chips", Chip),
        Kind("Link", "links", Link),
        Kind("Server", "servers", Server),
        Kind("UltraServer", "ultraservers", UltraServer),
        Kind("Cluster", "clusters", Cluster),
        Kind("Source", "sources", Source),
    ),
    rules=(
        name_not_file_name,
        unsourced_figure,
        misplaced_claim,
        conflict_without_verdict,
        aggregate_mismatch,
        decimal_memory,
    ),
    codes=CODES,
    catalogs=(catalog.shipped(),),
)
