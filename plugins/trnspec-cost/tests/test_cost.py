"""The evaluator ``cost``: price times servers times hours, on the word of a source or of the caller; never a guess."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from trnspec_cost import plugin as under_test
from trnspec_cost.evaluate import CostQuestion
from trnspec_cost.evaluate import cost as evaluated

import trnspec
from trnspec.builtin import plugin as builtin
from trnspec.cli.eval import evaluator_command
from trnspec.errors import RefusalError
from trnspec.plugins.api import Registry
from trnspec.testing import EvaluatorConformance

REGISTRY = Registry.of([builtin, under_test])
CATALOG = trnspec.load(registry=REGISTRY)


def cost(catalog, **given):
    return evaluated(catalog, CostQuestion(**given))


ARGS = '--on "trn1.32xlarge*4" --hours 10 --price "21.50 USD/h" --tokens 2e9'


class TestCost(EvaluatorConformance):
    plugin = under_test
    name = "cost"
    good = (
        {"on": "trn1.32xlarge*4", "hours": 10.0},
        {"on": "trn2-ultraserver", "step_time": 3.0, "steps": 1200, "price": "35.76 USD/h", "tokens": 1e9},
        {"on": "trn1.32xlarge", "hours": 1.0, "price_type": "spot", "region": "us-east-2c"},
    )
    bad = (
        ({"on": "trn2.48xlarge", "hours": 1.0}, "unknown-figure"),
        ({"on": "trn1.32xlarge", "hours": 1.0, "region": "Mars"}, "unknown-figure"),
        ({"on": "trn1.32xlarge", "hours": 1.0, "price_type": "capacity-block"}, "unknown-figure"),
        ({"on": "trn1.32xlarge", "hours": 1.0, "price_type": "free"}, "misuse"),
        ({"on": "trainium1", "hours": 1.0}, "misuse"),
        ({"on": "trn1.32xlarge", "hours": 1.0, "price": "21.50"}, "misuse"),
    )


def test_hand_computed() -> None:
    """4 servers of 21.50 USD/h for 10 h are 860 USD, and each digit of the price counts."""
    found = cost(CATALOG, on="trn1.32xlarge*4", hours=10.0)

    assert {"cost": 860.0, "hourly": 86.0, "chip_hour": 21.5 / 16, "server_hours": 40.0} == pytest.approx(
        {a.name: a.value for a in found.answers}
    )
    assert (859.8, 860.2) == pytest.approx((found.answer("cost").low, found.answer("cost").high))


def test_a_price_has_source_and_date() -> None:
    (figures_used,) = cost(CATALOG, on="trn1.32xlarge", hours=1.0).figures_used

    assert ("trn1.32xlarge-on-demand", "hourly.us-east-1", "21.50 USD/h", "karpenter-pricing-2026-07", "2026-07-20") == (
        figures_used.of, figures_used.at, figures_used.says, figures_used.source, figures_used.as_of,
    )  # fmt: skip


def test_ultraserver_is_its_servers() -> None:
    found = cost(CATALOG, on="trn2-ultraserver*2", hours=1.0, price="10 USD/h")

    assert (80.0, 10 / 16) == (found["cost"], found["chip_hour"])


def test_a_million_tokens() -> None:
    found = cost(CATALOG, on="trn1.32xlarge", step_time=3.6, steps=1000, price="20 USD/h", tokens=4e6)

    assert (20.0, 5.0) == pytest.approx((found["cost"], found["million_tokens"]))


def test_type_and_region_choose() -> None:
    found = cost(CATALOG, on="trn2.48xlarge", hours=1.0, price_type="capacity-block")

    assert 35.76 == pytest.approx(found["cost"])
    assert ("35.76 USD/h per server", "capacity-block, 24 h, ap-south-2b, 2026-10-03") == next(
        (a.value, a.why) for a in found.assumptions if a.name == "price"
    )
    assert 4.1506 == pytest.approx(cost(CATALOG, on="trn1.32xlarge", hours=1.0, price_type="spot")["cost"])
    assert 2.15 == cost(CATALOG, on="trn1.32xlarge", hours=1.0, price_type="spot", region="us-east-2")["cost"]


def test_a_type_that_is_not_sold_is_refused_with_its_source() -> None:
    with pytest.raises(
        RefusalError, match=r"no on-demand price of trn2\.48xlarge; none is listed .* spot .*"
    ) as caught:
        cost(CATALOG, on="trn2.48xlarge", hours=1.0)
    assert ("unknown-figure", "trn2.48xlarge on-demand") == (caught.value.reason, caught.value.place)


def test_prices_of_an_earlier_date() -> None:
    """No price was published before the first list of the catalog."""
    with pytest.raises(RefusalError, match=r"no on-demand price of trn1\.32xlarge"):
        cost(CATALOG.then("2024-01"), on="trn1.32xlarge", hours=1.0)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "either hours, or step_time and steps"),
        ({"hours": 1.0, "step_time": 1.0}, "either hours, or step_time and steps"),
        ({"step_time": 1.0}, "must be given together"),
        ({"hours": 1.0, "steps": 1}, "must be given together"),
        ({"hours": 0.0}, "more than 0 is expected, not 0"),
        ({"step_time": -1.0, "steps": 1}, "must be above 0"),
        ({"step_time": 1e308, "steps": 10**6}, "out of range"),
        ({"hours": 1.0, "tokens": 0.0}, "tokens: more than 0"),
        ({"hours": 1.0, "price": "3 W"}, "price: '3 W'|measures power"),
        ({"hours": 1.0, "on": "trainium1"}, "Chip trainium1 has no price"),
        ({"hours": 1.0, "on": "*2"}, "a system and a count are expected"),
    ],
)
def test_misuse(inputs, message) -> None:
    with pytest.raises(trnspec.UsageError, match=message):
        cost(CATALOG, **{"on": "trn1.32xlarge", **inputs})


def test_the_readme_shows_what_is_printed(monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    command = evaluator_command(under_test.evaluators[0], "the plugin")
    done = CliRunner().invoke(command, shlex.split(ARGS))
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    assert 0 == done.exit_code, done.output
    assert f"$ trnspec eval {under_test.evaluators[0].name} {ARGS}\n{done.output}```" in readme
