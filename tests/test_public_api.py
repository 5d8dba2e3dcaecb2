"""The names of trnspec: what is exported, short reprs of everything, and errors of misuse."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from click import Command as ClickCommand

import trnspec
from tests.support.programs import ROOT
from trnspec import Amount, Quantity, QuantityError, TrnspecError
from trnspec.api import registry
from trnspec.perf.sweep.batch import Top, estimators, sweep
from trnspec.short_repr import LIMIT, abbreviated, short_repr

CAT = trnspec.load()
CHIP = CAT.chips["trainium2"]
CAPACITY, BANDWIDTH = CHIP.figure("memory.capacity"), CHIP.figure("memory.bandwidth")


def test_every_name_can_be_imported() -> None:
    assert [n for n in trnspec.__all__ if getattr(trnspec, n, None) is None] == []
    assert sorted(set(trnspec.__all__)) == sorted(trnspec.__all__)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Chipp'"):
        trnspec.Chipp  # noqa: B018


def test_import_is_cheap() -> None:
    """``import trnspec`` imports nothing of it but the version."""
    code = "import sys, json, trnspec; print(json.dumps(sorted(m for m in sys.modules if m.startswith('trnspec'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert json.loads(done.stdout) == ["trnspec", "trnspec._version"]


@pytest.mark.parametrize("value", [CAPACITY, CAPACITY.amount, CAPACITY.value], ids=["figure", "amount", "quantity"])
@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (lambda x: x > 3, "no-unit"),
        (lambda x: 3 < x, "no-unit"),
        (lambda x: x <= 3.5, "no-unit"),
        (lambda x: x > None, "malformed"),
        (lambda x: x >= "3 TB/s", "dimension"),
        (lambda x: x < "3", "no-unit"),
        (lambda x: x < "much", "malformed"),
        (lambda x: x > BANDWIDTH, "dimension"),
        (lambda x: x.agrees(3), "no-unit"),
        (lambda x: x.agrees(BANDWIDTH.amount), "dimension"),
        (lambda x: x + 3, "no-unit"),
        (lambda x: 3 + x, "no-unit"),
        (lambda x: x - "3 GB", "malformed"),
        (lambda x: 3 - x, "dimension"),
        (lambda x: x + BANDWIDTH, "dimension"),
        (lambda x: x * "2", "dimension"),
        (lambda x: x * float("nan"), "dimension"),
        (lambda x: x * x, "dimension"),
        (lambda x: x / 0, "dimension"),
        (lambda x: x / None, "dimension"),
        (lambda x: 1 / x, "dimension"),
        (lambda x: sum([1, x]), "no-unit"),
        (lambda x: f"{x:d}", "malformed"),
        (lambda x: x.to("GB/s"), "dimension"),
        (lambda x: x.to("parsec"), "unknown-unit"),
    ],
)  # fmt: skip
def test_misuse_of_figures(value, operation, reason) -> None:
    with pytest.raises(QuantityError) as caught:
        operation(value)

    assert caught.value.reason == reason
    assert isinstance(caught.value, TrnspecError)


@pytest.mark.parametrize("value", [BANDWIDTH, BANDWIDTH.amount, BANDWIDTH.value], ids=["figure", "amount", "quantity"])
def test_comparison_with_texts(value) -> None:
    """2.9 TB/s, and its interval [2.85, 2.95)."""
    assert (value > "2.8 TB/s", value >= "2,900 GB/s", value < "2.9 TB/s", value <= "2.9 TB/s") == (
        True, True, False, True,
    )  # fmt: skip
    assert ("3 TB/s" > value, value.agrees("2.94 TB/s"), value.agrees("2.96 TB/s")) == (True, True, False)


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (BANDWIDTH, ".2f", "2.90 TB/s"),
        (BANDWIDTH.value, ".0f", "3 TB/s"),
        (BANDWIDTH.amount * 16, ",.1f", "46.4 TB/s"),
        (Quantity.parse("up to 6.7x"), ".3f", "up to 6.700x"),
        (Quantity.parse("~190 TFLOPS"), "g", "~190 TFLOPS"),
        (Quantity.parse("2.9 TB/s"), "", "2.9 TB/s"),
        (Amount.parse("96 GiB"), "", "96 GiB"),
        (Amount.parse("96 GiB") / Amount.parse("2 TB/s"), ".3f", "51.540 ms"),
    ],
)
def test_format(value, spec, text) -> None:
    assert format(value, spec) == text


def test_figures_outside_a_catalog_have_no_provenance() -> None:
    """The members of a figure of a catalog exist in every figure, and are empty."""
    figure = trnspec.Figure(value=Quantity.parse("2.9 TB/s"))
    names = [a.name for a in attrs.fields(trnspec.Stated) if a.name not in attrs.fields_dict(trnspec.Figure)]

    assert {n: getattr(figure, n) for n in names} == {
        "of": "", "at": "", "scope": "", "source_name": "", "cited": "", "source_title": "", "as_of": "", "conflicting": (),
    }  # fmt: skip
    assert str(figure) == f"{figure}" == "2.9 TB/s"


def objects():
    """Public objects of a session, and everything that they hold."""
    evaluation = trnspec.evaluate("memory", CAT, model="llama-3.1-70b", on="trn2.48xlarge", seq=8192, tp=32)
    changed = CAT.replace("trainium2", {"memory.capacity": "128 GiB", "memory.bandwidth": None})
    known = registry()
    found = sweep(estimators(CAT.graph, ["llama-3.1-8b"], ["trn2.48xlarge"]), keep=Top(2), seq=4096, global_batch=64)
    report = trnspec.validate([str(ROOT / "catalog" / "links")]).report
    return {
        "catalog": CAT,
        "named": [CAT.chips, CAT.models, CAT.sources, CAT.of(type(CHIP.node.spec))],
        "views": list(CAT),
        "nodes": list(CAT.graph),
        "specs": [n.spec for n in CAT.graph],
        "parts": [
            part
            for view in CAT
            for part in (getattr(view, a.name) for a in attrs.fields(type(view)) if a.repr)
            if attrs.has(type(part))
        ],
        "graph": CAT.graph,
        "figures": [f for view in CAT for f in view.figures.values()],
        "plain figures": [f for n in CAT.graph for f in CAT.graph.figures(n).values()],
        "amounts": [f.amount for f in CHIP.figures.values()],
        "quantities": [f.value for f in CHIP.figures.values()],
        "units": [*BANDWIDTH.value.table, BANDWIDTH.value.table, BANDWIDTH.interval],
        "claims": [c for view in CAT for values in view.claims.values() for c in values],
        "evaluation": [evaluation, *evaluation.answers, *evaluation.parts, *evaluation.assumptions,
                       *evaluation.figures_used, *evaluation.tables],
        "differences": [CAT.diff(changed), *CAT.diff(changed).figures, *CAT.diff(changed).words, *CAT.diff(changed).claims],
        "result": CAT.query("model"),
        "report": [report, *report.diagnostics, *report.codes],
        "plugins": [*known.plugins, known],
        "registered": [*known.rules, *known.kinds.values(), *known.evaluators.values(), *known.codes.values(),
                       *(c for p in known.plugins for c in p.commands)],
        "sweep": [found, *(layout for _, layout in found.layouts())],
        "topology": [CAT["trn2-ultraserver"].topology, CAT["trn2-ultraserver"].topology.bisection()],
    }  # fmt: skip


def test_reprs_are_short() -> None:
    long = {
        (group, type(item).__name__): len(repr(item))
        for group, items in objects().items()
        for item in (items if isinstance(items, list) else [items])
        if len(repr(item)) > LIMIT
    }

    assert long == {}


def test_reprs_of_errors(tmp_path: Path) -> None:
    (tmp_path / "wire.yaml").write_text(
        "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: W}\nspec: {conects: chips}\n"
    )
    report = trnspec.validate([str(tmp_path)]).report

    assert report.diagnostics
    assert [d for d in (report, *report.diagnostics) if len(repr(d)) > LIMIT] == []
    assert all(d.code in repr(d) for d in report.diagnostics)


def test_short_repr() -> None:
    """Defaults are left out, long values cut, and what has no room is dots."""

    @attrs.frozen
    class Thing:
        name: str
        items: tuple[int, ...] = ()
        note: str = ""
        _hidden: int = attrs.field(default=0, repr=False)

        __repr__ = short_repr

    assert repr(Thing("x")) == "Thing(name='x')"
    assert repr(Thing("x", (1, 2, 3, 4), "n", 7)) == "Thing(name='x', items=(1, 2, 3, ...), note='n')"
    assert repr(Thing("x", ((1, (2, (3,))),), "n")) == "Thing(name='x', items=((1, (...)),), note='n')"
    assert repr(Thing("x", (), "n")) == "Thing(name='x', note='n')"
    assert repr(Thing("x" * 59)) == f"Thing(name='{'x' * 27}...{'x' * 28}')"
    assert repr(Thing("x" * 58)) == f"Thing(name='{'x' * 58}')"
    assert len(repr(Thing("x" * 500, tuple(range(500)), "y" * 500))) <= LIMIT
    assert [200, 200] == [len(abbreviated("x" * length)) for length in (200, 201)]
    assert abbreviated("x" * 201) == "x" * 197 + "..."


def test_reprs_name_kind_and_document() -> None:
    assert repr(CHIP) == "<Chip trainium2: AWS Trainium2>"
    assert repr(BANDWIDTH) == (
        "<Stated 2.9 TB/sec: memory.bandwidth of trainium2, neuron-trainium2-2026-08 2026-08-21>"
    )
    assert repr(BANDWIDTH.amount) == "<2.9 TB/s>"
    assert repr(BANDWIDTH.value) == "<Quantity 2.9 TB/sec>"


def test_commands_are_click_commands() -> None:
    """``Command`` is that of the plugin interface, which loads one of click."""
    (command, *_) = registry().plugins[0].commands

    assert isinstance(command, trnspec.Command)
    assert isinstance(command.load(), ClickCommand)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda cat: cat.of("Chip"), "'Chip' is not the class of a kind"),
        (lambda cat: cat.of(int), "<class 'int'> is not the class of a kind"),
        (lambda cat: cat.diff("2026.11"), "'2026.11' is not a catalog"),
    ],
)
def test_arguments_of_wrong_types(call: Any, message: str) -> None:
    """They raise an error of trnspec with what to pass."""
    with pytest.raises(trnspec.UsageError, match=message) as raised:
        call(CAT)
    assert raised.value.hint.startswith("pass ")
