"""trnspec.builtin: the rules and kinds that it registers."""

import pkgutil
from importlib import import_module

from trnspec.api import registry
from trnspec.builtin import plugin
from trnspec.checks import rules
from trnspec.diagnostics import Severity
from trnspec.model.kinds import BUILTIN, kind_of, spec_of
from trnspec.plugins.api import Rule
from trnspec.plugins.builtin_kinds import KINDS


def test_each_rule_is_registered_once() -> None:
    """In trnspec.builtin, whichever module of trnspec.checks.rules has it."""
    modules = [import_module(f"trnspec.checks.rules.{m.name}") for m in pkgutil.iter_modules(rules.__path__)]
    written = {id(value): value.code.id for m in modules for value in vars(m).values() if isinstance(value, Rule)}

    assert sorted(written.values()) == sorted(r.code.id for r in plugin.rules)


def test_what_evaluators_and_exporters_state() -> None:
    """Rows of evaluators are tables of their own as CSV; most exported files can hold the assumptions."""
    assert {e.name for e in plugin.evaluators if e.rows} == {"search", "accuracy"}
    assert {e.name for e in plugin.exporters if not e.inline} == {"llm-analysis"}


def test_kinds_know_their_classes() -> None:
    assert {kind.name: kind.spec for kind in KINDS} == {name: spec_of(name) for name in BUILTIN}
    assert [kind_of(spec_of(name)) for name in BUILTIN] == list(BUILTIN)
    assert kind_of(object) is None
    # A reference to one kind accepts no other built-in one, which a document that is not loaded relies on.
    assert [] == [
        (one, other)
        for one in BUILTIN
        for other in BUILTIN
        if one != other and issubclass(spec_of(one), spec_of(other))
    ]


COMPARING = ("TRN409", "TRN706", "TRN802", "TRN803", "TRN804", "TRN805", "TRN806", "TRN808", "TRN813", "TRN822")
"""What such a rule finds in one document can change with any other one: a check of one file runs it on all."""
WARNINGS = (
    "TRN050", "TRN054", "TRN055", "TRN208", "TRN304", "TRN403", "TRN407", "TRN409", "TRN410", "TRN603", "TRN604", "TRN605",
    "TRN606", "TRN612", "TRN613", "TRN615", "TRN617",
)  # fmt: skip
INFOS = ("TRN051", "TRN052", "TRN053", "TRN056", "TRN057", "TRN058", "TRN059", "TRN601", "TRN807")


def test_local_rules_and_severities() -> None:
    """A rule that is no longer local is as right, and much slower; another severity passes or breaks a build."""
    codes = registry().codes.values()

    assert sorted(rule.code.id for rule in registry().rules if not rule.local) == [*COMPARING]
    assert sorted(code.id for code in codes if code.severity is Severity.WARNING) == [*WARNINGS]
    assert sorted(code.id for code in codes if code.severity is Severity.INFO) == [*INFOS]
    assert {code.severity for code in codes if code.id not in WARNINGS + INFOS} == {Severity.ERROR}
