"""The beginning of a plugin: a distribution that works and passes its own tests, to be changed into something true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trnspec.errors import UsageError
from trnspec.plugins.scaffold.templates import EVALUATOR

if TYPE_CHECKING:
    from pathlib import Path as FilePath

KINDS = ("generation", "rules", "evaluator")
"""What a new plugin can begin with: documents, a cross-check, something that computes."""

_PROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "trnspec-NAME"
version = "0.1.0"
description = "A plugin of trnspec: SUMMARY."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["trnspec"]

[project.entry-points."trnspec.plugins"]
NAME = "trnspec_MODULE:plugin"

[tool.hatch.build.targets.wheel]
packages = ["src/trnspec_MODULE"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""

_README = """\
# trnspec-NAME

A plugin of trnspec: SUMMARY. It was written by `trnspec plugin new`; WHAT is an example that works, to be replaced.

```sh
pip install --editable .
python -m pytest
trnspec plugin list
TRY
```

`pip uninstall trnspec-NAME` leaves no trace.
"""

_INIT = {
    "generation": '''\
"""A plugin of trnspec: SUMMARY."""

from pathlib import Path

from trnspec.plugins.api import API, Plugin

plugin = Plugin(name="NAME", api=API, catalogs=(Path(__file__).parent / "catalog",))
''',
    "rules": '''\
"""A plugin of trnspec: SUMMARY."""

from trnspec.plugins.api import API, Plugin
from trnspec_MODULE.rules import tiny_memory

plugin = Plugin(name="NAME", api=API, rules=(tiny_memory,))
''',
    "evaluator": '''\
"""A plugin of trnspec: SUMMARY."""

from trnspec.plugins.api import API, Evaluator, Plugin

plugin = Plugin(
    name="NAME",
    api=API,
    evaluators=(
        Evaluator(
            "NAME-sweep",
            "The time to read all device memory of a chip once.",
            # Imported when it is asked for, so that it may need heavy libraries.
            "trnspec_MODULE.evaluate:sweep",
        ),
    ),
)
''',
}

_TEST = '''\
"""The plugin keeps what every plugin must keep."""

from trnspec.testing import PluginConformance

from trnspec_MODULE import plugin as under_test


class TestPlugin(PluginConformance):
    plugin = under_test
'''

_GENERATION = {
    "src/trnspec_MODULE/catalog/sources/NAME-data-sheet.yaml": """\
api_version: trnspec/v1
kind: Source
metadata: {name: NAME-data-sheet, title: "NAME, the data sheet"}
spec:
  publisher: Example
  as_of: 2026-01
  dating: not-before
  rank: vendor-chip-page
  note: An example; name the page that the figures are from, its address and its date.
""",
    "src/trnspec_MODULE/catalog/chips/NAME-1.yaml": """\
api_version: trnspec/v1
kind: Chip
metadata:
  name: NAME-1
  title: NAME 1
  source: NAME-data-sheet
spec:
  peak:
    dense: {bf16: 400 TFLOPS, fp16: 400 TFLOPS, fp32: 100 TFLOPS}
  memory: {capacity: 64 GiB, bandwidth: 2 TB/s}
""",
    "src/trnspec_MODULE/catalog/servers/NAME-1-server.yaml": """\
api_version: trnspec/v1
kind: Server
metadata:
  name: NAME-1-server
  title: A server of 8 NAME 1
  source: NAME-data-sheet
spec:
  chips: {chip: NAME-1, count: 8}
  # What a page prints of the whole; it is checked against 8 times the chip.
  stated:
    peak: {dense: {bf16: "3,200 TFLOPS"}}
    memory: {capacity: 512 GiB}
""",
    "src/trnspec_MODULE/catalog/ultraservers/NAME-1-ultraserver.yaml": """\
api_version: trnspec/v1
kind: UltraServer
metadata:
  name: NAME-1-ultraserver
  title: Four servers of NAME 1
  source: NAME-data-sheet
spec:
  servers: {server: NAME-1-server, count: 4}
  stated:
    chips: 32
    memory: {capacity: "2,048 GiB"}
""",
    "tests/test_catalog.py": '''\
"""The documents are found, and say what they should."""

import trnspec


def test_chip() -> None:
    chip = trnspec.load().chips["NAME-1"]

    assert chip.memory.capacity.to("GiB") == 64


def test_ultraserver_is_the_sum_of_its_chips() -> None:
    system = trnspec.load().ultraservers["NAME-1-ultraserver"]

    assert system.total("memory.capacity").to("GiB") == 4 * 8 * 64
''',
}

_RULES = {
    "src/trnspec_MODULE/rules.py": '''\
"""Cross-checks."""

from collections.abc import Iterator

from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.plugins.api import Finding, rule


@rule("LETTERS001", "NAME-tiny-memory", over=Chip, severity=Severity.WARNING)
def tiny_memory(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """A chip with less than 1 GiB of device memory.

    Why:
        No accelerator of the last years has so little. The figure is most often that of an on-chip memory.

    Example:
        ```yaml
        # file: sources/page.yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: page, title: A page}
        spec: {publisher: Example, as_of: 2026-01, rank: vendor-chip-page}
        # file: chips/example.yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: page}
        spec:
          peak: {dense: {bf16: 100 TFLOPS}}
          memory: {capacity: 24 MiB}  #! LETTERS001
        ```

    Instead:
        ```yaml
        # file: sources/page.yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: page, title: A page}
        spec: {publisher: Example, as_of: 2026-01, rank: vendor-chip-page}
        # file: chips/example.yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: page}
        spec:
          peak: {dense: {bf16: 100 TFLOPS}}
          memory: {capacity: 24 GiB}
        ```

    Source:
        An example; name what the rule is known from.
    """
    capacity = chip.spec.memory.capacity
    if capacity.to("GiB") >= 1:
        return
    message = f"{chip.name} has {capacity} of device memory, less than 1 GiB"
    yield Finding(("spec", "memory", "capacity"), message, "is it the figure of an on-chip memory?")
''',
    "tests/test_rules.py": '''\
"""The rule finds what it should, where it should."""

from trnspec.testing import check_rule, diagnose

from trnspec_MODULE import plugin
from trnspec_MODULE.rules import tiny_memory

CHIP = """\\
api_version: trnspec/v1
kind: Chip
metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
spec:
  peak: {dense: {bf16: 100 TFLOPS}}
  memory: {capacity: SIZE}
"""


def test_explanation() -> None:
    check_rule(tiny_memory)


def test_too_small() -> None:
    files = {"chips/example.yaml": CHIP.replace("SIZE", "512 MiB")}

    # Of this plugin and of trnspec; the rules of others that are installed may have more to say.
    assert diagnose(files, plugins=[plugin]) == {("chips/example.yaml", "LETTERS001", 6)}


def test_large_enough() -> None:
    files = {"chips/example.yaml": CHIP.replace("SIZE", "1 GiB")}

    assert diagnose(files, plugins=[plugin]) == set()
''',
}

_FILES = {"generation": _GENERATION, "rules": _RULES, "evaluator": EVALUATOR}
_SUMMARY = {
    "generation": ("hardware of another generation", "its catalog", "trnspec list chips"),
    "rules": ("a cross-check", "its rule", "trnspec explain LETTERS001"),
    "evaluator": ("something that computes", "its evaluator", "trnspec eval NAME-sweep --times 1,2,3"),
}


def files(name: str, kind: str) -> dict[str, str]:
    """The files of a new distribution, by their paths in it.

    Args:
        name: The name of the plugin: lower-case letters, digits and hyphens, a letter first.
        kind: One of :data:`KINDS`.

    Raises:
        UsageError: The name or the kind is not one.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or not 2 <= len(name) <= 40 or name == "trnspec":
        raise UsageError(
            f"{name!r} is not the name of a plugin: 2 to 40 lower-case letters, digits and single hyphens, a letter "
            "first, such as acme-tpu"
        )
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a kind of plugin; write one of {', '.join(KINDS)}")
    summary, what, attempt = _SUMMARY[kind]
    texts = {
        "pyproject.toml": _PROJECT,
        "README.md": _README.replace("SUMMARY", summary).replace("WHAT", what).replace("TRY", attempt),
        "src/trnspec_MODULE/__init__.py": _INIT[kind],
        "tests/test_plugin.py": _TEST,
        **_FILES[kind],
    }
    words = {"SUMMARY": summary, "LETTERS": _letters(name), "MODULE": name.replace("-", "_"), "NAME": name}
    if kind == "generation":
        # Each document is a test, by the plugin of pytest that comes with trnspec.
        texts["pyproject.toml"] += 'trnspec_catalogs = ["src/trnspec_MODULE/catalog"]\n'
    return {_filled(path, words): _filled(text, words) for path, text in texts.items()}


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def _letters(name: str) -> str:
    """The letters that the codes of a plugin begin with; TRN are those of trnspec."""
    letters = re.sub(r"[^A-Z]", "", name.upper())[:6]
    return f"{letters}X" if len(letters) < 2 or letters == "TRN" else letters


def write(name: str, kind: str, into: FilePath) -> FilePath:
    """Write a new distribution into a folder of its own, all of it or nothing.

    Args:
        name: The name of the plugin; ``trnspec-`` before it may be left out.
        kind: One of :data:`KINDS`.
        into: Where the folder is made; it is called ``trnspec-NAME``.

    Returns:
        The folder.

    Raises:
        UsageError: The name or the kind is not one, or the folder is there already or cannot be written.
    """
    from shutil import rmtree
    from tempfile import mkdtemp

    name = name.removeprefix("trnspec-")
    texts = files(name, kind)
    folder = into / f"trnspec-{name}"
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} exists already; nothing was written")
    try:
        scratch = into / mkdtemp(prefix=".trnspec-", dir=into)
    except OSError as error:
        raise UsageError(f"{into} cannot be written to: {error.strerror}") from error
    try:
        made = scratch / folder.name
        for path, text in texts.items():
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_text(text, encoding="utf-8")
        made.rename(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}; nothing was written") from error
    finally:
        rmtree(scratch, ignore_errors=True)
    return folder
