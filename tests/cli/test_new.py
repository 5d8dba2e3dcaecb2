"""``trnspec new KIND``: documents from options and prompts, for every kind, without a finding."""

from __future__ import annotations

import io

import pytest
from click.testing import CliRunner
from running import Here

from trnspec.api import registry, validate
from trnspec.cli import group
from trnspec.cli.new_document import kind_command
from trnspec.model.form import entries, missing

SOURCE = ("--publisher", "Acme", "--as_of", "2026-10", "--rank", "vendor-chip-page")


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)


def test_a_catalog_is_written_and_has_no_finding(here) -> None:
    """Source, link, chip, server; each is checked with those before it."""
    lines = (
        ("source", "--output", "hw/sources/acme-2026-10.yaml", *SOURCE),
        (
            "link",
            "--output",
            "hw/links/acme-link.yaml",
            "--source",
            "acme-2026-10",
            "--bandwidth.per_direction",
            "50 GB/s",
            "--connects",
            "chips",
        ),
        (
            *("chip", "--output", "hw/chips/acme-1.yaml", "--source", "acme-2026-10", "--where", "page 2"),
            *("--title", "Acme One", "--memory.capacity", "64 GiB", "--peak.dense.bf16", "1,400 TFLOPS"),
            *("--launched", "2026-09", "--other", "clock=1.4 GHz", "--other", "l2=32 MiB"),
        ),
        (
            *("server", "--output", "hw/servers/acme-8.yaml", "--source", "acme-2026-10"),
            *("--chips.chip", "acme-1", "--chips.count", "8", "--fabric.link", "acme-link"),
            *("--fabric.topology.shape", "torus", "--fabric.topology.dimensions", "2,4", "--host.vcpus", "192"),
        ),
    )
    done = [here("new", *line) for line in lines]

    assert [(0, "")] * 4 == [(d.status, d.err) for d in done]
    assert "hw/servers/acme-8.yaml: written. Next: trnspec validate hw/servers/acme-8.yaml\n" == done[3].out
    checked = validate(["hw"])
    assert () == tuple(checked.report.diagnostics)
    assert (here.folder / "hw/chips/acme-1.yaml").read_text() == (
        "api_version: trnspec/v1\n"
        "kind: Chip\n"
        "metadata:\n"
        "  name: acme-1\n"
        "  title: Acme One\n"
        "  source: acme-2026-10\n"
        "  where: page 2\n"
        "spec:\n"
        '  launched: "2026-09"\n'
        '  peak: {dense: {bf16: "1,400 TFLOPS"}}\n'
        "  memory: {capacity: 64 GiB}\n"
        "  other: {clock: 1.4 GHz, l2: 32 MiB}\n"
    )
    server = checked.graph.named("acme-8").spec
    assert ((2, 4), 192) == (server.fabric.topology.dimensions, server.host.vcpus)


def test_printed_without_a_file(here) -> None:
    done = here("new", "source", "--name", "acme-2026-10", *SOURCE)

    assert (0, "") == (done.status, done.err)
    assert (
        done.out.endswith("spec: {publisher: Acme, as_of: 2026-10, rank: vendor-chip-page}\n") or "  rank: " in done.out
    )
    (here.folder / "sources").mkdir()
    (here.folder / "sources" / "acme-2026-10.yaml").write_text(done.out)
    assert () == tuple(validate(["sources"]).report.diagnostics)


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (("source",), ["--name, ", "--publisher (text", "--as_of (text", "--rank (one of vendor-chip-page, "]),
        (("chip", "--name", "a"), ["a Chip requires --source, --memory.capacity (information, such as 32 GiB)"]),
        (
            ("chip", "--name", "a", "--source", "s", "--memory.capacity", "1 GiB", "--cores.count", "2"),
            ["a Chip requires --cores.core (name of a Core, such as neuroncore-v2)"],
        ),
        (("server", "--name", "a", "--source", "s"), ["--chips.chip (name of a Chip", "--chips.count (integer >= 1"]),
    ],
)
def test_everything_that_is_missing_is_in_one_error(here, args, parts) -> None:
    done = here("new", *args)

    message, hint = done.err.splitlines()
    assert (2, "") == (done.status, done.out)
    assert [] == [part for part in parts if part not in message]
    kind = f"trnspec new {args[0]} --help lists the fields, and has an example"
    sources = "trnspec source lists the sources, trnspec new source writes one; " if "--source" in message else ""
    assert f"hint: {sources}{kind}" == hint


CHIP = ("new", "chip", "--name", "a", "--source", "neuron-trn2-2026-08")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--memory.capacity", "5 GB/s"), "--memory.capacity: "),
        (("--memory.capacity", "32"), "has no unit"),
        (("--memory.capacity", "1 GiB", "--dies", "0"), "--dies: '0' is not an integer >= 1"),
        (("--memory.capacity", "1 GiB", "--launched", "soon"), "--launched: 'soon' is not a date such as 2024-02-13"),
        (("--memory.capacity", "1 GiB", "--other", "clock"), "--other: expected NAME=VALUE"),
    ],
)
def test_values_are_checked(here, args, message) -> None:
    done = here(*CHIP, *args)

    assert (2, "") == (done.status, done.out)
    assert message in done.err


def test_documents_with_errors_are_not_written(here) -> None:
    """A total that contradicts the parts, and a source that no catalog has."""
    server = ("new", "server", "--chips.chip", "trainium2", "--chips.count", "16", "--output", "servers/a.yaml")
    wrong = here(*server, "--source", "neuron-trn2-2026-08", "--stated.memory.capacity", "1,600 GiB")
    unknown = here(*server, "--source", "acme-2026")

    assert [(1, ""), (1, "")] == [(d.status, d.out) for d in (wrong, unknown)]
    assert "TRN402" in wrong.err
    assert "TRN201" in unknown.err
    assert wrong.err.endswith("nothing was written\n")
    assert [] == list(here.folder.glob("servers/*"))


def test_nothing_is_overwritten(here) -> None:
    (here.folder / "a.yaml").write_text("mine")
    done = here("new", "source", "--output", "a.yaml", *SOURCE)

    assert (2, "mine") == (done.status, (here.folder / "a.yaml").read_text())
    assert "a.yaml exists; remove it, or name another file" in done.err


def test_a_price(here) -> None:
    """Its figures are a mapping: each has its region."""
    done = here(
        *(
            "new",
            "price",
            "--name",
            "trn1.32xlarge-spot",
            "--source",
            "karpenter-pricing-2026-07",
            "--server",
            "trn1.32xlarge",
        ),
        *("--type", "spot", "--hourly", "us-east-1=21.50 USD/h", "--hourly", "us-west-2=21.50 USD/h"),
    )

    assert (0, "") == (done.status, done.err)
    assert "  hourly: {us-east-1: 21.50 USD/h, us-west-2: 21.50 USD/h}\n" in done.out


def test_prompts(tmp_path, monkeypatch) -> None:
    """Only for what is required and missing, on a terminal; a wrong answer is asked for again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trnspec.cli.new_document.on_terminal", lambda: True)
    answers = "acme-1\nneuron-trn2-2026-08\nneuroncore-v3\n32\n64 GiB\n"
    done = CliRunner().invoke(group, ["new", "chip", "--cores.count", "2"], input=answers)

    assert 0 == done.exit_code
    prompts = ["Name", "Source", "cores.core (name of a Core", "memory.capacity (information", "memory.capacity ("]
    places = [done.stderr.index(prompt) for prompt in prompts]
    assert sorted(places) == places
    assert 2 == done.stderr.count("memory.capacity (information, such as 32 GiB): ")
    assert "  cores: {core: neuroncore-v3, count: 2}\n  memory: {capacity: 64 GiB}\n" in done.stdout


def test_every_kind_has_a_command() -> None:
    """Its options are the fields of its class: no field is listed by hand, and none is lost."""
    known = registry()
    for kind in known.kinds.values():
        options = {option for p in kind_command(kind, known).params for option in p.opts}
        paths = {e.path for e in entries(kind.spec)}
        assert paths <= {o.removeprefix("--").removeprefix("spec.") for o in options}
        assert {f"--{path}" for path in missing(kind.spec, frozenset()) if path in paths} <= options | {"--spec.note"}


def test_help_lists_the_kinds(here) -> None:
    listed = here("new", "--help").out

    assert [] == [name for name in registry().kinds if f"\n  {name.lower()} " not in listed]
