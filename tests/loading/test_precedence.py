"""Precedence of the catalogs of plugins, tested on installed distributions."""

from tests.support.invented_plugins import ACME, CHIP, SERVER
from tests.support.programs import ROOT, Site


def found(site: Site, *args: str, before: tuple[str, ...] = ()) -> set[tuple[str, str, int]]:
    done = site.run(*before, "validate", *args, "--format", "json")
    return {(d["file"].rpartition("/")[2], d["code"], d["line"]) for d in done.data["diagnostics"]}


def test_documents_of_a_plugin_are_part_of_the_catalog(site) -> None:
    """They are listed, shown, and names in files of the user resolve against them."""
    site.catalog("acme", ACME)
    (site.folder / "acme-server.yaml").write_text(SERVER)

    assert "acme-1 " in site.run("list", "chips").out
    assert "2 TB/s" in site.run("show", "acme-1").out
    assert "2 TB/s" in site.run("show", "acme").out
    assert set() == found(site, "acme-server.yaml")
    assert {("acme-server.yaml", "TRN201", 3), ("acme-server.yaml", "TRN201", 5)} == {
        f for f in found(site, "acme-server.yaml", before=("--no-plugins",)) if f[1] == "TRN201"
    }


def replaced(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


TRAINIUM = (ROOT / "catalog" / "chips" / "trainium1.yaml").read_text()
NAME = "  name: trainium1\n"
MEMORY = "bandwidth: {value: 820 GB/s,"
DOUBLE = (MEMORY, "bandwidth: {value: 840 GB/s,")


def allowed(*paths: str) -> tuple[str, str]:
    return NAME, f"{NAME}  overrides: [{', '.join(paths)}]\n"


def reported(site: Site, text: str) -> tuple[set[tuple[str, str, int]], str]:
    """What is found in a catalog whose one document is this, and the bandwidth that is shown then."""
    folder = site.catalog("acme", {"chips/trainium1.yaml": text})
    shown = site.run("show", "trainium1", "--format", "json").data
    (bandwidth,) = (r["says"] for r in shown["rows"] if (r["at"], r["verdict"]) == ("memory.bandwidth", "adopted"))
    return {f for f in found(site, str(folder)) if f[1] == "TRN204"}, bandwidth


def line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_name_of_the_catalog_is_refused(site) -> None:
    """The document of the plugin is not used; its name is the place."""
    text = replaced(TRAINIUM, DOUBLE)

    assert ({("trainium1.yaml", "TRN204", line(text, "name: trainium1"))}, "820 GB/s") == reported(site, text)


def test_a_figure_is_overridden_when_it_is_listed(site) -> None:
    text = replaced(TRAINIUM, DOUBLE, allowed("spec.memory.bandwidth"))

    assert (set(), "840 GB/s") == reported(site, text)


def test_an_alias_must_be_kept(site) -> None:
    text = replaced(TRAINIUM, DOUBLE, allowed("spec.memory"), ("  aliases: [trainium]\n", ""))

    assert ({("trainium1.yaml", "TRN204", line(text, "name: trainium1"))}, "820 GB/s") == reported(site, text)


def test_an_alias_of_the_catalog_is_refused(site) -> None:
    text = CHIP.replace("aliases: [acme]", "aliases: [acme, trainium]")
    folder = site.catalog("acme", {**ACME, "chips/acme-1.yaml": text})

    assert {("acme-1.yaml", "TRN204", 3)} == found(site, str(folder))


def test_between_plugins_the_first_keeps_the_name(site) -> None:
    """Nothing of another plugin can be overridden, whatever is listed; the second one is refused."""
    other = replaced(CHIP, ("aliases: [acme]", "aliases: [acme], overrides: [spec.memory]"), ("64 GiB", "32 GiB"))
    site.catalog("acme", ACME)
    folder = site.catalog("beta", {"chips/acme-1.yaml": other})

    assert {("acme-1.yaml", "TRN204", 3)} == {f for f in found(site, str(folder)) if f[1] == "TRN204"}
    assert "64 GiB" in site.run("show", "acme-1").out


def test_of_two_plugins_that_override_a_document_the_first_does(site) -> None:
    text = replaced(TRAINIUM, DOUBLE, allowed("spec.memory.bandwidth"))
    site.catalog("acme", {"chips/trainium1.yaml": text})
    folder = site.catalog("beta", {"chips/trainium1.yaml": text})

    assert {("trainium1.yaml", "TRN204", line(text, NAME))} == {f for f in found(site, str(folder)) if f[1] == "TRN204"}
