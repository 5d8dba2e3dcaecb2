"""The rules over documents of single kinds, listed without importing them.

A run needs them only if a document of their kind is checked or refers to one that is. A rule of another module is named in
:mod:`trnspec.builtin`.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trnspec.diagnostics import Code, Severity
from trnspec.model.kinds import BUILTIN, spec_of
from trnspec.plugins.api import Rule

if TYPE_CHECKING:
    from trnspec.model.document import Node
    from trnspec.plugins.api import Check

_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO

_Entry = tuple[str, str, str, Severity, bool, bool]
"""Function, id and name of a rule, its severity, whether it is over documents, and whether it is local."""

ENTRIES: dict[str, tuple[str, tuple[_Entry, ...]]] = {
    "transformers": (
        "Model",
        (
            ("parameter_count", "TRN405", "parameter-count", _E, True, True),
            ("impossible_dimensions", "TRN406", "impossible-dimensions", _E, True, True),
            ("size_in_name", "TRN407", "size-in-name", _W, True, True),
        ),
    ),
    "model_families": (
        "Model",
        (
            ("differs_from_base", "TRN408", "differs-from-base", _E, True, True),
            ("odd_one_of_family", "TRN409", "odd-one-of-family", _W, True, False),
            ("unusual_dimension", "TRN410", "unusual-dimension", _W, True, True),
        ),
    ),
    "prices": (
        "Price",
        (
            ("price_not_of_its_server", "TRN801", "price-not-of-its-server", _E, True, True),
            ("price_out_of_proportion", "TRN802", "price-out-of-proportion", _E, False, False),
            ("price_differs_too_much", "TRN803", "price-differs-too-much", _E, False, False),
            ("price_types_disagree", "TRN804", "price-types-disagree", _E, False, False),
            ("implausible_price", "TRN805", "implausible-price", _E, False, False),
            ("two_prices", "TRN806", "two-prices", _E, False, False),
            ("copied_price", "TRN808", "copied-price", _E, False, False),
            ("stale_price", "TRN807", "stale-price", _I, True, True),
        ),
    ),
    "power": (
        "Power",
        (
            ("power_not_of_its_subject", "TRN811", "power-not-of-its-subject", _E, True, True),
            ("power_types_disagree", "TRN812", "power-types-disagree", _E, False, False),
            ("power_below_its_chips", "TRN813", "power-below-its-chips", _E, False, False),
            ("two_powers", "TRN814", "two-powers", _E, False, False),
            ("implausible_power", "TRN815", "implausible-power", _E, False, False),
            ("stale_power", "TRN816", "stale-power", _I, True, True),
        ),
    ),
    "scenarios": ("Scenarios", (("invalid_scenario", "TRN820", "invalid-scenario", _E, True, True),)),
    "measurements": (
        "Measurements",
        (
            ("unreadable_measurements", "TRN701", "unreadable-measurements", _E, True, True),
            ("invalid_measurement", "TRN702", "invalid-measurement", _E, True, True),
            ("duplicate_measurement", "TRN703", "duplicate-measurement", _E, True, True),
            ("above_peak", "TRN704", "above-peak", _E, True, True),
            ("throughput_time_mismatch", "TRN705", "throughput-time-mismatch", _E, True, True),
        ),
    ),
}
"""By module: the kind, and its rules. A test compares them with the modules."""


class DeferredCode(Code):
    """The code of a rule that is imported when its explanation is used."""

    __slots__ = ("_place",)
    _place: tuple[str, str]

    @property
    def doc(self) -> str:
        """One sentence, then the sections Why, Example, Instead and Source."""
        return _rule(*self._place).code.doc


class DeferredRule(Rule):
    """A rule that is imported when it is run on a document of its kind."""

    __slots__ = ("_kind", "_over_documents", "_place")
    _kind: str
    _over_documents: bool
    _place: tuple[str, str]

    @property
    def over(self) -> type | None:
        """The spec class of the documents it checks."""
        return spec_of(self._kind) if self._over_documents else None

    @property
    def check(self) -> Check:
        """The function."""
        return _rule(*self._place).check

    @property
    def is_over_graph(self) -> bool:
        """Whether it checks the whole graph once."""
        return not self._over_documents

    def concerns(self, node: Node[Any]) -> bool:
        """Whether a document is of the kind."""
        return node.kind == self._kind or (node.kind not in BUILTIN and node.is_of(spec_of(self._kind)))


@functools.cache
def _rule(module: str, function: str) -> Rule:
    rule: Rule = getattr(import_module(f"trnspec.checks.rules.{module}"), function)
    return rule


def deferred(module: str) -> tuple[Rule, ...]:
    """The rules of a module, which is not imported yet."""
    kind, entries = ENTRIES[module]
    put = object.__setattr__
    rules: list[Rule] = []
    for function, id_, name, severity, over_documents, local in entries:
        code, rule = object.__new__(DeferredCode), object.__new__(DeferredRule)
        place = (module, function)
        of_code: dict[str, Any] = {"id": id_, "name": name, "severity": severity, "_doc": "", "_place": place}
        of_rule: dict[str, Any] = {"code": code, "local": local, "_kind": kind, "_place": place}
        for target, values in ((code, of_code), (rule, of_rule | {"_over_documents": over_documents})):
            for key, value in values.items():
                put(target, key, value)
        rules.append(rule)
    return tuple(rules)
