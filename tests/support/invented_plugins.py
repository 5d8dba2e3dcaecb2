"""Documents of a vendor that does not exist, and a plugin with kinds that are built of parts: a rack that is derived from nothing, a pod that is an UltraServer."""

import sys
import types
from pathlib import Path

from tests.support.programs import Site, written

MODULE = '''
"""Racks and pods."""

from pathlib import Path
from typing import Annotated

from attrs import frozen

from trnspec.model.annotations import Count, Extensive
from trnspec.model.chip import Chip
from trnspec.model.fields import Capacity, Power
from trnspec.model.parts import Parts
from trnspec.model.ref import Ref
from trnspec.model.server import MemoryTotal, Server
from trnspec.model.ultraserver import ServerCount, UltraServer
from trnspec.plugins.api import API, Finding, Kind, Plugin, rule


@frozen(kw_only=True)
class TileChip(Chip):
    """A chip with a memory of its own kind.

    Attributes:
        scratch: Its scratch memory. Example: 512 MiB
        clock_domains: Its clock domains. Example: 2
    """

    scratch: Annotated[Capacity, Extensive()] | None = None
    clock_domains: Count | None = None


@frozen(kw_only=True)
class UltraServerCount:
    """Equal UltraServers of a rack.

    Attributes:
        ultraserver: The UltraServer. Example: tile-pod
        count: Their number. Example: 4
    """

    ultraserver: Ref[UltraServer]
    count: Count


@frozen(kw_only=True)
class RackTotals:
    """Published totals of a rack.

    Attributes:
        chips: Its chips. Example: 32
        memory: The memory of all chips.
    """

    chips: Count | None = None
    memory: MemoryTotal | None = None


@frozen(kw_only=True)
class Rack:
    """Servers or UltraServers in one rack.

    Attributes:
        servers: Servers that are not part of an UltraServer.
        ultraservers: UltraServers.
        cooling: The power of its cooling. Example: 2 kW
        stated: Totals as published.
    """

    servers: tuple[ServerCount, ...] = ()
    ultraservers: tuple[UltraServerCount, ...] = ()
    cooling: Annotated[Power, Extensive()] | None = None
    stated: RackTotals | None = None

    def parts(self) -> Parts[Server | UltraServer]:
        """Its servers and UltraServers."""
        servers = tuple((s.count, s.server) for s in self.servers)
        return (*servers, *((u.count, u.ultraserver) for u in self.ultraservers))


@frozen(kw_only=True)
class Hall:
    """A hall of racks.

    Attributes:
        rack: The rack. Example: tile-rack
        count: The number of racks. Example: 10
    """

    rack: Ref[Rack]
    count: Count

    def parts(self) -> Parts[Rack]:
        """Its racks."""
        return ((self.count, self.rack),)


@frozen(kw_only=True)
class Pod(UltraServer):
    """Servers whose chips are linked directly.

    Attributes:
        slices: Slices it can be divided into. Example: 4
    """

    slices: Count | None = None


@rule("TILE001", "rack-overfull", over=Rack)
def overfull(node, graph):
    """A rack of more servers than a rack has room for."""
    if sum(part.count for part in node.spec.servers) > 8:
        yield Finding(("spec", "servers"), "there are more than 8 servers")


plugin = Plugin(
    name="tile",
    api=API,
    rules=(overfull,),
    kinds=(
        Kind("TileChip", "tilechips", TileChip),
        Kind("Rack", "racks", Rack),
        Kind("Hall", "halls", Hall),
        Kind("Pod", "pods", Pod),
    ),
    catalogs=(Path(__file__).parent / "tile_catalog",),
)
'''


def _document(kind: str, name: str, spec: str) -> str:
    return (
        f"api_version: trnspec/v1\nkind: {kind}\nmetadata: {{name: {name}, title: {name}, source: tile-page}}\n{spec}\n"
    )


DOCUMENTS = {
    "sources/tile-page.yaml": "api_version: trnspec/v1\nkind: Source\nmetadata: {name: tile-page, title: Tile}\n"
    "spec: {publisher: Tile, as_of: 2026-01, dating: not-before, rank: vendor-chip-page}\n",
    "links/tile-link.yaml": _document(
        "Link", "tile-link", "spec: {connects: chips, bandwidth: {per_direction: 50 GB/s, both: 100 GB/s}}"
    ),
    "tilechips/tile-1.yaml": _document(
        "TileChip",
        "tile-1",
        "spec:\n  peak: {dense: {bf16: 400 TFLOPS}}\n  memory: {capacity: 64 GiB, bandwidth: 2 TB/s}\n"
        "  scratch: 512 MiB\n  clock_domains: 2",
    ),
    "servers/tile-server.yaml": _document(
        "Server",
        "tile-server",
        "spec:\n  chips: {chip: tile-1, count: 4}\n  host: {vcpus: 8, memory: 256 GiB}\n  network: {peak: 400 Gbps}\n"
        "  fabric: {link: tile-link, topology: {shape: ring, dimensions: [4]}, links_per_chip: 2}",
    ),
    "pods/tile-pod.yaml": _document(
        "Pod",
        "tile-pod",
        "spec:\n  servers: {server: tile-server, count: 2}\n  slices: 2\n"
        "  fabric: {link: tile-link, topology: {shape: ring, dimensions: [8]}, links_per_chip: 2}",
    ),
    # 3 servers of 4 chips and 2 pods of 8: 28 chips, 7 servers.
    "racks/tile-rack.yaml": _document(
        "Rack",
        "tile-rack",
        "spec:\n  servers: [{server: tile-server, count: 3}]\n  ultraservers: [{ultraserver: tile-pod, count: 2}]\n  cooling: 2 kW\n"
        '  stated: {chips: 28, memory: {capacity: "1,792 GiB"}}',
    ),
    # 8 servers of 4 chips.
    "racks/plain-rack.yaml": _document(
        "Rack", "plain-rack", "spec: {servers: [{server: tile-server, count: 8}], cooling: 1 kW}"
    ),
    "halls/tile-hall.yaml": _document("Hall", "tile-hall", "spec: {rack: tile-rack, count: 10}"),
}


def module(file: Path) -> types.ModuleType:
    """The module of the plugin in this process, which has it in no registry but those that a test makes."""
    made = types.ModuleType("trnspec_tile_under_test")
    made.__file__ = str(file)
    # Classes look up the names in their annotations in the module that they say they are of.
    sys.modules[made.__name__] = made
    exec(compile(MODULE, made.__file__, "exec"), made.__dict__)
    return made


def install(site: Site) -> Path:
    """Install the plugin; returns its catalog."""
    folder = site.folder / "tile_catalog"
    for name, text in DOCUMENTS.items():
        written(folder / name, text)
    site.add("tile", MODULE)
    return folder


# A chip, its source and a server of it, by a vendor that does not exist.

PAGE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: acme-page, title: Acme}
spec: {publisher: Acme, as_of: 2026-01, rank: vendor-chip-page}
"""
CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: acme-1, title: Acme 1, aliases: [acme], source: acme-page}
spec:
  peak: {dense: {bf16: 400 TFLOPS}}
  memory: {capacity: 64 GiB, bandwidth: 2 TB/s}
"""
SERVER = """\
api_version: trnspec/v1
kind: Server
metadata: {name: acme-server, title: Acme, source: acme-page}
spec:
  chips: {chip: acme-1, count: 8}
  stated: {memory: {capacity: 512 GiB}}
"""
ACME = {"sources/acme-page.yaml": PAGE, "chips/acme-1.yaml": CHIP}
