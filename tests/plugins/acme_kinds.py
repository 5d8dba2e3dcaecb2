"""A plugin that derives a kind from one of trnspec and adds another: what a new generation with its own fields is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.programs import Site

MODULE = '''
"""Chips and racks of Acme."""

from pathlib import Path

from attrs import frozen

from trnspec.model.chip import Chip
from trnspec.model.fields import Capacity, Power
from trnspec.model.annotations import Count
from trnspec.model.parts import Parts
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.plugins.api import API, Finding, Kind, Plugin, rule


@frozen(kw_only=True)
class Scratch:
    """A memory that programs manage.

    Attributes:
        capacity: How much it holds. Example: 512 MiB
    """

    capacity: Capacity


@frozen(kw_only=True)
class AcmeChip(Chip):
    """A chip of Acme.

    Attributes:
        lanes: How many lanes it has. Example: 16
        scratch: Its scratch memory.
    """

    lanes: Count
    scratch: Scratch | None = None


@frozen(kw_only=True)
class RackServers:
    """The servers of a rack.

    Attributes:
        server: Which. Example: acme-server
        count: How many. Example: 4
    """

    server: Ref[Server]
    count: Count


@frozen(kw_only=True)
class Rack:
    """A rack of servers.

    Attributes:
        servers: What it holds.
        power: What it may draw. Example: 40 kW
    """

    servers: RackServers
    power: Power | None = None

    def parts(self) -> Parts[Server]:
        """Its servers."""
        return ((self.servers.count, self.servers.server),)


@rule("ACME001", "rack-overfull", over=Rack)
def overfull(node, graph):
    """A rack of more servers than a rack has room for.

    Why:
        It is most often two racks.
    """
    if node.spec.servers.count > 8:
        yield Finding(("spec", "servers", "count"), f"{node.spec.servers.count} servers are more than 8")


plugin = Plugin(
    name="acme",
    api=API,
    kinds=(Kind("AcmeChip", "acmechips", AcmeChip), Kind("Rack", "racks", Rack)),
    rules=(overfull,),
    catalogs=(Path(__file__).parent / "acme_catalog",),
)
'''

HEAD = "api_version: trnspec/v1\n"
CHIP = (
    HEAD
    + """\
kind: AcmeChip
metadata: {name: acme-1, title: Acme 1, source: acme-page}
spec:
  peak: {dense: {bf16: 400 TFLOPS}}
  memory: {capacity: 64 GiB, bandwidth: 2 TB/s}
  lanes: 16
  scratch: {capacity: 512 MiB}
"""
)
RACK = (
    HEAD
    + """\
kind: Rack
metadata: {name: acme-rack, title: Acme rack, source: acme-page}
spec:
  servers: {server: acme-server, count: 4}
  power: 40 kW
"""
)
DOCUMENTS = {
    "sources/acme-page.yaml": HEAD
    + "kind: Source\nmetadata: {name: acme-page, title: Acme}\n"
    + "spec: {publisher: Acme, as_of: 2026-01, dating: not-before, rank: vendor-chip-page}\n",
    "acmechips/acme-1.yaml": CHIP,
    "servers/acme-server.yaml": HEAD
    + "kind: Server\nmetadata: {name: acme-server, title: Acme server, source: acme-page}\n"
    + "spec:\n  chips: {chip: acme-1, count: 8}\n  stated: {memory: {capacity: 512 GiB}}\n",
    "racks/acme-rack.yaml": RACK,
}


def install(site: Site) -> Path:
    """Install it; returns its catalog."""
    folder = site.folder / "acme_catalog"
    for name, text in DOCUMENTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    site.add("acme", MODULE)
    return folder
