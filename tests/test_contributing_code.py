"""The table "I want to add ..." of CONTRIBUTING.md: rules, evaluators, commands and units are added here.

A trial copies the package, makes the change in the files that the row names and in no other, and runs the copy.
"""

import json

import pytest

from tests.support.programs import ROOT, Scratch, made_as_stated


@pytest.fixture
def scratch(tmp_path) -> Scratch:
    return Scratch(tmp_path / "checkout")


CHIP = "{peak: {dense: {bf16: 100 TFLOPS}}, memory: {capacity: 8 GiB, bandwidth: 1 TB/s}"

RULE = """\
\"\"\"The power of a chip.\"\"\"

from collections.abc import Iterator

from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.plugins.api import Finding, rule


@rule("TRN699", "power-of-a-kettle", over=Chip)
def power_of_a_kettle(node: Node[Chip], graph: Graph) -> Iterator[Finding]:
    \"\"\"A chip whose power is that of a server.

    Why:
        No package of this class takes 500 W; it is the power of a server.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB, bandwidth: 820 GB/s}
          power: 600 W  #! TRN699
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB, bandwidth: 820 GB/s}
          power: 310 W
        ```

    Source:
        Measured in a kitchen.
    \"\"\"
    power = node.spec.power
    if power is not None and power.value.interval.low > 500:
        yield Finding(("spec", "power"), f"{power} is more than 500 W")
"""


@pytest.mark.slow
def test_rule(scratch) -> None:
    """It is explained, it reports, and the example in its explanation is true."""
    scratch.add("trnspec/checks/rules/kettle.py", RULE)
    builtin = "trnspec/builtin.py"
    scratch.insert(builtin, "from trnspec.checks.rules import (\n", "from trnspec.checks.rules import kettle\n")
    scratch.insert(builtin, "    calibrations, dates,", "    kettle,\n")
    made_as_stated(scratch, "rule")
    file = scratch.document("chips/hot.yaml", "Chip", f"{CHIP}, power: 600 W}}")

    checked = json.loads(scratch.run("validate", file, "--select", "TRN699", "--format", "json").out)

    assert [("TRN699", ["spec", "power"])] == [(d["code"], d["path"]) for d in checked["diagnostics"]]
    assert "Measured in a kitchen." in scratch.out("explain", "power-of-a-kettle")
    scratch.python(
        "from trnspec.api import registry",
        "from trnspec.testing import check_rule",
        "from trnspec.checks.rules.kettle import power_of_a_kettle",
        "check_rule(power_of_a_kettle, registry=registry())",
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

    checked = scratch.json("validate", file)["diagnostics"]

    assert [("TRN060", "trailing-tab", "info", 4)] == [
        (d["code"], d["name"], d["severity"], d["line"]) for d in checked
    ]
    assert "Editors remove it" in scratch.out("explain", "TRN060")
    scratch.python(
        "from trnspec.api import registry",
        "from trnspec.testing import check_code",
        "check_code(registry().codes['TRN060'], registry=registry())",
    )


EVALUATOR = """\
\"\"\"The chips for a rate.\"\"\"

import math

from attrs import frozen

from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.questions import Question, axis
from trnspec.evaluation.result import Answer, Evaluation


@frozen(kw_only=True, slots=False)
class CountQuestion(Question):
    \"\"\"The inputs.\"\"\"

    chip: str = axis("Chip.", "CHIP", group="System", default="trainium1")
    pflops: float = axis("Rate.", "PFLOPS", group="Workload", default=1.0)


def run(catalog: Catalog, question: CountQuestion) -> Evaluation:
    \"\"\"The number of chips that have a rate together.

    Args:
        catalog: The catalog.
        question: The inputs.
    \"\"\"
    rate = float(catalog.chips[question.chip].figures["peak.dense.bf16"])
    return Evaluation(
        evaluator="count",
        title=f"chips for {question.pflops} PFLOPS",
        inputs=question.values(),
        answers=(Answer("chips", math.ceil(question.pflops * 1e15 / rate)),),
    )
"""


def test_evaluator(scratch) -> None:
    scratch.add("trnspec/evaluators/count.py", EVALUATOR)
    scratch.insert(
        "trnspec/builtin.py",
        '        Evaluator(\n            "memory",',
        '        Evaluator("count", "Chips for a rate.", "trnspec.evaluators.count:run"),\n',
    )
    made_as_stated(scratch, "evaluator")

    swept = scratch.json("eval", "count", "--pflops", "1,2")["rows"]

    assert [6, 11] == [row["answers"][0]["value"] for row in swept]
    assert "6" == scratch.python("print(trnspec.evaluate('count', trnspec.load())['chips'])").strip()


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
    text = '"""Names."""\n\nfrom trnspec.output.exporters.exported import Export\n\n\n'
    text += 'def export(node, graph):\n    """The name."""\n    return Export(f"{node.name}\\n")\n'
    scratch.add("trnspec/output/exporters/names.py", text)
    scratch.insert(
        "trnspec/builtin.py",
        '        Exporter("dot",',
        '        Exporter("names", ".txt", "the name", one=f"{_EXPORTERS}.names:export"),\n',
    )
    made_as_stated(scratch, "exporter")

    assert "trainium1" == scratch.out("export", "names", "trainium1").strip()
    exported = scratch.python("print(trnspec.load().chips['trainium1'].export('names').text)")
    assert "trainium1" == exported.strip()


def test_reporter(scratch) -> None:
    text = '"""A number."""\n\n\ndef report(report, **_):\n    """The number of findings."""\n'
    text += "    return str(len(report.diagnostics))\n"
    scratch.add("trnspec/output/reporters/number.py", text)
    scratch.insert(
        "trnspec/builtin.py",
        '        Reporter("sarif",',
        '        Reporter("number", "the number of findings", f"{_REPORTERS}.number:report"),\n',
    )
    made_as_stated(scratch, "reporter")
    file = scratch.document("links/wire.yaml", "Link", "{connects: chips, wrong: 1}")

    assert "1" == scratch.run("validate", file, "--format", "number").out.strip()
    assert "number" in scratch.out("validate", "--help")


def test_unit(scratch) -> None:
    scratch.insert(
        "trnspec/quantities/units.py",
        '    yield Unit("x", Dimension.RATIO',
        '    yield Unit("hp", Dimension.POWER, Fraction(7457, 10))\n',
    )
    made_as_stated(scratch, "unit")
    file = scratch.document("chips/horse.yaml", "Chip", f"{CHIP}, power: 0.2 hp}}")

    assert [] == scratch.json("validate", file)["diagnostics"]
    found = scratch.json("query", "chip where power = 0.2 hp", "--columns", "name,power", "--catalog", "mine")
    assert [{"name": "horse", "power": pytest.approx(149.14)}] == found["rows"]


def test_hypothesis(scratch) -> None:
    file = "trnspec/checks/reconcile/hypotheses.py"
    scratch.insert(
        file,
        "_HYPOTHESES: tuple[",
        'def _moon(case: Case) -> Iterator[Explanation]:\n    yield Explanation("moon", "the moon was full")\n\n\n',
    )
    scratch.insert(file, "    _slip,\n", "    _moon,\n")
    made_as_stated(scratch, "likely cause of a mismatch")
    server = "{chips: {chip: trainium1, count: 16}, stated: {memory: {capacity: 577 GiB}}}"
    document = scratch.document("servers/box.yaml", "Server", server)

    checked = json.loads(scratch.run("validate", document, "--format", "json").out)["diagnostics"]

    assert [("TRN402", True)] == [(d["code"], "the moon was full" in d["hint"]) for d in checked]


def test_relation(scratch) -> None:
    scratch.insert(
        "trnspec/checks/reconcile/relations.py",
        '        _Sum("memory.capacity", ("memory.stacks.count",)',
        '        _Sum("sbuf", ("dies",), "other.sbuf_of_die", "dies"),\n',
    )
    made_as_stated(scratch, "relation between figures")
    file = scratch.document(
        "chips/pair.yaml", "Chip", f"{CHIP}, dies: 2, sbuf: 50 MiB, other: {{sbuf_of_die: 24 MiB}}}}"
    )

    checked = json.loads(scratch.run("validate", file, "--format", "json").out)["diagnostics"]

    assert {"TRN402"} == {d["code"] for d in checked}
