"""Discovery of installed plugins, and of those that a run can use.

No plugin can stop a run: one that is broken, slow, invalid, clashing or written for another API becomes a
:class:`Record` and a warning that names its distribution, and everything else works without it. Where no plugin is
installed, nothing is imported to find that out.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import EntryPoint

from attrs import evolve, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.plugins.api import (
    API,
    Plugin,
    Registry,
    described_plugin,
    unique_names,
    with_units,
)
from trnspec.plugins.entry_points import ImportOutcome, distribution, imported
from trnspec.plugins.entry_points import installed as entries
from trnspec.plugins.failures import described, print_traceback, seconds_of
from trnspec.plugins.selection import CORE, GROUP, REPORT, Choice, chosen
from trnspec.plugins.validation import invalid_kinds, invalid_values
from trnspec.quantities.units import UNITS, UnitTable

SECONDS = 2.0
"""Seconds that the import of one plugin may take, unless TRNSPEC_PLUGIN_SECONDS is set."""

OK = "ok"
BROKEN = "broken"
SLOW = "slow"
CLASH = "clash"
OUTDATED = "outdated"
NEWER = "newer"
INVALID = "invalid"
LEFT_OUT = "left-out"
FAULTY = "faulty"
"""The statuses of a record: it is used; its import raised; its import took too long; it defines a name that is taken;
it was written for an older or a newer API; it is not a plugin, or a value or a kind of it is not valid; the user did not
choose it; it is used, and something it names cannot be imported or its documents have errors, which only
``trnspec plugin list`` looks for."""

MOST = 3
"""Faults that a message lists; ``faults`` has all of them."""


class PluginWarning(UserWarning):
    """An installed plugin is left out of a run."""


@frozen
class Record:
    """The status of one installed plugin.

    Attributes:
        name: The name of its entry point, which is also the plugin's.
        distribution: Its distribution: the argument of ``pip uninstall``.
        version: The version of the distribution.
        status: One of ``ok``, ``broken``, ``slow``, ``clash``, ``outdated``, ``newer``, ``invalid``, ``left-out``,
            ``faulty``.
        message: Why it is not used, or which faults it has; empty for ``ok``.
        seconds: How long its import took; 0 when it was not imported.
        faults: Every fault: invalid values and fields, clashes, functions that cannot be imported, errors in documents.
    """

    name: str
    distribution: str
    version: str
    status: str
    message: str = ""
    seconds: float = 0.0
    faults: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """One line for the user, or an empty text for a plugin that is used or not chosen."""
        if self.status in (OK, LEFT_OUT, FAULTY):
            return ""
        return " ".join(f"{self.provider} is left out: {self.message}".split())

    @property
    def provider(self) -> str:
        """``the plugin energy of trnspec-energy 0.1.0``."""
        return described_plugin(self.name, f"{self.distribution} {self.version}")


@frozen(slots=False)  # a cached property
class Discovery:
    """The plugins of a run, trnspec itself first, and the status of every installed one."""

    plugins: tuple[Plugin, ...]
    records: tuple[Record, ...]

    @functools.cached_property
    def registry(self) -> Registry:
        """Everything that these plugins define."""
        used = {r.name: f"{r.distribution} {r.version}" for r in self.records if r.status == OK}
        return Registry.of(self.plugins, used)


def limit(environ: dict[str, str] | os._Environ[str] = os.environ) -> float:
    """Time limit of the import of a plugin [s]: TRNSPEC_PLUGIN_SECONDS, or :data:`SECONDS`.

    Raises:
        UsageError: The variable is not a number above 0.
    """
    return seconds_of("TRNSPEC_PLUGIN_SECONDS", SECONDS, environ)


def discover(core: Callable[[], Plugin], choice: Choice, seconds: float) -> Discovery:
    """Import the plugins that are wanted, and keep those that can be used.

    Args:
        core: Returns trnspec itself, whose names win over those of a plugin.
        choice: Which plugins are wanted; the others are not imported.
        seconds: How long the import of each may take.

    Raises:
        UsageError: A plugin that is chosen by name is not installed.
    """
    installed = entries()
    for name in choice.only or ():
        if name not in {e.name for e in installed}:
            hint = did_you_mean(name, [e.name for e in installed]) or "trnspec plugin list shows the installed plugins"
            raise UsageError(f"no plugin {name!r} is installed; {hint}")
    wanted = [e for e in installed if choice.takes(e.name)]
    outcomes = {e: imported(e, seconds) for e in wanted}
    kept = [core()]
    owners = {(what, name): "trnspec" for what, name, _ in unique_names(kept[0])}
    units = with_units(UNITS, kept[0])
    records: list[Record] = []
    for entry in installed:
        if entry not in outcomes:
            records.append(_record(entry, LEFT_OUT, "not chosen"))
            continue
        record, plugin = _imported(entry, outcomes[entry], seconds)
        if plugin is not None:
            record = _compatible(record, plugin, owners, units)
        if plugin is not None and record.status == OK:
            kept.append(plugin)
            units = with_units(units, plugin)
            owners.update(dict.fromkeys(((what, name) for what, name, _ in unique_names(plugin)), plugin.name))
            # Two distributions may bring a plugin of one name; only the distribution distinguishes them.
            owners["plugin", plugin.name] = f"{record.distribution} {record.version}"
        records.append(record)
    return Discovery(tuple(kept), tuple(records))


def _imported(entry: EntryPoint, outcome: ImportOutcome, seconds: float) -> tuple[Record, Plugin | None]:
    """The record of an import, and the plugin if it can be used as far as that can be seen from itself."""
    took, value = outcome.seconds, outcome.value
    if outcome.is_late:
        return _record(entry, SLOW, f"its import took longer than {seconds:g} s (TRNSPEC_PLUGIN_SECONDS)", took), None
    if outcome.error is not None:
        print_traceback(outcome.error)
        return _record(entry, BROKEN, f"its import failed: {described(outcome.error)}", took), None
    # The API version first: the other fields of another version may mean something else.
    if isinstance(value, Plugin) and type(value.api) is int and value.api != API:
        message = f"it was written for API {value.api}, and this is API {API}"
        return _record(entry, OUTDATED if value.api < API else NEWER, message, took), None
    record = _record(entry, OK, "", took)
    try:
        faults = tuple(invalid_values(entry, value))
    except Exception as error:  # noqa: BLE001  # values of other types than they should have
        faults = (f"a value of it cannot be checked: {described(error)}",)
    return (_with_faults(record, INVALID, faults), None) if faults else (record, value)


def _compatible(record: Record, plugin: Plugin, owners: dict[tuple[str, str], str], units: UnitTable) -> Record:
    """The record of a plugin, checked against those already kept: ok, a clash, or invalid where a kind cannot be used."""
    faults: list[str] = []
    own: set[tuple[str, str]] = set()
    for what, name, _ in unique_names(plugin):
        if (what, name) in owners:
            faults.append(f"the {what} {name} is defined by {owners[what, name]} already")
        elif what == "code" and re.fullmatch(r"TRN\d+", name):
            faults.append(f"the code {name} begins with TRN, which is reserved for trnspec; use letters of your own")
        elif (what, name) in own:
            faults.append(f"it defines the {what} {name} twice")
        own.add((what, name))
    try:
        units = with_units(units, plugin)
    except UsageError as error:
        faults.append(str(error))
    if faults:
        return _with_faults(record, CLASH, tuple(faults))
    return _with_faults(record, INVALID, tuple(invalid_kinds(plugin, units)))


def _with_faults(record: Record, status: str, faults: tuple[str, ...]) -> Record:
    """The record with a status, if there are faults; the message lists the first."""
    return evolve(record, status=status, message=summary(faults), faults=faults) if faults else record


def summary(faults: tuple[str, ...]) -> str:
    """The first faults in one line."""
    more = len(faults[MOST:])
    return "; ".join([*faults[:MOST], *([f"and {more} more"] if more else [])])


def _record(entry: EntryPoint, status: str, message: str, seconds: float = 0.0) -> Record:
    return Record(entry.name, *distribution(entry), status, message, seconds)


def _core() -> Plugin:
    # By its place, as every plugin: the kinds and rules of trnspec are in layers above this one.
    plugin: Plugin = EntryPoint(*CORE, GROUP).load()
    return plugin


def _warn(text: str) -> None:
    warnings.warn(text, PluginWarning, stacklevel=2)


_kept: dict[object, Discovery] = {}


def installed() -> Discovery:
    """The plugins this process may use; each is imported once and warned of once.

    Raises:
        UsageError: A plugin that is chosen by name is not installed, or an environment variable is not valid.
    """
    choice = chosen()
    key = (choice, tuple(sys.path))
    if key not in _kept:
        # Cached: otherwise every call would wait again for a slow plugin.
        discovery = _kept[key] = discover(_core, choice, limit())
        for record in discovery.records:
            if record.warning:
                (REPORT.get() or _warn)(record.warning)
    return _kept[key]
