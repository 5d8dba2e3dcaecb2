"""``trnspec new KIND``: documents from values by path, from prompts and as stubs, for every kind."""

import re

import click
import pytest
from click.testing import CliRunner

from trnspec.api import registry, validate
from trnspec.cli import group
from trnspec.cli.new import Draft, kind_command
from trnspec.yaml import read_text


def values(**given: str) -> tuple[str, ...]:
    """``--set`` for each value; ``__`` in a name is a point."""
    return tuple(word for name, text in given.items() for word in ("--set", f"{name.replace('__', '.')}={text}"))


SOURCE = values(publisher="Acme", as_of="2026-10", rank="vendor-chip-page")


def test_a_catalog_is_written_and_has_no_finding(here) -> None:
    """Source, link, chip, server; each is checked with those before it."""
    given = ("--source", "acme-2026-10")
    sets = (
        values(bandwidth__per_direction="50 GB/s", connects="chips"),
        values(other__clock="1.4 GHz", other__l2="32 MiB", memory__capacity="64 GiB", launched="2026-09"),
        values(chips__chip="acme-1", chips__count="8", fabric__link="acme-link", host__vcpus="192"),
        values(fabric__topology__shape="torus", fabric__topology__dimensions="2,4"),
    )
    given = ("--source", "acme-2026-10")
    more = ("--set", "peak.dense.{bf16,fp16}=1,400 TFLOPS", "--set", "dies.note=two", "--set", "dies=2")
    page = ("--where", "page 2", "--title", "Acme One")
    lines = (
        ("source", "--output", "hw/sources/acme-2026-10.yaml", *SOURCE),
        ("link", "acme-link", *given, *sets[0], "--output", "hw/links/acme-link.yaml"),
        ("chip", "--output", "hw/chips/acme-1.yaml", *given, *page, *sets[1], *more),
        ("server", "--output", "hw/servers/acme-8.yaml", *given, *sets[2], *sets[3]),
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
        '  peak: {dense: {bf16: "1,400 TFLOPS", fp16: "1,400 TFLOPS"}}\n'
        "  memory: {capacity: 64 GiB}\n"
        "  launched: 2026-09\n"
        "  dies: {value: 2, note: two}\n"
        "  other: {clock: 1.4 GHz, l2: 32 MiB}\n"
    )
    server = checked.graph.named("acme-8").spec
    assert ((2, 4), 192) == (server.fabric.topology.dimensions, server.host.vcpus)


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (("source",), ["NAME, ", "publisher (text", "as_of (text", "rank (one of vendor-chip-page, "]),
        (("chip", "a"), ["a Chip requires --source, memory.capacity (information, such as 32 GiB): "]),
        (
            ("chip", "a", "--source", "s", *values(memory__capacity="1 GiB", cores__count="2")),
            ["a Chip requires cores.core (name of a Core, such as neuroncore-v2): "],
        ),
        (("server", "a", "--source", "s"), ["chips.chip (name of a Chip", "chips.count (integer >= 1"]),
    ],
)
def test_everything_that_is_missing_is_listed_and_marked_in_a_stub(here, args, parts) -> None:
    done = here("new", *args)

    assert 1 == done.status
    assert [] == [part for part in parts if part not in done.err]
    assert "# REQUIRED" in done.out
    assert ("--source" in done.err.splitlines()[0]) == ("trnspec new source writes one" in done.err)


@pytest.mark.parametrize("kind", registry().kinds)
def test_stub_lists_every_field_and_lacks_only_required_values(here, kind) -> None:
    known = registry()
    done = here("new", kind.lower(), "a-name", "--stub") if kind != "Model" else None
    text = done.out if done is not None else Draft(known.kinds[kind], known, {"name": "a-name"}).stub()
    document = read_text(text)

    assert (kind, "a-name") == (document.data["kind"], document.data["metadata"]["name"])
    assert not document.problems
    for name in known.kinds[kind].spec.__annotations__:
        assert name.isupper() or name == "KIND" or f"  {name}:" in text or f"  # {name}:" in text
    spec = document.data["spec"] or {}
    for path in Draft(known.kinds[kind], known, {"name": "a-name"}).missing():
        value = {"spec": spec, "metadata": document.data["metadata"]}
        for step in path:
            value = value[step]
        assert value is None


CHIP = ("new", "chip", "a", "--source", "neuron-trn2-2026-08")


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("memory.capacity", "5 GB/s", "TRN112"),
        ("memory.capacity", "32", "TRN110"),
        ("dies", "0", "TRN106"),
        ("launched", "soon", "TRN105"),
        ("other.clock", "fast", "TRN113"),
        ("generation", "{value: 3", "TRN103"),
    ],
)
def test_wrong_values_have_the_findings_of_validate(here, path, value, code) -> None:
    given = ("--set", f"{path}={value}", *(() if path == "memory.capacity" else values(memory__capacity="1 GiB")))
    done = here(*CHIP, *given)
    (here.folder / "chips").mkdir()
    (here.folder / "chips" / "a.yaml").write_text(done.out)
    found = [d for d in validate(["chips"]).report.diagnostics if d.severity.label == "error"]

    assert 1 == done.status
    assert code in [d.code for d in found]
    assert [] == [d for d in found if d.message not in done.err]
    assert 1 == here(*CHIP, *given, "--output", "b.yaml").status
    assert not (here.folder / "b.yaml").exists()


def test_files_with_errors_are_not_written(here) -> None:
    server = ("new", "server", *values(chips__chip="trainium2", chips__count="16"), "--output", "servers/a.yaml")
    wrong = here(*server, "--source", "neuron-trn2-2026-08", *values(stated__memory__capacity="1,600 GiB"))
    unknown = here(*server, "--source", "acme-2026")

    assert [(1, ""), (1, "")] == [(d.status, d.out) for d in (wrong, unknown)]
    assert "TRN402" in wrong.err
    assert "TRN201" in unknown.err
    assert wrong.err.endswith("nothing was written\n")
    assert [] == list(here.folder.glob("servers/*"))


def test_a_price(here) -> None:
    """It is a row for each region: of a new list, then of that list; an error leaves the list as it is."""
    given = ("new", "price", "--source", "karpenter-pricing-2026-07", *values(server="trn1.32xlarge", type="reserved"))
    regions = ("--set", "hourly.{us-east-1,us-west-2}=15.50 USD/h")
    row = "    - {type: reserved, region: %s, price: 15.50 USD/h, source: karpenter-pricing-2026-07}\n"
    file = here.folder / "prices/trn1.32xlarge-prices.yaml"
    printed = here(*given, *regions)
    new = here(*given, *regions, "--output", str(file))

    assert [(0, ""), (0, "")] == [(done.status, done.err) for done in (printed, new)]
    assert printed.out == file.read_text()
    assert printed.out.endswith("spec:\n  server: trn1.32xlarge\n  rows:\n" + row % "us-east-1" + row % "us-west-2")
    file.write_text(f"{printed.out.rstrip()}  # the last\n")
    added = here(*given, "--set", "hourly.us-east-2=15.50 USD/h", "--output", str(file))
    assert (0, f"{file}: a row added. Next: trnspec validate {file}\n") == (added.status, added.out)
    assert file.read_text() == f"{printed.out.rstrip()}  # the last\n{row % 'us-east-2'}"
    for wrong in (("--set", "hourly.us-east-2=1550 USD/h"), ("--set", "server=trn1.2xlarge", *regions)):
        before = file.read_text()
        assert here(*given, *wrong, "--output", str(file)).status in (1, 2)
        assert before == file.read_text()


def test_prompts(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("trnspec.cli.new.on_terminal", lambda: True)
    answers = "acme-1\nneuron-trn2-2026-08\nneuroncore-v3\n32\n64 GiB\n"
    done = CliRunner().invoke(group, ["new", "chip", "--set", "cores.count=2"], input=answers)

    assert 0 == done.exit_code
    prompts = ["NAME", "--source", "cores.core (name of a Core", "memory.capacity (information", "memory.capacity ("]
    places = [done.stderr.index(prompt) for prompt in prompts]
    assert sorted(places) == places
    assert 2 == done.stderr.count("memory.capacity (information, such as 32 GiB): ")
    assert "  memory: {capacity: 64 GiB}\n  cores: {core: neuroncore-v3, count: 2}\n" in done.stdout


@pytest.mark.parametrize(("price", "status", "codes"), [("26.90", 0, set()), ("269.0", 1, {"TRN802"})])
def test_new_price_is_checked_before_it_is_written(here, tmp_path, price, status, codes) -> None:
    given = ("--source", "karpenter-pricing-2026-07", "--set", "server=trn1.32xlarge", "--set", "type=on-demand")
    file = tmp_path / "prices" / "trn1.32xlarge-prices.yaml"
    done = here("new", "price", *given, "--set", f"hourly.eu-central-1={price} USD/h", "--out", str(file))

    assert (status, not codes) == (done.status, file.exists())
    assert codes == set(re.findall("TRN[0-9]+", done.err))
    assert codes or validate([str(file)]).report.diagnostics == ()


def test_existing_documents_are_not_overwritten(here) -> None:
    (here.folder / "a.yaml").write_text("mine")
    done = here("new", "source", "--output", "a.yaml", *SOURCE)

    assert (2, "mine") == (done.status, (here.folder / "a.yaml").read_text())
    assert "a.yaml exists; remove it, or name another file" in done.err


@pytest.mark.parametrize(("typed", "found"), [("memory.c", ["memory.capacity="]), ("die", ["dies="]), ("x", [])])
def test_paths_are_completed(typed, found) -> None:
    known = registry()
    command = kind_command(known.kinds["Chip"], known)
    param = next(p for p in command.params if p.name == "values")

    assert found == [item.value for item in param.shell_complete(click.Context(command), typed)]
