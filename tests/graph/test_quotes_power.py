"""trnspec.graph.quotes: which powers of a chip or a system are known, in which order, and which one bounds it."""

import pytest

from tests.support.rules import document, graph, source
from tests.support.tables import tables
from trnspec.graph.quotes import draws, quoted_facts, upper_power

PAGES = [source("page", "2024-02"), source("new", "2025-03-01")]
CHIP = document(
    "Chip",
    "one",
    "spec: {memory: {capacity: 1 GiB}, power: {value: 400 W, source: new}}",
    "source: page, aliases: [uno]",
)
BARE = document("Chip", "bare", "spec: {memory: {capacity: 1 GiB}}", "source: page")
BOX = document("Server", "box", "spec: {chips: {chip: one, count: 4}}", "source: page")


def power(name: str, of: str, type_: str, value: str = "", **more: str) -> str:
    fields = {"of": of, "type": type_, **({"power": value} if value else {}), **more}
    return document("Power", name, f"spec: {{{', '.join(f'{k}: {v}' for k, v in fields.items())}}}", "source: page")


# In an order that is neither that of the types nor that of the names.
MADE = graph(
    *PAGES, CHIP, BARE, BOX,
    power("one-z-typical", "one", "typical", "300 W", load="a benchmark"),
    power("one-b-tdp", "uno", "tdp", "410 W"),
    power("one-measured", "one", "measured", "250 W"),
    power("one-a-tdp", "one", "tdp", "405 W", region="200 to 240 V"),
    power("one-maximum", "one", "maximum", "500 W"),
    power("bare-typical", "bare", "typical", "100 W"),
    power("bare-configurable", "bare", "configurable-tdp", "150 W", load="the limit of 150 W"),
    power("bare-maximum", "bare", "maximum", "200 W"),
    power("box-nameplate", "box", "nameplate", "12 kW"),
    power("box-tdp", "box", "tdp"),
)  # fmt: skip


def listed(name: str, *type_: str) -> list[str]:
    return [f"{draw.document.name}: {draw}" for draw in draws(MADE, MADE.named(name), *type_)]


@pytest.mark.parametrize(("name", "type_", "expected"), tables(__file__)["draws"])
def test_draws(name, type_, expected) -> None:
    """The figure of the chip is a design power and comes first; a document without a figure has none."""
    assert expected == listed(name, *type_)


@pytest.mark.parametrize(("name", "document_"), [("one", "one"), ("bare", "bare-maximum"), ("box", None)])
def test_upper_power(name, document_) -> None:
    """The first of tdp, maximum and configurable-tdp; the nameplate of supplies and a typical power are no bound."""
    found = upper_power(MADE, MADE.named(name))

    assert document_ == (None if found is None else found.document.name)


def test_powers_as_facts() -> None:
    """With their load as the reason; a power that no source states has no value; claims that agree are left out."""
    claims = "".join(
        f"  - {{at: spec.power, says: {says}, source: new, verdict: {verdict}, reason: other}}\n"
        for says, verdict in (("400 W", "agrees"), ("450 W", "superseded"))
    )
    loaded = power("one-typical", "one", "typical", "400 W", load="a benchmark")
    known = graph(*PAGES, CHIP, BOX, f"{loaded}\nclaims:\n{claims}", power("box-tdp", "box", "tdp"))
    (one,), (box,) = (quoted_facts(known, known.named(name)) for name in ("one", "box"))

    assert (one.at, one.label, one.text, one.reason) == (
        "power.typical",
        "typical, a benchmark",
        "400 W",
        "a benchmark",
    )
    assert [(c.says, c.verdict) for c in one.conflicting] == [("450 W", "superseded")]
    assert (box.at, box.value, box.verdict) == ("power.tdp", None, "-")
