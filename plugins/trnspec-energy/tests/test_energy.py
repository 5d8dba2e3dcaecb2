"""The evaluator ``energy``: power x time, with the interval of the power; never a power without a source."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from trnspec_energy import plugin as under_test
from trnspec_energy.evaluate import EnergyQuestion
from trnspec_energy.evaluate import energy as evaluated

import trnspec
from trnspec.cli.eval import evaluator_command
from trnspec.errors import RefusalError
from trnspec.evaluation.inputs import bound, fields_of
from trnspec.testing import EvaluatorConformance

DATA = Path(__file__).parent / "data"
CATALOG = trnspec.load()


def energy(catalog, **given):
    return evaluated(catalog, EnergyQuestion(**bound(fields_of(EnergyQuestion), given, "energy")))


ARGS = '--on "trn2.48xlarge*4" --hours 24 --power "500 W" --pue 1.1'


class TestEnergy(EvaluatorConformance):
    """The catalog has no power, so it is given."""

    plugin = under_test
    name = "energy"
    good = (
        {"on": "trn2.48xlarge", "hours": 24.0, "power": "500 W"},
        {"on": "trn1.32xlarge*4", "step_time": 2.5, "steps": 1000, "power": "~300 W", "share": 0.7, "pue": 1.1},
        {"on": "trainium2", "chip_hours": 10.0, "power": "up to 1 kW"},
    )
    bad = (
        ({"on": "trn1.32xlarge", "hours": 1.0}, "unknown-figure"),
        ({"on": "trn1.32xlarge"}, "misuse"),
        ({"on": "trn1.32xlarge", "hours": 1.0, "power": "500"}, "misuse"),
        ({"on": "nothing", "hours": 1.0}, "misuse"),
    )


class TestEnergyOfTheCatalog(EvaluatorConformance):
    """With an overlay that adds a power; without the figure there is no answer."""

    plugin = under_test
    name = "energy"
    overlay = DATA / "power.yaml"
    good = ({"on": "trn2.48xlarge*2", "hours": 24.0, "pue": 1.2}, {"on": "trn2-ultraserver", "hours": 0.5})
    bad = (({"on": "trn1.32xlarge", "hours": 1.0}, "unknown-figure"),)


def values(**inputs):
    found = energy(CATALOG, **inputs)
    return {a.name: a.value for a in found.answers}


def test_hand_computed() -> None:
    """16 chips of 500 W for 24 h are 192 kWh."""
    found = energy(CATALOG, on="trn2.48xlarge", hours=24.0, power="500 W")

    assert {"energy": 192 * 3.6e6, "mean_power": 8000.0, "chip_hours": 384.0} == {
        a.name: a.value for a in found.answers
    }
    assert (499.5 / 500 * 192 * 3.6e6, 500.5 / 500 * 192 * 3.6e6) == pytest.approx(
        (found.answer("energy").low, found.answer("energy").high)
    )


def test_three_ways_to_state_the_duration() -> None:
    ways = [{"hours": 2.0}, {"chip_hours": 32.0}, {"step_time": 7.2, "steps": 1000}]

    assert {2 * 16 * 100 * 3600.0} == {values(on="trn1.32xlarge", power="100 W", **way)["energy"] for way in ways}


def test_share_and_building() -> None:
    found = values(on="trn1.2xlarge*3", hours=1.0, power="100 W", share=0.5, pue=1.5)

    assert (3 * 50 * 3600.0, 3 * 75 * 3600.0) == (found["energy"], found["facility_energy"])


def test_lower_bound_of_power_has_no_upper_end() -> None:
    answer = energy(CATALOG, on="trainium1", hours=1.0, power=">= 100 W").answer("energy")

    assert (None, True) == (answer.high, answer.low is not None)


def test_figure_of_the_catalog_is_named_with_its_source() -> None:
    chip = CATALOG.overlay(DATA / "power.yaml")
    (figures_used,) = energy(chip, on="trn2.48xlarge", hours=1.0).figures_used

    assert ("trainium2", "power", "450 W", "power-sheet", "2026-01") == (
        figures_used.of, figures_used.at, figures_used.says, figures_used.source, figures_used.as_of,
    )  # fmt: skip


def test_unknown_power_is_refused() -> None:
    with pytest.raises(RefusalError, match="no power of trainium1") as caught:
        energy(CATALOG, on="trn1.32xlarge", hours=1.0)
    assert ("unknown-figure", "trainium1 spec.power") == (caught.value.reason, caught.value.place)


def test_a_claim_is_not_an_adopted_power() -> None:
    """Only the press states a power of Trainium3, of the time before its launch."""
    with pytest.raises(RefusalError, match="no power of trainium3; claims: over 1,000 W, unresolved") as caught:
        energy(CATALOG, on="trainium3", hours=1.0)
    assert "unknown-figure" == caught.value.reason


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "or step_time and steps"),
        ({"hours": 1.0, "chip_hours": 1.0}, "not hours and chip_hours"),
        ({"step_time": 1.0}, "must be given together"),
        ({"hours": 1.0, "steps": 3}, "must be given together"),
        ({"hours": 0.0}, "above 0, not 0"),
        ({"step_time": 1e308, "steps": 1000}, "out of range"),
        ({"hours": 1.0, "share": 1.5}, "from 0 to 1 is expected, not 1.5"),
        ({"hours": 1.0, "pue": 0.9}, "of at least 1 is expected, not 0.9"),
        ({"hours": 1.0, "power": "500 GB"}, "measures information"),
        ({"hours": 1.0, "power": "0 W"}, "more than 0 W"),
    ],
)
def test_misuse(inputs, message) -> None:
    with pytest.raises(trnspec.UsageError, match=message):
        energy(CATALOG, **{"on": "trn1.32xlarge", "power": "300 W", **inputs})


@pytest.mark.parametrize("on", ["", "*4", "trn1.32xlarge*0", "trn1.32xlarge*", "trn1.32xlarge x 4"])
def test_no_system(on) -> None:
    with pytest.raises(trnspec.TrnspecError):
        energy(CATALOG, on=on, hours=1.0, power="300 W")


def test_the_readme_shows_what_is_printed(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    command = evaluator_command(under_test.evaluators[0], "the plugin")
    done = CliRunner().invoke(command, shlex.split(ARGS))
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    assert 0 == done.exit_code, done.output
    assert f"$ trnspec eval {under_test.evaluators[0].name} {ARGS}\n{done.output}```" in readme
