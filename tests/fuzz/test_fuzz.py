"""Fuzzing: FUZZ_SECONDS of changed documents, queries, figures, overlays, editions, settings and tables (10 by default).

``make fuzz`` runs an hour. What it finds becomes a file in ``corpus``, which every run of the tests reads.
"""

import os
import random
import time
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz import fuzzing
from tests.support.rules import KNOWN
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.versions import editions
from trnspec.checks.runner import check
from trnspec.loading import settings as settings_
from trnspec.loading.measured import read_table
from trnspec.loading.pipeline import link, load_document
from trnspec.quantities.quantity import parse, render
from trnspec.quantities.units import UNITS as TABLE
from trnspec.yaml import read_text

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.yaml"))
FEW = 6
"""How many commands an example runs."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited on Linux only")


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("file", CORPUS, ids=lambda f: f.stem)
def test_corpus(file) -> None:
    """What was found before: read, checked and reported, and shown and exported where it can be used."""
    fuzzing.exercise(file.read_bytes().decode(), ("show NAME", "export json NAME", "export dot NAME"))


@pytest.mark.slow
@pytest.mark.parametrize("file", CORPUS, ids=lambda f: f.stem)
def test_corpus_with_all_commands(file) -> None:
    fuzzing.exercise(file.read_bytes().decode())


WORDS = ["chip", "server", "ultraserver", "link", "where", "order", "by", "and", "or", "not", "is", "known", "unknown", "(", ")", ">", ">=", "<", "<=", "=", "!=", "+", "-", "*", "/", ",", ".", "10", "1e9", "3.5", "0", "GiB", "TB/s", "GB", "memory.capacity", "memory.bandwidth", "peak.dense.bf16", "chips.chip", "chips.count", "name", "title", "dies", "cores", "trainium2", "'2024-01'", '"x"', "__class__", "[0]", "{", "}", "~", "\\", "\x1b", "\u202e", "\u0663", "\u00d7", "999999999999999999999999", "1e999", "source", "as_of", "in", "like"]  # fmt: skip
UNITS = [*(unit.symbol for unit in TABLE), "KB", "b", "Gb/s", "Gbps", "parsec"]

TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join) | st.text(max_size=30)
FIGURES = st.tuples(
    st.sampled_from(["", "~", ">", ">=", "<", "up to ", "over ", "-", "+", "  "]),
    st.from_regex(r"[0-9,._eE+-]{1,12}|[0-9]{1,3}(,[0-9]{3}){0,30}", fullmatch=True) | st.text(max_size=4),
    st.sampled_from(["", " ", "  ", "\t", "\u00a0"]),
    st.sampled_from(UNITS) | st.text(max_size=4),
).map("".join) | st.text(max_size=40)


def _catalog() -> Catalog:
    return Catalog(link([*fuzzing.context()])[0])


def _overlays(data: st.DataObject) -> str:
    changes = {
        data.draw(st.sampled_from(["trainium2", "trn2.48xlarge", "neuronlink-v3", "nothing", ""])): data.draw(
            st.dictionaries(
                st.sampled_from(
                    ["memory.capacity", "memory", "chips.count", "peak.dense.bf16", "chips.chip", "x.y", "", "name"]
                ),
                fuzzing.SCALARS | st.just({"value": "1 GiB", "source": "trainium2"}),
                max_size=3,
            )
        )
    }
    added = [fuzzing.base(data.draw(st.sampled_from(fuzzing.BASES)))] if data.draw(st.booleans()) else []
    return fuzzing.written(
        data.draw(st.just({"change": changes, "add": added}) | st.just({"change": added, "x": changes}))
    )


def documents(data) -> None:
    text = data.draw(fuzzing.document_texts())
    fuzzing.exercise(text, tuple(data.draw(st.lists(st.sampled_from(fuzzing.COMMANDS), min_size=1, max_size=FEW))))


def small_inputs(data) -> None:
    """Queries, figures, overlays, editions, settings and tables of measurements."""
    catalog = _catalog()
    fuzzing.run(catalog, "query", data.draw(TEXTS).replace("|", "/") or "chip")
    figure = data.draw(FIGURES)
    with fuzzing.stage("figure"):
        quantity = parse(figure)
        assert parse(quantity.text) == quantity
        render(quantity.value, quantity.unit, quantity.digits)
    Path("overlay.yaml").write_bytes(_overlays(data).encode("utf-8", "surrogatepass"))
    fuzzing.run(catalog, "show", "trainium2", "--overlay", "overlay.yaml")
    text = bytearray(_edition())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    with fuzzing.stage("edition"):
        editions.read(bytes(text), KNOWN)
    lines = data.draw(st.lists(st.sampled_from(SETTINGS) | st.text(max_size=20), max_size=4))
    Path("trnspec.toml").write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    with fuzzing.stage("settings"):
        settings_.find(Path.cwd()).verify(KNOWN.codes)
    _measurements(data)


SETTINGS = (
    'select = ["TRN4"]', "ignore = []", 'severity = {TRN402 = "warning"}', 'catalogs = ["/", "."]', "select = 3", "[tool]", "x = " + "[" * 200,
    'severity = {TRN402 = "loud"}', 'select = ["\\u0000"]', "a.b.c = 1979-05-27",
)  # fmt: skip


def _edition() -> bytes:
    return editions.freeze(_catalog().graph, "2099.01").encode()


CELLS = st.sampled_from(
    ["training", "inference", "collective", "trn2.48xlarge", "16", "0", "-1", "1e999", "nan", "bf16", "", "yes"]
) | st.text(max_size=8)
COLUMNS = (
    "kind,id,model,hardware,n_chips,n_nodes,precision,tp,pp,dp,global_batch,micro_batch,seq_len,step_time_s,tokens_per_s,mfu_pct,framework,"
    "framework_version,source,note"
)
TABLE = """api_version: trnspec/v1
kind: Measurements
metadata: {name: fuzzed, title: T, source: neuron-trn2-2026-08}
spec: {data: fuzzed.csv, hardware: {trn2: trn2.48xlarge}}
"""


def _measurements(data) -> None:
    rows = data.draw(st.lists(st.lists(CELLS, min_size=1, max_size=20), max_size=3))
    Path("fuzzed.csv").write_bytes("\n".join([COLUMNS, *map(",".join, rows)]).encode("utf-8", "surrogatepass"))
    with fuzzing.stage("table"):
        read_table(Path("fuzzed.csv"))
    with fuzzing.stage("measurements"):
        report = check([load_document(read_text(TABLE, "fuzzed.yaml"), KNOWN), *fuzzing.context()], KNOWN).report
        assert "TRN900" not in {d.code for d in report.diagnostics}, report.diagnostics


def _fuzz(seconds: float, first: int) -> int:
    """Examples of both targets in turn, until the time is over; the number of rounds."""
    end, number = time.monotonic() + seconds, first
    rules = settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    while time.monotonic() < end:
        target = (documents, documents, small_inputs)[number % 3]
        seed(number)(rules(given(st.data())(target)))()
        number += 1
    return number - first


@pytest.mark.slow
def test_fuzz(tell) -> None:
    """Every round has another seed: FUZZ_SEED is the first one, or ``random``, as ``make fuzz`` sets it."""
    seconds = float(os.environ.get("FUZZ_SECONDS", "10"))
    chosen = os.environ.get("FUZZ_SEED", "1")
    first = random.randrange(10**9) if chosen == "random" else int(chosen)
    print(f"FUZZ_SEED={first}", flush=True)  # noqa: T201  # to repeat a run that fails
    with fuzzing.limits():
        rounds = _fuzz(seconds, first)
    tell("fuzzing", [f"{rounds} rounds of 25 examples in {seconds:g} s, FUZZ_SEED={first}"])


def test_a_failure_is_noticed(monkeypatch) -> None:
    """The harness finds an error, a loop without end, and output that a terminal obeys."""
    catalog = _catalog()

    def fail(*_, **__):
        raise AttributeError("'Model' object has no attribute 'as_of'")

    def loop(*_, **__):
        while True:
            pass

    def escape(*_):
        click.echo("\x1b]0;t\x07", color=True)

    for name, broken, error in (
        ("_page", fail, AttributeError),
        ("_page", loop, AssertionError),
        ("emit", escape, AssertionError),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"trnspec.cli.show.{name}", broken)
            patched.setattr(fuzzing, "SECONDS", 1.0)
            with pytest.raises(error):
                fuzzing.run(catalog, "show", "neuronlink-v3")
