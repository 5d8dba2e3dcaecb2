"""The table "I want to add ..." of CONTRIBUTING.md: chips, figures, models and kinds are added here.

A trial copies the package, makes the change in the files that the row names and in no other, and runs the copy.
"""

import json

import pytest

from tests.support.programs import Scratch, made_as_stated
from trnspec.plugins.scaffold.writer import files


@pytest.fixture
def scratch(tmp_path) -> Scratch:
    return Scratch(tmp_path / "checkout")


def test_chip_generation(scratch) -> None:
    for name, text in files("acme", "generation").items():
        if "/catalog/" in name:
            # In the catalog, the schemas are in another folder.
            own = text.replace("../../../../schemas/", "../../schemas/v1/")
            scratch.add(f"catalog/{name.partition('/catalog/')[2]}", own)
    made_as_stated(scratch, "chip generation")

    checked = scratch.json("validate", *sorted(scratch.added))
    totals = scratch.json("query", "ultraserver where memory.capacity = 2048 GiB", "--columns", "name,peak.dense.bf16")

    assert ([], 4) == (checked["diagnostics"], checked["summary"]["files"])
    assert {"name": "acme-1-ultraserver", "peak.dense.bf16": 32 * 400 * 10**12} in totals["rows"]


def test_figure_and_source(scratch) -> None:
    """A figure with a source of its own in a document of the catalog."""
    chip = "catalog/chips/trainium1.yaml"
    source = next(text for name, text in files("acme-blog", "generation").items() if "/sources/" in name)
    source = source.replace("rank: vendor-chip-page", "rank: third-party")
    scratch.add("catalog/sources/acme-blog-data-sheet.yaml", source)
    scratch.insert(chip, "  features:\n", "  power: {value: 400 W, source: acme-blog-data-sheet}\n")
    made_as_stated(scratch, "figure, claim or source")

    assert [] == scratch.json("validate", chip, *scratch.added)["diagnostics"]
    shown = scratch.json("show", "trn1.32xlarge")["rows"]
    assert [16 * 400] == [r["value"] for r in shown if r["at"] == "power"]


MODEL = """\
# yaml-language-server: $schema=../../schemas/v1/model.schema.json
api_version: trnspec/v1
kind: Model
metadata: {name: acme-lm, title: Acme LM, source: gpt2-2019-11}
spec:
  layers: 6
  hidden: 512
  vocabulary: 32000
  context: 2048
  positions: learned
  embeddings: tied
  norm: layer
  attention: {heads: 8, kv_heads: 8, head_size: 64, bias: all}
  feed_forward: {width: 2048, form: plain, bias: all}
  parameters: {total: 36347904}
claims:
  - {at: spec.parameters.total, says: 36347904, source: keras-hub-0.32.0}
"""


@pytest.mark.slow
def test_model(scratch) -> None:
    scratch.add("catalog/models/acme-lm.yaml", MODEL)
    made_as_stated(scratch, "model")

    checked = scratch.json("validate", "catalog/models/acme-lm.yaml")
    memory = scratch.json("eval", "memory", "--model", "acme-lm", "--on", "trn1.2xlarge", "--seq", "1024")

    assert [] == checked["diagnostics"]
    assert "acme-lm" == memory["inputs"]["model"]


CHIP = "{peak: {dense: {bf16: 100 TFLOPS}}, memory: {capacity: 8 GiB, bandwidth: 1 TB/s}, scratchpad: 256 MiB}"


@pytest.mark.slow
def test_extensive_figure(scratch) -> None:
    """It adds up in every system, in queries, and against the total that a server prints; schemas have it."""
    chip, server = "trnspec/model/chip.py", "trnspec/model/server.py"
    scratch.insert(
        chip, "        other: Further figures by name", "        scratchpad: Memory for software. Example: 256 MiB\n"
    )
    scratch.insert(
        chip,
        "    power: Annotated[Power, Extensive()]",
        "    scratchpad: Annotated[Capacity, Extensive()] | None = None\n",
    )
    scratch.insert(
        server,
        '    """\n\n    cores: Count | None = None\n',
        "        scratchpad: Memory for software, of all chips. Example: 4 GiB\n",
    )
    scratch.insert(server, "    memory: MemoryTotal | None = None\n\n\n", "    scratchpad: Capacity | None = None\n")
    made_as_stated(scratch, "extensive figure")
    scratch.document("chips/box-chip.yaml", "Chip", CHIP)
    file = scratch.document(
        "servers/box.yaml", "Server", "{chips: {chip: box-chip, count: 16}, stated: {scratchpad: 3 GiB}}"
    )
    scratch.document("ultraservers/pod.yaml", "UltraServer", "{servers: {server: box, count: 4}}")
    mine = ("--catalog", "mine")

    shown = scratch.json("show", "box", *mine)["rows"]
    query = scratch.json("query", "ultraserver where scratchpad > 8 GiB", "--columns", "name,scratchpad", *mine)
    checked = json.loads(scratch.run("validate", file, "--format", "json").out)
    schema = scratch.out("schema", "Server")

    assert [(4 * 2**30, "total")] == [(r["value"], r["verdict"]) for r in shown if r["at"] == "scratchpad"]
    assert [{"name": "pod", "scratchpad": 16 * 2**30}] == query["rows"]
    assert [("TRN402", ["spec", "stated", "scratchpad"])] == [(d["code"], d["path"]) for d in checked["diagnostics"]]
    assert "Memory for software" in schema
    value = scratch.python("print(float(trnspec.load(['mine']).servers['box'].total('scratchpad')))")
    assert 4 * 2**30 == float(value)


def add_kind(scratch: Scratch, name: str, module: str, document: str) -> None:
    lower = name.lower()
    scratch.add(
        f"catalog/{lower}s/acme-{lower}.yaml",
        f"# yaml-language-server: $schema=../../schemas/v1/{lower}.schema.json\napi_version: trnspec/v1\nkind: {name}\n"
        f"metadata: {{name: acme-{lower}, title: Acme, source: neuron-trn1-2026-08}}\nspec: {document}\n",
    )
    scratch.add(f"trnspec/model/{lower}.py", module)
    scratch.insert("trnspec/model/kinds.py", '    "Cluster": (', f'    "{name}": ("{lower}s", "{lower}"),\n')


RACK = """\
\"\"\"The kind Rack.\"\"\"

from typing import Annotated

from attrs import frozen

from trnspec.model.annotations import Count, Extensive
from trnspec.model.fields import Power
from trnspec.model.parts import Parts
from trnspec.model.ref import Ref
from trnspec.model.server import MemoryTotal, Server


@frozen(kw_only=True)
class RackTotals:
    \"\"\"Totals of a rack as published.

    Attributes:
        chips: Its chips. Example: 32
        memory: The memory of all chips.
    \"\"\"

    chips: Count | None = None
    memory: MemoryTotal | None = None


@frozen(kw_only=True)
class Rack:
    \"\"\"A rack of servers.

    Attributes:
        server: The server. Example: trn1.32xlarge
        count: The number of servers. Example: 4
        cooling: The power of its cooling. Example: 2 kW
        stated: Totals as published.
    \"\"\"

    server: Ref[Server]
    count: Count
    cooling: Annotated[Power, Extensive()] | None = None
    stated: RackTotals | None = None

    def parts(self) -> Parts[Server]:
        \"\"\"Its servers.\"\"\"
        return ((self.count, self.server),)
"""


@pytest.mark.slow
def test_hardware_level(scratch) -> None:
    """A rack has totals, a tree, exports and evaluations, and its published totals are checked."""
    add_kind(scratch, "Rack", RACK, "{server: trn1.32xlarge, count: 2}")
    made_as_stated(scratch, "hardware level (rack)")
    file = scratch.document(
        "racks/rack.yaml", "Rack", "{server: trn1.32xlarge, count: 4, cooling: 2 kW, stated: {chips: 60}}"
    )
    mine = ("--catalog", "mine")
    arguments = ("--model", "llama-3.1-8b", "--tp", "32", "--zero", "1", "--global-batch", "64", "--seq", "2048")

    checked = json.loads(scratch.run("validate", file, "--format", "json").out)
    tree = scratch.json("tree", "rack", *mine)["rows"]
    query = scratch.json("query", "rack where memory.capacity > 1.9 TiB", "--columns", "name,memory.capacity", *mine)
    rack, servers = (
        scratch.json("eval", "training", "--on", on, *arguments, *mine)["answers"] for on in ("rack", "trn1.32xlarge*4")
    )

    assert [("TRN402", ["spec", "stated", "chips"])] == [(d["code"], d["path"]) for d in checked["diagnostics"]]
    assert [("rack", 1), ("trn1.32xlarge", 4), ("trainium1", 64)] == [(r["name"], r["all together"]) for r in tree][:3]
    assert [{"name": "rack", "memory.capacity": 64 * 32 * 2**30}] == query["rows"]
    assert rack
    assert servers == rack
    assert "trainium1" in scratch.out("export", "json", "rack", *mine)


COOLER = """\
\"\"\"The kind Cooler.\"\"\"

from attrs import frozen

from trnspec.model.fields import Power


@frozen(kw_only=True)
class Cooler:
    \"\"\"A cooler.

    Attributes:
        power: Its power. Example: 2 kW
    \"\"\"

    power: Power
"""


@pytest.mark.slow
def test_kind(scratch) -> None:
    add_kind(scratch, "Cooler", COOLER, "{power: 1 kW}")
    made_as_stated(scratch, "kind")
    file = scratch.document("coolers/fan.yaml", "Cooler", "{power: 3 kW}")

    assert [] == scratch.json("validate", file)["diagnostics"]
    found = scratch.json("query", "cooler where power < 2 kW", "--columns", "name,power")
    assert [{"name": "acme-cooler", "power": 1000}] == found["rows"]
    assert "Cooler" == json.loads(scratch.out("schema", "Cooler"))["properties"]["kind"]["const"]
