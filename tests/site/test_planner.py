"""The page of plans: its numbers are those that the commands print, and the selects choose a case."""

import shlex

import pytest

from trnspec.site.planner import COLUMNS

pytestmark = pytest.mark.slow


def test_numbers_are_those_of_the_commands(plans, here) -> None:
    """Each row is one of the page that the command prints, and the systems have the order of its JSON."""
    for case in plans:
        program, *args = shlex.split(case.command)
        assert program == "trnspec"
        lines = here(*args, "--format", "markdown", "--full").out.splitlines()
        cells = [{cell.strip() for cell in line.split("|")} for line in lines if line.startswith("|")]
        assert case.rows
        assert len(COLUMNS[case.phase]) == len(case.columns) == len(case.rows[0])
        for row in case.rows:
            assert any({cell for cell in row if cell != "-"} <= found for found in cells), (case.id, row)
        printed = here(*args, "--format", "json").data["tables"][0]
        at = printed["columns"].index("system")
        assert [row[0] for row in case.rows] == [row[at] for row in printed["rows"]][:8]


def test_selects_choose_a_case(opened, plans) -> None:
    page = opened("planner.html")
    visible = page.locator("section.case:visible")
    assert visible.count() == 1
    assert visible.get_attribute("id") == plans[0].id

    page.select_option("#phase", "serve")
    assert visible.get_attribute("id") == plans[1].id
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.select_option("#load", plans[2].load)
    assert visible.get_attribute("id") == plans[2].id
    assert page.url.endswith(f"#case={plans[2].id}")
    assert page.locator("section.case:visible tbody tr").count() == len(plans[2].rows)


def test_the_address_names_a_case(opened, plans) -> None:
    page = opened(f"planner.html#case={plans[2].id}")
    assert page.locator("section.case:visible").get_attribute("id") == plans[2].id
    assert page.input_value("#load") == plans[2].load
    assert page.evaluate("scrollY") == 0


def test_a_site_without_plans_has_no_such_page() -> None:
    from trnspec.api import graph
    from trnspec.site.build import build

    pages = build(graph())
    assert "planner.html" not in pages
    assert b"planner.html" not in pages["index.html"]
