"""Structure-aware fuzzing: real documents, changed in a few places, go through every command in this process.

``document_texts`` draws documents, ``exercise`` runs the commands on one. A traceback, a stage of over five seconds of
computing, more than a gigabyte of memory, a control character in output, or output that is no JSON or XML is a failure.
"""

import functools
import json
import resource
import signal
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
from click.testing import CliRunner
from hypothesis import strategies as st

from tests.support.rules import KNOWN
from trnspec.catalog.catalog import Catalog
from trnspec.checks.fixes import fix
from trnspec.checks.runner import check
from trnspec.cli import group
from trnspec.errors import TrnspecError
from trnspec.graph.graph import Graph, references
from trnspec.loading.files import shipped
from trnspec.loading.pipeline import LoadResult, link, load_document
from trnspec.loading.settings import Settings
from trnspec.output.reporters import render
from trnspec.yaml import read_file, read_text

SECONDS = 5.0
"""How long a stage may compute."""

MEMORY = 2**30
"""How much more memory than before a run may take, in bytes."""

BASES = (
    "chips/trainium2", "servers/trn2.48xlarge", "ultraservers/trn2-ultraserver", "cores/neuroncore-v3", "links/neuronlink-v3",
    "models/llama-3.1-8b", "sources/neuron-trn2-2026-08", "clusters/trn1-ultracluster",
)  # fmt: skip
"""The documents that are changed."""


class HangError(BaseException):
    """A stage takes too long."""


@contextmanager
def limits() -> Iterator[None]:
    """Limit the memory of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        present = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (present + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def stage(name: str) -> Iterator[None]:
    """A part of a run, which may not take long; errors for the user are what is expected of it."""

    def expire(_signal: int, _frame: object) -> None:
        raise HangError(f"{name} takes more than {SECONDS:g} s")

    handler = signal.signal(signal.SIGVTALRM, expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    except (TrnspecError, click.ClickException):
        pass
    except HangError as error:
        raise AssertionError(str(error)) from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)


# What is changed.


@functools.cache
def context() -> tuple[LoadResult, ...]:
    """The documents that the bases refer to, in any number of steps, and the bases."""
    files = {f.stem: f for f in shipped().rglob("*.yaml")}
    every = {
        f.stem: load_document(read_file(f), KNOWN, target=False) for f in files.values() if f.parent.name != "measured"
    }
    graph = link(every.values())[0]
    queue = [base.partition("/")[2] for base in BASES]
    names: dict[str, None] = {}
    while queue:
        name = queue.pop()
        if name not in names and name in graph:
            names[name] = None
            queue += [r.name for _, _, r in references(graph.named(name))]
    return tuple(every[n] for n in names if n in every)


@functools.cache
def base(name: str) -> dict[str, Any]:
    """The plain data of a shipped document, its source and claims among it."""
    data = read_file(shipped() / f"{name}.yaml").data
    assert data is not None
    return data


@functools.cache
def base_names() -> tuple[str, ...]:
    return tuple(r.name for r in context())


HOSTILE = (
    "", " ", "\n", "\x1b]0;t\x07", "\x9b31m", "\u202eabc", "\u200b", "\ufeff", "\U0001f600", "e\u0301", "\u00e9", "<script>", "]]>",
    "&amp;", "`x`", "[a](javascript:1)", "| a |", '"', "'", "\\", "a" * 5000, "{a,b}", "spec" + ".{a,b}" * 20, "spec.{{a}}", "spec.{a",
    "spec.memory.capacity", "spec..", "..", "/etc/passwd", "../../x", "NaN", "inf", "1e999", "-1", "0", "0 GB", "1e308 TB", "9**9**9",
    "1 TB/s", "32 GiB", "~3 TFLOPS", ">= 5 GB", "3..4 GB/s", "190 TFLOPS", "10 parsec", "2024-02-30", "9999-12-31", "0000", "Chip",
    "trnspec/v2", "trnspec/v1alpha1", "efa", "cards", "peak.dense.bf16 * memory.capacity", "1/0 * memory.capacity", "__class__", "${HOME}", "%s%n", "null", "true",
)  # fmt: skip
NUMBERS = (0, -1, 1, 2, 3, 16, 1024, 10**6, 10**9, 2**31, 2**53, 2**63 - 1, 2**64 - 1, 0.5, -0.0, 1e308, 5e-324, 3.7)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, (*path, index))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


@functools.cache
def _parts() -> tuple[Any, ...]:
    """Parts of all bases, to be put where they do not belong."""
    every = [_at(base(name), path) for name in BASES for path in _paths(base(name)) if path]
    return tuple(v for v in every if len(json.dumps(v)) < 400)


SCALARS = (
    st.sampled_from(HOSTILE)
    | st.sampled_from(NUMBERS)
    | st.sampled_from((None, True, False))
    | st.text(max_size=12)
    | st.from_regex(
        r"[~<>=]{0,2} ?-?[0-9,.]{1,8}([eE][0-9]{1,4})? ?(TB/s|GiB|TFLOPS|GHz|us|kW|Gbps|x)?", fullmatch=True
    )
)


@st.composite
def _changed(draw: st.DrawFn, data: dict[str, Any]) -> dict[str, Any]:
    """Data with one change: a value, a reference, a key, or a part of another document."""
    data = json.loads(json.dumps(data))
    path = draw(st.sampled_from([p for p in _paths(data) if p]))
    holder, key = _at(data, path[:-1]), path[-1]
    what = draw(st.sampled_from(["scalar", "scalar", "part", "name", "delete", "key", "twice", "wrap", "deep"]))
    if what == "scalar":
        holder[key] = draw(SCALARS)
    elif what == "part":
        holder[key] = draw(st.sampled_from(_parts()))
    elif what == "name":
        names = [p for p in _paths(data) if p and _at(data, p) in base_names()] or [path]
        path = draw(st.sampled_from(names))
        _at(data, path[:-1])[path[-1]] = draw(st.sampled_from(base_names()))
    elif what == "delete":
        del holder[key]
    elif what == "key" and isinstance(holder, dict):
        holder[draw(st.sampled_from(HOSTILE) | st.text(max_size=8))] = holder.pop(key)
    elif what == "twice" and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif what == "wrap":
        holder[key] = draw(st.sampled_from([[holder[key]], {"value": holder[key]}, [[holder[key]]] * 3]))
    elif what == "deep":
        value = holder[key]
        for _ in range(draw(st.integers(1, 80))):
            value = [value]
        holder[key] = value
    return data


@st.composite
def document_texts(draw: st.DrawFn) -> str:
    """A shipped document with up to four changes, as YAML; sometimes with a key twice, or cut, or with foreign bytes."""
    data = base(draw(st.sampled_from(BASES)))
    for _ in range(draw(st.integers(1, 4))):
        data = draw(_changed(data))
        if not isinstance(data, dict):
            break
    text = written(data)
    lines = text.split("\n")
    damage = draw(st.sampled_from(["none"] * 8 + ["twice", "cut", "insert"]))
    at = draw(st.integers(0, len(lines) - 1))
    if damage == "twice":
        lines.insert(at, lines[at])
    elif damage == "cut":
        lines[at] = lines[at][: draw(st.integers(0, 40))]
    elif damage == "insert":
        lines[at] += draw(
            st.sampled_from(
                ["&a", " *a", "!!x", "\t", " #", ": :", "{", "[", "\x00", "\u2028", "- ", "%YAML 3.0", "..."]
            )
        )
    return "\n".join(lines)


def written(value: Any, indent: int = 0) -> str:
    """Plain data as YAML in block style with JSON scalars, so that each value is on a line of its own."""
    space = "  " * indent
    if isinstance(value, dict) and value:
        return "".join(
            f"{space}{json.dumps(str(k), ensure_ascii=len(str(k)) % 2 == 0)}:{_below(v, indent)}"
            for k, v in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"{space}-{_below(v, indent)}" for v in value)
    return f"{space}{json.dumps(value, ensure_ascii=isinstance(value, str) and len(value) % 2 == 0)}\n"


def _below(value: Any, indent: int) -> str:
    block = isinstance(value, (dict, list)) and value and indent < 60
    return "\n" + written(value, indent + 1) if block else " " + written(value, 0).lstrip() if not block else ""


# What it goes through.

REPORTERS = ("text", "json", "sarif", "github", "junit")


def exercise(text: str, commands: tuple[str, ...] = ()) -> None:
    """Read and check a document among those it refers to, report, and run commands on the result."""
    with stage("read"):
        reading = load_document(read_text(text, "fuzzed.yaml"), KNOWN)
    with stage("fix"):
        fixed = fix([reading, *context()], KNOWN, Settings())
        assert len(fixed.texts) <= 1
    with stage("check"):
        checked = check([reading, *context()], KNOWN)
    assert not [d for d in checked.report.diagnostics if d.code == "TRN900"], checked.report.diagnostics
    for name in REPORTERS:
        with stage(f"report {name}"):
            _sound(render(checked.report, name, texts=checked.texts), name)
    node = reading.node
    if node is None or node.name not in checked.graph:
        return
    catalog = Catalog(checked.graph)
    for command in commands or COMMANDS:
        run(catalog, *(w.replace("NAME", node.name) for w in command.split()))


COMMANDS = (
    "show NAME", "show NAME --reasons --format markdown", "show NAME --format json", "show NAME --format csv", "tree NAME",
    "compare NAME trainium2", "compare NAME trn2.48xlarge --format csv", "audit NAME --details", "source", "list", "list chips",
    "export json NAME", "export json", "export svg NAME", "export dot NAME", "export astra-sim NAME", "export calculon NAME",
    "export llm-analysis NAME", "show NAME --as-of 2025-01", "list --as-of 2024", "query chip|where|memory.capacity|>|10|GiB",
    "query server|where|chips.chip|=|trainium2 --format json", "diff 2026.11", "eval roofline --on NAME --matmul 512x512x512",
    "eval collective --kind all-reduce --size 1|GiB --on NAME", "eval memory --model llama-3.1-8b --on NAME --tp 2 --seq 512",
    "eval training --model NAME --on trn2.48xlarge --tp 8 --seq 512 --global-batch 64", "FREEZE", "TABLES",
    "eval inference --model llama-3.1-8b --on NAME --tp 4 --prompt 128 --output 16 --batch 1",
)  # fmt: skip


def run(catalog: Catalog, *args: str) -> None:
    """One command of the command line on a catalog, in this process."""
    words = [w.replace("|", " ") for w in args]
    if words == ["FREEZE"]:
        _freeze(catalog)
        return
    if words == ["TABLES"]:
        _tables(catalog)
        return
    with _catalog_is(catalog), stage(" ".join(words)):
        result = CliRunner().invoke(group, words)
        if result.exception is not None and not isinstance(result.exception, (SystemExit, TrnspecError)):
            raise result.exception
        assert result.exit_code in (0, 1, 2), result.output
        assert " broke" not in result.output
        format_ = "json" if "json" in words else "svg" if "svg" in words else ""
        _sound(result.stdout, format_ if result.exit_code == 0 and result.exception is None else "")


@contextmanager
def _catalog_is(catalog: Catalog) -> Iterator[None]:
    """Every command loads this catalog, as of any date and with any overlay."""

    def load(_paths: object = (), *, edition: Any = None, as_of: Any = None, overlay: Any = None, **_: Any) -> Catalog:
        loaded = catalog if edition is None else Catalog(catalog.graph, edition)
        loaded = loaded.then(as_of) if as_of else loaded
        return loaded.overlay(overlay) if overlay else loaded

    def graph(*_: Any, **__: Any) -> Graph:
        return catalog.graph

    with ExitStack() as stack:
        for target, function in (
            ("trnspec.api.load", load),
            ("trnspec.api.graph", graph),
            ("trnspec.loading.index.shipped_graph", graph),
        ):
            stack.enter_context(mock.patch(target, function))
        stack.enter_context(mock.patch.dict("os.environ", {"TRNSPEC_PLUGINS": "none"}))
        yield


def _freeze(catalog: Catalog) -> None:
    from trnspec.catalog.versions.editions import freeze, read, verify

    with stage("edition"):
        text = freeze(catalog.graph, "2099.01")
        verify(text)
        assert len(read(text, KNOWN)) == len(catalog.graph)


def _tables(catalog: Catalog) -> None:
    with stage("tables"), tempfile.TemporaryDirectory() as folder:
        catalog.write_csv(folder)
        catalog.write_json(Path(folder, "all.json"))
        json.loads(Path(folder, "all.json").read_text("utf-8"))


_ALLOWED = {"\n", "\t"}


def _sound(text: str, format_: str) -> None:
    """The output can be written, and is what it says it is."""
    text.encode()
    if format_ in ("json", "sarif"):
        json.loads(text)
    elif format_ in ("svg", "junit"):
        ET.fromstring(text)
    hidden = {
        c
        for c in text
        if (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e")
    }
    assert hidden <= _ALLOWED, (hidden, text[:2000])
