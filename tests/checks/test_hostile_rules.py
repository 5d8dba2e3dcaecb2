"""Rules of plugins that end the process, print, or do not end: each is a finding, and the others run."""

import signal
import time
from collections import Counter

import pytest
from attrs import evolve

from tests.support.rules import KNOWN, document, source
from trnspec.checks.runner import check
from trnspec.errors import UsageError
from trnspec.loading.pipeline import load_document
from trnspec.plugins.api import API, Finding, Plugin, Registry, rule
from trnspec.plugins.failures import MOST_FINDINGS, seconds_of
from trnspec.yaml import read_text

CHIP = document("Chip", "part", "spec: {peak: {}, memory: {capacity: 32 GiB}}", "source: page")


class Boom(BaseException):
    """Not an Exception."""


def checked(*rules, target: bool = True):
    """The findings of rules of a plugin over a chip; of trnspec only its kinds are used."""
    core = evolve(KNOWN.plugins[0], rules=())
    known = Registry.of([core, Plugin(name="evil", api=API, rules=rules)])
    texts = [(CHIP, "part.yaml", target), (source("page", "2024-01-01"), "page.yaml", False)]
    report = check([load_document(read_text(t, f), known, target=k) for t, f, k in texts], known).report
    return {(d.code, d.where.file) for d in report.diagnostics}


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), Boom(), RecursionError(), MemoryError()])
def test_exit_of_a_rule_does_not_end_the_run(error) -> None:
    @rule("EVIL001", "evil-end", over=object)
    def ends(node, graph):
        """Ends."""
        yield Finding((), "before")
        raise error

    @rule("EVIL002", "evil-rest")
    def rest(graph):
        """Runs."""
        for node in graph:
            yield Finding((), "after", node=node)

    expected = {("EVIL001", "part.yaml"), ("TRN900", "part.yaml"), ("EVIL002", "part.yaml")}

    assert checked(ends, rest) == expected


def test_an_interrupt_is_passed_on() -> None:
    @rule("EVIL001", "evil-interrupt")
    def interrupts(graph):
        """Interrupts."""
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        checked(interrupts)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no interval timers")
def test_a_rule_without_end(monkeypatch) -> None:
    """It is stopped once, for all documents; the report says so even where the document is not checked."""

    @rule("EVIL001", "evil-loop", over=object)
    def loops(node, graph):
        """Does not end."""
        while True:
            try:
                time.sleep(0.001)
            except Exception:  # noqa: BLE001
                continue
        yield

    monkeypatch.setenv("TRNSPEC_RULE_SECONDS", "0.05")
    handler = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()

    assert checked(loops, target=True) == {("TRN900", "<catalog>")}
    assert time.monotonic() - began < 2
    assert (handler, (0.0, 0.0)) == (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL))


def test_a_rule_with_findings_without_end() -> None:
    """The first ones are kept, and the rule is not run on further documents."""

    @rule("EVIL001", "evil-stream", over=object)
    def streams(node, graph):
        """Does not end."""
        while True:
            yield Finding(("spec",), "again")

    core = evolve(KNOWN.plugins[0], rules=())
    known = Registry.of([core, Plugin(name="evil", api=API, rules=(streams,))])
    results = [load_document(read_text(CHIP.replace("part", f"part{n}"), f"part{n}.yaml"), known) for n in range(3)]
    counted = Counter(d.code for d in check(results, known).report.diagnostics)

    assert (MOST_FINDINGS, 1) == (counted["EVIL001"], counted["TRN900"])


@pytest.mark.parametrize("value", ["a text", None, Finding("spec.memory", "a text as path")])
def test_refuses_results_that_are_not_findings(value) -> None:
    @rule("EVIL001", "evil-value", over=object)
    def yields(node, graph):
        """Yields another value."""
        yield value

    assert ("TRN900", "part.yaml") in checked(yields)


def test_a_waiver_of_a_rule_that_failed_is_not_called_idle(monkeypatch) -> None:
    @rule("EVIL001", "evil-fails", over=object)
    def fails(node, graph):
        """Fails."""
        yield from node.nothing

    waived = CHIP.replace("title: T", "title: T, allow: [{code: EVIL001, reason: ours}]", 1)
    assert "allow" in waived
    monkeypatch.setitem(globals(), "CHIP", waived)

    assert "TRN304" not in {code for code, _ in checked(fails)}


@pytest.mark.parametrize("text", ["0", "-1", "x", "nan", "3601", "1e9", "\u0663"])
def test_limits_that_are_none(text) -> None:
    with pytest.raises(UsageError, match="TRNSPEC_RULE_SECONDS is a number of seconds"):
        seconds_of("TRNSPEC_RULE_SECONDS", 1.0, {"TRNSPEC_RULE_SECONDS": text})
