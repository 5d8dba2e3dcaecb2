"""The table "I want to add ..." of CONTRIBUTING.md: each row is tried in the tests that it names.

A trial copies the package, makes the change in the files that the row names and in no other, and runs the copy. What a row
adds is that of a new plugin where there is one (``trnspec plugin new``).
"""

import pytest

from tests.support.programs import ROOT, Scratch, made_as_stated
from trnspec.plugins.scaffold.writer import files


@pytest.fixture
def scratch(tmp_path) -> Scratch:
    return Scratch(tmp_path / "checkout")


def of_plugin(kind: str, file: str) -> str:
    """A module of a new plugin."""
    return files("acme", kind)[f"src/trnspec_acme/{file}"]


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


@pytest.mark.slow
def test_model(scratch) -> None:
    shipped = (ROOT / "catalog" / "models" / "gpt2.yaml").read_text("utf-8")
    half = {"name: gpt2\n": "name: acme-lm\n", "[gpt2-small, gpt-2]": "[acme]", "layers: 12": "layers: 6"}
    for old, new in (half | {"124439808": f"{124439808 - 6 * (12 * 768**2 + 13 * 768)}"}).items():
        shipped = shipped.replace(old, new)
    scratch.add("catalog/models/acme-lm.yaml", shipped)
    made_as_stated(scratch, "model")

    checked = scratch.json("validate", "catalog/models/acme-lm.yaml")
    memory = scratch.json("eval", "memory", "--model", "acme-lm", "--on", "trn1.2xlarge", "--seq", "1024")

    assert [] == checked["diagnostics"]
    assert "acme-lm" == memory["inputs"]["model"]


# Figures and kinds.

CHIP = "{peak: {dense: {bf16: 100 TFLOPS}}, memory: {capacity: 8 GiB, bandwidth: 1 TB/s}"


@pytest.mark.slow
def test_extensive_figure(scratch) -> None:
    """It adds up in every system, in queries, and against the total that a server prints; schemas have it."""
    chip, server = "trnspec/model/chip.py", "trnspec/model/server.py"
    for file, before, line in (
        (chip, "        other: Further figures by name", "        scratchpad: Memory for software. Example: 256 MiB\n"),
        (
            chip,
            "    power: Annotated[Power, Extensive()]",
            "    scratchpad: Annotated[Capacity, Extensive()] | None = None\n",
        ),
        (
            server,
            '    """\n\n    cores: Count |',
            "        scratchpad: Memory for software, of all chips. Example: 4 GiB\n",
        ),
        (server, "    memory: MemoryTotal | None = None\n\n\n", "    scratchpad: Capacity | None = None\n"),
    ):
        scratch.insert(file, before, line)
    made_as_stated(scratch, "extensive figure")
    scratch.document("chips/box-chip.yaml", "Chip", f"{CHIP}, scratchpad: 256 MiB}}")
    box = "{chips: {chip: box-chip, count: 16}, stated: {scratchpad: 3 GiB}}"
    file = scratch.document("servers/box.yaml", "Server", box)
    scratch.document("ultraservers/pod.yaml", "UltraServer", "{servers: {server: box, count: 4}}")
    mine = ("--catalog", "mine")

    shown = scratch.json("show", "box", *mine)["rows"]
    query = scratch.json("query", "ultraserver where scratchpad > 8 GiB", "--columns", "name,scratchpad", *mine)

    assert [(4 * 2**30, "total")] == [(r["value"], r["verdict"]) for r in shown if r["at"] == "scratchpad"]
    assert [{"name": "pod", "scratchpad": 16 * 2**30}] == query["rows"]
    assert [("TRN402", ["spec", "stated", "scratchpad"])] == scratch.found(file)
    assert "Memory for software" in scratch.out("schema", "Server")
    value = scratch.python("print(float(trnspec.load(['mine']).servers['box'].total('scratchpad')))")
    assert 4 * 2**30 == float(value)


@pytest.mark.slow
def test_kind_and_hardware_level(scratch) -> None:
    """A kind has documents, queries and a schema; a rack also totals, a tree, exports and evaluations."""
    scratch.add("trnspec/model/rack.py", of_plugin("kind", "rack.py").replace("AcmeRack", "Rack"))
    scratch.insert("trnspec/model/kinds.py", '    "Cluster": (', '    "Rack": ("racks", "rack"),\n')
    text = (
        "api_version: trnspec/v1\nkind: Rack\nmetadata: {name: acme-rack, title: Acme, source: neuron-trn1-2026-08}\n"
    )
    scratch.add("catalog/racks/acme-rack.yaml", f"{text}spec: {{servers: {{server: trn1.32xlarge, count: 2}}}}\n")
    made_as_stated(scratch, "kind")
    made_as_stated(scratch, "hardware level (rack)")
    rack = "{servers: {server: trn1.32xlarge, count: 4}, power: 2 kW, stated: {chips: 60}}"
    file = scratch.document("racks/rack.yaml", "Rack", rack)
    mine = ("--catalog", "mine")
    arguments = ("--model", "llama-3.1-8b", "--tp", "32", "--zero", "1", "--global-batch", "64", "--seq", "2048")

    tree = scratch.json("tree", "rack", *mine)["rows"]
    query = scratch.json("query", "rack where memory.capacity > 1.9 TiB", "--columns", "name,memory.capacity", *mine)
    racks, servers = (
        scratch.json("eval", "training", "--on", on, *arguments, *mine)["answers"] for on in ("rack", "trn1.32xlarge*4")
    )

    assert [("TRN402", ["spec", "stated", "chips"])] == scratch.found(file)
    assert [("rack", 1), ("trn1.32xlarge", 4), ("trainium1", 64)] == [(r["name"], r["all together"]) for r in tree][:3]
    assert [{"name": "rack", "memory.capacity": 64 * 32 * 2**30}] == query["rows"]
    assert racks
    assert servers == racks
    assert "trainium1" in scratch.out("export", "json", "rack", *mine)
    assert '"const": "Rack"' in scratch.out("schema", "Rack")


@pytest.mark.slow
def test_rule(scratch) -> None:
    """It is explained, it reports, and the example in its explanation is true."""
    text = of_plugin("rules", "rules.py").replace("ACME001", "TRN699").replace("acme-tiny", "tiny")
    scratch.add("trnspec/checks/rules/tiny.py", text)
    builtin = "trnspec/builtin.py"
    scratch.insert(builtin, "from trnspec.checks.rules import (\n", "from trnspec.checks.rules import tiny\n")
    scratch.insert(builtin, "    calibrations, dates,", "    tiny,\n")
    made_as_stated(scratch, "rule")
    file = scratch.document("chips/small.yaml", "Chip", f"{CHIP}}}".replace("8 GiB", "24 MiB"))

    assert [("TRN699", ["spec", "memory", "capacity"])] == scratch.found(file, "--select", "TRN699")
    assert "No recent accelerator has so little." in scratch.out("explain", "tiny-memory")
    scratch.python(
        "from trnspec.api import registry",
        "from trnspec.testing import check_rule",
        "from trnspec.checks.rules.tiny import tiny_memory",
        "check_rule(tiny_memory, registry=registry())",
    )


PAGE = """\
---
id: TRN060
name: trailing-tab
severity: info
---

A line that ends in a tab.

## Why

Editors remove it, and the diff has a line that was not changed.

## Example

```yaml
api_version: trnspec/v1
kind: Link  #! TRN060{blank}
metadata: {{name: example, title: Example}}
spec: {{connects: chips}}
```

## Instead

```yaml
api_version: trnspec/v1
kind: Link
metadata: {{name: example, title: Example}}
spec: {{connects: chips}}
```

## Source

Experience.
"""


@pytest.mark.slow
def test_code(scratch) -> None:
    scratch.add("trnspec/checks/codes/TRN060.md", PAGE.format(blank="\t"))
    scratch.insert(
        "trnspec/yaml/text.py",
        '    if text and text[-1] not in "\\r\\n":',
        '    for match in re.finditer(r"\\t+$", text, re.MULTILINE):\n'
        '        problems.add("TRN060", "The line ends in a tab.", lines.place(match.start()), "delete it")\n',
    )
    made_as_stated(scratch, "code")
    file = scratch.document("links/wire.yaml", "Link", "{connects: chips}\t")

    (found,) = scratch.json("validate", file)["diagnostics"]

    assert ("TRN060", "trailing-tab", "info", 4) == tuple(found[key] for key in ("code", "name", "severity", "line"))
    assert "Editors remove it" in scratch.out("explain", "TRN060")
    scratch.python(
        "from trnspec.api import registry",
        "from trnspec.testing import check_code",
        "check_code(registry().codes['TRN060'], registry=registry())",
    )


def test_relation(scratch) -> None:
    scratch.insert(
        "trnspec/checks/reconcile/relations.py",
        '        _Sum("memory.capacity", ("memory.stacks.count",)',
        '        _Sum("sbuf", ("dies",), "other.sbuf_of_die", "dies"),\n',
    )
    made_as_stated(scratch, "relation between figures")
    pair = f"{CHIP}, dies: 2, sbuf: 50 MiB, other: {{sbuf_of_die: 24 MiB}}}}"

    assert {"TRN402"} == {code for code, _ in scratch.found(scratch.document("chips/pair.yaml", "Chip", pair))}


def test_hypothesis(scratch) -> None:
    file = "trnspec/checks/reconcile/hypotheses.py"
    moon = 'def _moon(case: Case) -> Iterator[Explanation]:\n    yield Explanation("moon", "the moon was full")\n\n\n'
    scratch.insert(file, "_HYPOTHESES: tuple[", moon)
    scratch.insert(file, "    _slip,\n", "    _moon,\n")
    made_as_stated(scratch, "likely cause of a mismatch")
    server = "{chips: {chip: trainium1, count: 16}, stated: {memory: {capacity: 577 GiB}}}"
    document = scratch.document("servers/box.yaml", "Server", server)

    assert "the moon was full" in scratch.run("validate", document, "--select", "TRN402").out


def test_evaluator(scratch) -> None:
    scratch.add("trnspec/evaluators/reading.py", of_plugin("evaluator", "evaluate.py").replace("acme-sweep", "reading"))
    scratch.insert(
        "trnspec/builtin.py",
        '        Evaluator(\n            "memory",',
        '        Evaluator("reading", "The time to read.", "trnspec.evaluators.reading:sweep"),\n',
    )
    made_as_stated(scratch, "evaluator")
    time = 96 * 2**30 / 2.9e12

    swept = scratch.json("eval", "reading", "--times", "1,2")["rows"]

    assert pytest.approx([time, 2 * time]) == [row["answers"][0]["value"] for row in swept]
    assert pytest.approx(time) == float(scratch.python("print(trnspec.evaluate('reading', trnspec.load())['time'])"))


@pytest.mark.slow
def test_evaluator_option(scratch) -> None:
    """One field and its formula: an option, a keyword, an axis of a sweep, and another result."""
    questions, layout = "trnspec/evaluation/questions.py", "trnspec/perf/work/layout.py"
    scratch.insert(
        questions,
        "    host_link: str | None = _schedule(\n",
        "    bubble_fill: float = _schedule(\n"
        '        "Share of the pipeline bubble that is used.", "SHARE", minimum=0, maximum=1, default=0.0\n'
        "    )\n",
    )
    scratch.insert(layout, "    uneven: Number = False\n", "    bubble_fill: Number = 0.0\n")
    scratch.insert(
        layout, "        uneven: Whether stages", "        bubble_fill: Share of the pipeline bubble that is used.\n"
    )
    scratch.replace(
        "trnspec/perf/training/bubble.py",
        "factor=schedule.bubble / layout.interleave,",
        "factor=schedule.bubble / layout.interleave * (1.0 - layout.bubble_fill),",
    )
    made_as_stated(scratch, "evaluator option")
    inputs = {"model": "llama-3.1-8b", "on": "trn1.32xlarge*4", "seq": 2048, "global_batch": 64, "tp": 8, "pp": 4}
    options = [word for name, value in inputs.items() for word in (f"--{name.replace('_', '-')}", str(value))]

    help_ = " ".join(scratch.out("eval", "training", "--help").split())
    swept = scratch.json("eval", "training", *options, "--zero", "1", "--bubble-fill", "0,0.5,1")["rows"]
    in_python = scratch.python(
        "catalog = trnspec.load()",
        f"result = trnspec.evaluate('training', catalog, bubble_fill=0.5, zero=1, **{inputs!r})",
        "print(result.inputs['bubble_fill'], result['step_time'])",
    )
    bubbles = [{p["name"]: p["value"] for p in row["parts"]}.get("bubble", 0.0) for row in swept]
    times = [{a["name"]: a["value"] for a in row["answers"]}["step_time"] for row in swept]

    assert "--bubble-fill SHARE Share of the pipeline bubble that is used. [default: 0]" in help_
    assert bubbles[0] > 0
    assert [pytest.approx(bubbles[0] / 2), 0.0] == bubbles[1:]
    assert [pytest.approx(times[0] - bubbles[0] / 2), pytest.approx(times[0] - bubbles[0])] == times[1:]
    assert [0.5, times[1]] == [float(word) for word in in_python.split()]
    misuse = scratch.run("eval", "training", *options, "--bubble-fill", "2")
    assert (2, "") == (misuse.status, misuse.out)


COMMAND = """\
\"\"\"``trnspec count``.\"\"\"

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.help import documented


@documented("count", ("trnspec count", "The number of chips:"))
@catalog_options
def command(**options: object) -> None:
    \"\"\"Print the number of chips in the catalog.\"\"\"
    click.echo(len(load_catalog(**options).chips))
"""


def test_command(scratch) -> None:
    scratch.add("trnspec/cli/count.py", COMMAND)
    scratch.insert(
        "trnspec/plugins/builtin_commands.py", '        "tree": ', '        "count": "Print the number of chips.",\n'
    )
    made_as_stated(scratch, "command")

    assert len(list((ROOT / "catalog" / "chips").iterdir())) == int(scratch.out("count"))
    assert "Print the number of chips." in scratch.out("--help")


def test_exporter(scratch) -> None:
    scratch.add("trnspec/output/exporters/figures.py", of_plugin("exporter", "export.py"))
    line = '        Exporter("figures", ".csv", "figures as CSV", one=f"{_EXPORTERS}.figures:document"),\n'
    scratch.insert("trnspec/builtin.py", '        Exporter("dot",', line)
    made_as_stated(scratch, "exporter")

    exported = scratch.python("print(trnspec.load().chips['trainium1'].export('figures').text, end='')")

    assert "trainium1,memory.capacity,32 GiB," in exported
    assert exported == scratch.out("export", "figures", "trainium1")


def test_reporter(scratch) -> None:
    scratch.add("trnspec/output/reporters/counts.py", of_plugin("reporter", "report.py"))
    line = '        Reporter("counts", "the number of findings", f"{_REPORTERS}.counts:counts"),\n'
    scratch.insert("trnspec/builtin.py", '        Reporter("sarif",', line)
    made_as_stated(scratch, "reporter")
    file = scratch.document("links/wire.yaml", "Link", "{connects: chips, wrong: 1}")

    assert "TRN101\terror\t1" in scratch.run("validate", file, "--format", "counts").out.splitlines()
    assert "counts" in scratch.out("validate", "--help")


def test_unit(scratch) -> None:
    line = '    yield Unit("hp", Dimension.POWER, Fraction(7457, 10))\n'
    scratch.insert("trnspec/quantities/units.py", '    yield Unit("x", Dimension.RATIO', line)
    made_as_stated(scratch, "unit")
    file = scratch.document("chips/horse.yaml", "Chip", f"{CHIP}, power: 0.2 hp}}")

    assert [] == scratch.found(file)
    found = scratch.json("query", "chip where power = 0.2 hp", "--columns", "name,power", "--catalog", "mine")
    assert [{"name": "horse", "power": pytest.approx(149.14)}] == found["rows"]
