"""Explanations of plugins in ``trnspec audit``, as in ``trnspec validate``."""

import pytest

from tests.support.invented_plugins import ACME, SERVER
from tests.support.programs import Site, written

EXPLAIN = """
from trnspec.checks.reconcile.hypotheses import Explanation

def moon(case):
    yield Explanation("moon", "the moon was full")
"""


@pytest.fixture
def site(tmp_path) -> Site:
    made = Site(tmp_path / "site")
    made.plugin("moon", "explanations=(moon,)", head=EXPLAIN)
    for name, text in {**ACME, "servers/acme-server.yaml": SERVER.replace("512 GiB", "577 GiB")}.items():
        written(made.folder / "catalog" / name, text)
    return made


def causes(site, *before) -> dict[str, list[str]]:
    """What an audit of the catalog reports of each disagreement."""
    done = site.run(*before, "audit", "acme-server", "--catalog", "catalog", "--format", "json")
    found = done.data["disagreements"]

    assert (1, "") == (done.status, done.err)
    return {d["at"]: [c["sentence"] for c in d["causes"]] for d in found}


def test_explanations_are_reported(site) -> None:
    at = "spec.stated.memory.capacity"

    assert {at: ["the moon was full"]} == causes(site)
    assert {at: []} == causes(site, "--no-plugins")
