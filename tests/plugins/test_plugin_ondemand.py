"""Where plugins add catalogs and nothing else, a question about one document reads that document."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from distributions import Site
from running import environment

from trnspec.loading.index import _aliases, on_demand
from trnspec.loading.settings import Settings

HEAD = "api_version: trnspec/v1\n"
SOURCE = (
    HEAD
    + "kind: Source\nmetadata: {name: acme-page, title: Acme}\n"
    + "spec: {publisher: Acme, as_of: 2026-01, dating: not-before, rank: vendor-chip-page}\n"
)


def chip(name: str, more: str = "") -> str:
    return (
        f"{HEAD}kind: Chip\nmetadata: {{name: {name}, title: A chip, source: acme-page{more}}}\n"
        "spec:\n  peak: {dense: {bf16: 400 TFLOPS}}\n  memory: {capacity: 64 GiB}\n"
    )


SERVER = f"{HEAD}kind: Server\nmetadata: {{name: acme-server, title: S, source: acme-page}}\nspec:\n  chips: {{chip: acme-1, count: 8}}\n"
PLAIN = {"sources/acme-page.yaml": SOURCE, "chips/acme-1.yaml": chip("acme-1"), "servers/acme-server.yaml": SERVER}


@pytest.fixture
def site(tmp_path) -> Site:
    return Site(tmp_path / "site")


def read(site: Site, *names: str) -> tuple[list[str], bool]:
    """The titles of some documents, and whether everything was read to find them."""
    code = (
        "import sys, json; import trnspec.api as api; real = api.graph; read = []\n"
        "api.graph = lambda *a, **k: (read.append(1), real(*a, **k))[1]\n"
        "found = api.graph_of(); print(json.dumps([[found.named(n).kind + ' ' + found.named(n).name\n"
        "    for n in sys.argv[1:]], bool(read)]))\n"
    )
    env = environment(PYTHONPATH=str(site.folder))
    done = subprocess.run([sys.executable, "-c", code, *names], env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    told, everything = json.loads(done.stdout)
    return told, everything


def test_documents_are_found_by_their_files(site) -> None:
    site.catalog("acme", PLAIN)

    assert (["Chip acme-1", "Server acme-server", "Chip trainium2", "Source acme-page"], False) == read(
        site, "acme-1", "acme-server", "trainium2", "acme-page"
    )


@pytest.mark.parametrize(
    ("documents", "name", "found"),
    [
        # An alias; a name that is not the file's.
        ({"chips/acme-1.yaml": chip("acme-1", ", aliases: [acme-one]")}, "acme-one", "Chip acme-1"),
        ({"chips/other.yaml": chip("acme-2")}, "acme-2", "Chip acme-2"),
        # What stands in for a document of trnspec, and what may not: the other document stays.
        ({"chips/trainium2.yaml": chip("trainium2")}, "trainium2", "Chip trainium2"),
        ({"chips/trainium2.yaml": chip("trainium2", ", overrides: [spec.memory]")}, "trainium2", "Chip trainium2"),
        ({"chips/acme-1.yaml": chip("acme-1", ", aliases: [trainium2]")}, "trainium2", "Chip trainium2"),
        # An alias of trnspec as a name: refused, so the alias means what it did.
        ({"chips/u-trn2x64.yaml": chip("u-trn2x64")}, "u-trn2x64", "UltraServer trn2-ultraserver"),
    ],
)
def test_what_files_do_not_tell(site, documents, name, found) -> None:
    """Everything is read, and the answer is that of the whole catalog."""
    site.catalog("acme", {**PLAIN, **documents})

    assert ([found], True) == read(site, name)


@pytest.mark.parametrize(
    ("more", "head"),
    [
        ("units=(Unit('Mword', Dimension.INFORMATION, 4),)", "from trnspec.quantities.units import Dimension, Unit"),
        ("kinds=(Kind('Thing', 'things', Chip),)", "from trnspec.model.chip import Chip"),
        ("catalogs=(), api=API + 1", ""),
    ],
)
def test_plugins_that_add_more(site, more, head) -> None:
    if "api=" in more:
        site.add("more", "from trnspec.plugins.api import API, Plugin\nplugin = Plugin(name='more', api=API + 1)\n")
    else:
        site.plugin("more", more, head=head)

    assert (["Chip trainium2"], True) == read(site, "trainium2")


def test_two_plugins_with_one_name(site) -> None:
    site.catalog("acme", PLAIN)
    site.catalog("other", {"chips/acme-1.yaml": chip("acme-1")})

    assert (["Chip acme-1"], True) == read(site, "acme-1")


def test_catalogs_that_are_named_are_read_whole(tmp_path) -> None:
    read = []

    def everything():
        read.append(1)
        return {}

    on_demand([str(tmp_path)], Settings(), everything, [tmp_path])
    on_demand([], Settings(), everything, None)

    assert [1, 1] == read


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"metadata: {name: a, title: A}\n", set()),
        (b"metadata: {name: a, aliases: [b, c.d-e]}\n", {"b", "c.d-e"}),
        (b"metadata:\n  aliases:\n    - b\n    - 'c'  # d\n  title: x\n", {"b", "c", "d"}),
        (b'"aliases": ["b"]\n', {"b"}),
        (b'aliases: ["\\x62"]\n', None),
        (b"note: it has aliases\n", None),
        (b"aliases: [a]\nnote: aliases\n", None),
    ],
)
def test_aliases_in_a_text(text, found) -> None:
    """More words than there are aliases do no harm; fewer would."""
    assert found == _aliases(text)


@pytest.mark.slow
def test_a_slow_plugin_is_waited_for_once(site) -> None:
    """Though it is asked for twice: whether it is simple, and then what it is."""
    site.add("slow", "import time\ntime.sleep(30)\n")
    began = time.monotonic()
    quick = site.run("--no-plugins", "show", "trainium2")
    alone = time.monotonic() - began
    done = site.run("show", "trainium2", TRNSPEC_PLUGIN_SECONDS="6")

    assert (quick.out, True) == (done.out, "longer than 6 s" in done.err)
    # Twice would be 12 s and more.
    assert 6 <= time.monotonic() - began - alone < 11.5


def test_names_are_completed(site) -> None:
    site.catalog("acme", PLAIN)
    env = {"_TRNSPEC_COMPLETE": "bash_complete", "COMP_WORDS": "trnspec show acm", "COMP_CWORD": "2"}

    assert {"plain,acme-1", "plain,acme-server", "plain,acme-page"} == set(site.run(**env).out.split())
    assert "" == site.run(**{**env, "TRNSPEC_PLUGINS": "none"}).out.strip()
