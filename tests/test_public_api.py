"""The names of trnspec: what is exported, short reprs of everything, and errors of misuse."""

from __future__ import annotations

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
from trnspec.short_repr import LIMIT, short_repr

CAT = trnspec.load()
CHIP = CAT.chips["trainium2"]
CAPACITY, BANDWIDTH = CHIP.figure("memory.capacity"), CHIP.figure("memory.bandwidth")


# Names.


def exists(name: str) -> bool:
    """``Reporter`` belongs to a later version of the plugin interface."""
    return name != "Reporter" or hasattr(sys.modules["trnspec.plugins.api"], "Reporter")


def test_every_name_can_be_imported() -> None:
    assert [n for n in trnspec.__all__ if exists(n) and getattr(trnspec, n, None) is None] == []
    assert sorted(set(trnspec.__all__)) == sorted(trnspec.__all__)


def test_the_public_classes_are_those_in_use() -> None:
    used = {type(CAT): "Catalog", type(BANDWIDTH): "Stated", type(BANDWIDTH.amount): "Amount"}

    assert all(getattr(trnspec, name) is cls for cls, name in used.items())
    assert isinstance(CHIP, trnspec.DocumentView)
    assert isinstance(CHIP.node, trnspec.Node)
    assert isinstance(CAT.graph, trnspec.Graph)


def test_the_reference_lists_every_name() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")

    assert [n for n in trnspec.__all__ if f"`{n}`" not in page] == []


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Chipp'"):
        trnspec.Chipp  # noqa: B018


def test_import_is_cheap() -> None:
    """``import trnspec`` imports nothing of it but the version."""
    code = "import sys, json, trnspec; print(json.dumps(sorted(m for m in sys.modules if m.startswith('trnspec'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert json.loads(done.stdout) == ["trnspec", "trnspec._version"]


# Misuse.


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


@pytest.mark.parametrize(
    ("operation", "hint"),
    [
        (lambda: BANDWIDTH > 3, 'compare with a text such as "3 TB/s"'),
        (lambda: BANDWIDTH > None, "None is a figure that is not published"),
        (lambda: CAPACITY + 3, 'write a quantity such as Amount.parse("3 GiB")'),
        (lambda: BANDWIDTH > "3 TB", "did you mean 3 TB/s?"),
        (lambda: f"{BANDWIDTH:s}", "use a format for floats, such as .2f"),
    ],
)
def test_hints_of_misuse(operation, hint) -> None:
    """The hint is an attribute and a note, which a traceback prints."""
    with pytest.raises(QuantityError) as caught:
        operation()

    assert caught.value.hint == hint
    assert caught.value.__notes__ == [f"hint: {hint}"]


# Comparison, sums and formats.


@pytest.mark.parametrize("value", [BANDWIDTH, BANDWIDTH.amount, BANDWIDTH.value], ids=["figure", "amount", "quantity"])
def test_comparison_with_texts(value) -> None:
    """2.9 TB/s, and its interval [2.85, 2.95)."""
    assert (value > "2.8 TB/s", value >= "2,900 GB/s", value < "2.9 TB/s", value <= "2.9 TB/s") == (
        True, True, False, True,
    )  # fmt: skip
    assert ("3 TB/s" > value, value.agrees("2.94 TB/s"), value.agrees("2.96 TB/s")) == (True, True, False)


def test_comparison_of_all_kinds_of_values() -> None:
    kinds = [BANDWIDTH, BANDWIDTH.amount, BANDWIDTH.value]

    assert all(a >= b and a <= b and not a < b and a.agrees(b) for a in kinds for b in kinds)
    assert all((a + b) == Amount.parse("5.8 TB/s") and float(a / b) == 1 for a in kinds for b in kinds)


def test_equality_is_not_that_of_values() -> None:
    """Figures and quantities are equal if everything is; amounts are equal if their values are."""
    assert Quantity.parse("1,000 GB") != Quantity.parse("1 TB")
    assert Amount.parse("1,000 GB") == Amount.parse("1 TB")
    assert CAPACITY != "96 GiB"


def test_sum() -> None:
    capacities = [CAT.chips[name].memory.capacity for name in ("trainium1", "trainium2", "trainium3")]

    assert sum(capacities).to("GiB") == 32 + 96 + 144
    assert sum(c.amount for c in capacities) == sum(capacities)


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


# Reprs.


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
    assert len(repr(Thing("x" * 500, tuple(range(500)), "y" * 500))) <= LIMIT


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


# Typed access.


def test_documents_by_class() -> None:
    from trnspec.model.chip import Chip

    chips = CAT.of(Chip)

    assert (list(chips), chips["trainium2"] is CHIP) == (list(CAT.chips), True)


def test_where() -> None:
    """The same documents as a query that names the kind."""
    condition = "memory.capacity > 90 GiB"
    result = CAT.chips.where(condition, columns=["name", "dies"], sort="-memory.capacity")
    query = CAT.query(f"chip where {condition}", columns=["name", "dies"], sort="-memory.capacity")

    assert [c.name for c in result] == [c.name for c in query] == ["trainium3", "trainium2"]
    assert result.records() == query.records()


def test_result_as_a_frame() -> None:
    frame = CAT.query(
        "chip where known memory.capacity", columns=["name", "memory.capacity", "dies"], sort="name"
    ).to_pandas()

    assert list(frame["memory.capacity"]) == [CAT.chips[n].memory.capacity.value.value for n in frame["name"]]
    assert (list(frame["name"]), frame.attrs["units"]) == (
        ["trainium1", "trainium2", "trainium3"],
        {"memory.capacity": "B"},
    )


def test_sweep_as_records() -> None:
    prepared = estimators(CAT.graph, ["llama-3.1-8b"], ["trn2.48xlarge"])
    found = sweep(prepared, keep=Top(3), seq=4096, global_batch=64, tp=[4, 8, 16], zero=[0, 1])
    records = found.records()

    assert [r["step_time"] for r in records] == found.result.time.tolist()
    assert [(r["tp"], r["zero"]) for r in records] == [(x.tp, x.zero) for _, x in found.layouts()]
    assert {(r["model"], r["system"]) for r in records} == {("llama-3.1-8b", "trn2.48xlarge")}
    assert list(found.to_pandas()["step_time"]) == found.result.time.tolist()


def test_sweep_of_an_evaluator() -> None:
    """Every combination, in order; each is the single evaluation, or its refusal."""
    inputs = {"model": "llama-3.1-8b", "on": "trn2.48xlarge", "seq": 8192, "global_batch": 64}
    result = trnspec.sweep("training", CAT, **inputs, tp=[8, 12], zero=[0, 1])
    single = trnspec.evaluate("training", CAT, **inputs, tp=8, zero=1)
    records = result.records()

    assert [(r["tp"], r["zero"], r["refusal"]) for r in records] == [
        (8, 0, None), (8, 1, None), (12, 0, "rank-count"), (12, 1, "rank-count"),
    ]  # fmt: skip
    assert result.rows[1][1] == single
    assert {a.name: records[1][a.name] for a in single.answers} == {a.name: a.value for a in single.answers}
    assert result.units["step_time"] == "s"
    assert list(result.to_pandas()["refusal"].fillna("")) == ["", "", "rank-count", "rank-count"]
    assert len(repr(result)) <= LIMIT


def test_sweep_of_nothing() -> None:
    with pytest.raises(trnspec.UsageError, match="tp has no values"):
        trnspec.sweep("training", CAT, tp=[])


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


def test_class_of_the_result_of_validate() -> None:
    assert type(trnspec.validate(ROOT / "catalog/links")) is trnspec.Checked
