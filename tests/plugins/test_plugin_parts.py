"""Kinds of a plugin that are built of parts, in every command that traverses parts."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.plugins.rack_kinds import install
from tests.support.programs import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    """The command line where the plugin is installed; no test here changes it."""
    installed = Site(tmp_path_factory.mktemp("site"))
    install(installed)
    return installed


def out(site: Site, *args: str) -> str:
    done = site.run(*args)

    assert (0, "") == (done.status, done.err)
    return done.out


def test_tree(site) -> None:
    rows = list(csv.DictReader(io.StringIO(out(site, "tree", "tile-hall", "--format", "csv"))))

    assert [(r["depth"], r["name"], r["count"], r["all together"]) for r in rows] == [
        ("0", "tile-hall", "1", "1"),
        ("1", "tile-rack", "10", "10"),
        ("2", "tile-server", "3", "30"),
        ("3", "tile-1", "4", "120"),
        ("2", "tile-pod", "2", "20"),
        ("3", "tile-server", "2", "40"),
        ("4", "tile-1", "4", "160"),
    ]


def test_query_and_eval(site) -> None:
    found = json.loads(out(site, "query", "rack where memory.capacity > 1.9 TiB", "--format", "json"))
    arguments = ("--model", "llama-3.1-8b", "--tp", "4", "--zero", "1", "--global-batch", "64", "--seq", "2048")
    rack, servers = (
        json.loads(out(site, "eval", "training", "--on", on, *arguments, "--format", "json"))
        for on in ("plain-rack", "tile-server*8")
    )

    assert ["plain-rack"] == [row["name"] for row in found["rows"]]
    assert rack["answers"]
    assert rack["answers"] == servers["answers"]


def test_new(site) -> None:
    given = ("--set", "scratch=1 GiB", "--set", "memory.capacity=8 GiB")
    text = out(site, "new", "tilechip", "tile-2", "--source", "neuron-trn2-2026-08", *given)

    assert "kind: TileChip\n" in text
    assert "  scratch: 1 GiB\n" in text
