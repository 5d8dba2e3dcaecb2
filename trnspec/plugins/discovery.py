"""Which plugins are installed, and which of them a run can use.

Nothing a plugin does stops a run: one that is broken, slow, clashing or of another time becomes a :class:`Record` and
a warning that names its distribution, and the others work.  Where no plugin is installed, nothing is imported to find
that out.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.plugins.api import API, Plugin, Registry, table, unit_clash
from trnspec.plugins.entry_points import CORE, GROUP, EntryPoint, Outcome, imported
from trnspec.plugins.entry_points import installed as installed_entries
from trnspec.plugins.selection import ONLY, TELL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path as FilePath

    from trnspec.quantities.units import UnitTable

SECONDS = 2.0
"""How long the import of one plugin may take, unless TRNSPEC_PLUGIN_SECONDS says otherwise."""

OK = "ok"
BROKEN = "broken"
SLOW = "slow"
CLASH = "clash"
OUTDATED = "outdated"
NEWER = "newer"
INVALID = "invalid"
LEFT_OUT = "left-out"
FAULTY = "faulty"
"""The statuses of a record: it works; its import raised; its import took too long; something it gives is given already;
it was written for an older or a newer API; it is not a plugin, or not the one its entry point names; the user did not
want it; it is used, and something it names cannot be imported or its documents have errors, which only
``trnspec plugin list`` looks for."""


class PluginWarning(UserWarning):
    """A plugin is left out of a run, though it was not asked to be."""


@frozen
class Record:
    """What became of one installed plugin.

    Attributes:
        name: The name of its entry point, which is also the plugin's.
        distribution: The distribution that brings it: what ``pip uninstall`` takes.
        version: The version of that distribution.
        status: One word: ``ok``, ``broken``, ``slow``, ``clash``, ``outdated``, ``newer``, ``invalid``, ``left-out``,
            ``faulty``.
        message: Why it is not used, or what of it is faulty; empty when all is well.
        seconds: How long its import took; 0 when it was not imported.
        faults: What cannot be imported, and errors in documents, a line each.
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
        """One line for the user, or an empty text when there is nothing to warn of."""
        if self.status in (OK, LEFT_OUT, FAULTY):
            return ""
        made = f"the plugin {self.name} of {self.distribution} {self.version} is left out: {self.message}"
        return " ".join(made.split())


@frozen
class Choice:
    """Which plugins a run may use.

    Attributes:
        only: Their names; ``None`` for all that are installed, nothing for none.
    """

    only: tuple[str, ...] | None = None

    def takes(self, name: str) -> bool:
        """True when the plugin of that name may be used."""
        return self.only is None or name in self.only


@frozen
class Discovery:
    """The plugins of a run, trnspec itself first, and what became of every installed one."""

    plugins: tuple[Plugin, ...]
    records: tuple[Record, ...]

    @property
    def registry(self) -> Registry:
        """All that these plugins add."""
        return Registry.of(self.plugins)

    def giver(self, name: str) -> str:
        """Who a plugin that is used is, for messages: ``trnspec`` or ``the plugin energy of trnspec-energy 0.1.0``."""
        if name == CORE[0]:
            return name
        record = next(r for r in self.records if r.name == name and r.status == OK)
        return f"the plugin {name} of {record.distribution} {record.version}"


def chosen(environ: dict[str, str] | os._Environ[str] = os.environ) -> Choice:
    """What the command line says; else TRNSPEC_PLUGINS: names with commas, or ``none``; unset or empty means all."""
    only = ONLY.get()
    if only is not None:
        return Choice(only)
    text = environ.get("TRNSPEC_PLUGINS", "").strip()
    if not text:
        return Choice()
    return Choice(() if text.lower() == "none" else tuple(n.strip() for n in text.split(",") if n.strip()))


def limit(environ: dict[str, str] | os._Environ[str] = os.environ) -> float:
    """How many seconds the import of a plugin may take: TRNSPEC_PLUGIN_SECONDS, or :data:`SECONDS`.

    Raises:
        UsageError: The variable is not a number above 0.
    """
    text = environ.get("TRNSPEC_PLUGIN_SECONDS", "").strip()
    if not text:
        return SECONDS
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text) or not 0 < float(text) <= 3600:
        raise UsageError(f"TRNSPEC_PLUGIN_SECONDS is a number of seconds above 0 and up to 3600, not {text!r}")
    return float(text)


def entries() -> list[EntryPoint]:
    """The plugins that are installed, trnspec itself left out, by name; none of them is imported."""
    return [f for f in installed_entries(GROUP) if (f.name, f.value) != CORE]


def any_installed() -> bool:
    """True when a plugin may be used, so that someone who can do without need not import the rest."""
    choice = chosen()
    return choice.only != () and bool(entries())


_waited: dict[tuple[tuple[EntryPoint, ...], float], list[Outcome]] = {}
"""What :func:`simple` has imported, so that a slow plugin is not waited for twice."""


def simple(seconds: float | None = None) -> list[FilePath] | None:
    """The catalogs of the plugins that may be used, where they add catalogs and nothing else; else ``None``.

    Such plugins cannot clash with anything, so trnspec itself need not be imported to know that they work.

    Args:
        seconds: How long the import of each may take; as long as always when left out.

    Raises:
        UsageError: The environment makes no sense.
    """
    choice = chosen()
    found = [f for f in entries() if choice.takes(f.name)] if choice.only != () else []
    if {f.name for f in found} < set(choice.only or ()):
        return None
    folders: dict[str, tuple[FilePath, ...]] = {}
    patience = limit() if seconds is None else seconds
    outcomes = _waited[tuple(found), patience] = imported(found, patience)
    for each, outcome in zip(found, outcomes, strict=True):
        plugin = _used(each, outcome, SECONDS)[1]
        if plugin is None or each.name in (*folders, CORE[0]):
            return None
        if plugin != Plugin(name=plugin.name, api=plugin.api, catalogs=plugin.catalogs):
            return None
        folders[plugin.name] = plugin.catalogs
    return [folder for given in folders.values() for folder in given]


def discover(
    core: Callable[[], Plugin], choice: Choice, seconds: float, found: list[EntryPoint] | None = None
) -> Discovery:
    """Import the plugins that are wanted, and keep those that work.

    Args:
        core: Gives trnspec itself, whose names win over those of a plugin.
        choice: Which plugins are wanted; the others are not imported.
        seconds: How long the import of each may take.
        found: What is installed; looked for when left out.

    Raises:
        UsageError: A plugin that is chosen by name is not installed.
    """
    found = entries() if found is None else found
    for name in choice.only or ():
        if name not in {f.name for f in found}:
            hint = did_you_mean(name, [f.name for f in found]) or "trnspec plugin list shows those that are"
            raise UsageError(f"no plugin {name!r} is installed; {hint}")
    wanted = [f for f in found if choice.takes(f.name)]
    waited = _waited.pop((tuple(wanted), seconds), None)
    outcomes = dict(zip(wanted, imported(wanted, seconds) if waited is None else waited, strict=True))
    kept = [core()]
    takers = dict.fromkeys(_gives(kept[0]), "trnspec")
    records: list[Record] = []
    for each in found:
        if each not in outcomes:
            records.append(_record(each, LEFT_OUT, "not chosen"))
            continue
        record, plugin = _used(each, outcomes[each], seconds)
        if plugin is not None:
            record, plugin = _settled(record, plugin, takers, table(kept))
        if plugin is not None:
            kept.append(plugin)
            takers.update(dict.fromkeys(_gives(plugin), plugin.name))
            # By its name alone a reader could not tell it from the one that is left out.
            takers["plugin", plugin.name] = f"{record.distribution} {record.version}"
        records.append(record)
    return Discovery(tuple(kept), tuple(records))


def _used(found: EntryPoint, outcome: Outcome, limit: float) -> tuple[Record, Plugin | None]:
    """The plugin that an import gave, when it gave one."""
    if outcome.error is not None:
        return _record(found, BROKEN, f"its import failed: {told(outcome.error)}", outcome.seconds), None
    if outcome.late:
        message = f"its import took longer than {limit:g} s (TRNSPEC_PLUGIN_SECONDS)"
        return _record(found, SLOW, message, outcome.seconds), None
    return _verified(found, outcome.value, outcome.seconds)


def _record(found: EntryPoint, status: str, message: str = "", seconds: float = 0.0) -> Record:
    return Record(found.name, found.distribution, found.version, status, message, seconds)


def told(error: BaseException) -> str:
    """An error of a plugin in words: its type, and its message where even that is sound."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001
        text = "its message cannot be shown"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _verified(found: EntryPoint, value: Any, took: float) -> tuple[Record, Plugin | None]:
    """The handshake: the API first, for nothing else can be trusted before."""
    if isinstance(value, Plugin) and type(value.api) is int and value.api != API:
        message = f"it was written for API {value.api}, and this is API {API}"
        return _record(found, OUTDATED if value.api < API else NEWER, message, took), None
    message = _unsound(found, value)
    return (_record(found, INVALID, message, took), None) if message else (_record(found, OK, "", took), value)


def _unsound(found: EntryPoint, value: Any) -> str:
    """What is wrong with an object that should be a plugin, or an empty text."""
    if not isinstance(value, Plugin):
        return f"{found.value} is of type {type(value).__name__}; a trnspec.plugins.api.Plugin is expected"
    if type(value.api) is not int:
        return f"its api is {value.api!r}; a whole number is expected"
    if value.name != found.name:
        return f"its entry point is named {found.name!r} and the plugin {value.name!r}; give both the same name"
    try:
        for kept in _gives(value):
            hash(kept)
        hash(tuple(u.spellings for u in value.units))
        missing = [c for c in value.catalogs if not c.is_dir()]
    except Exception as error:  # noqa: BLE001  # fields of other types than they should have
        return f"its fields are not what they should be: {told(error)}"
    return f"its catalog {missing[0]} is not a folder" if missing else ""


def _gives(plugin: Plugin) -> Iterator[tuple[str, str]]:
    """Everything that only one plugin may give: what it is, and its name."""
    yield "plugin", plugin.name
    for kind in plugin.kinds:
        yield "kind", kind.name
        yield "folder", kind.folder
    for code in (*plugin.codes, *(r.code for r in plugin.rules)):
        yield "code", code.id
        yield "code", code.name
    for evaluator in plugin.evaluators:
        yield "evaluator", evaluator.name
    for exporter in plugin.exporters:
        yield "exporter", exporter.name
    for command in plugin.commands:
        yield "command", command.name


def _settled(
    record: Record, plugin: Plugin, takers: dict[tuple[str, str], str], known: UnitTable
) -> tuple[Record, Plugin | None]:
    """The plugin, unless it gives what another already gives, or the same thing twice."""
    seen: set[tuple[str, str]] = set()
    for key in _gives(plugin):
        what, name = key
        if key in takers:
            message = f"the {what} {name} is given by {takers[key]} already"
        elif what == "code" and re.fullmatch(r"TRN\d+", name):
            message = f"the code {name} has the letters of trnspec; codes of plugins have letters of their own"
        elif key in seen:
            message = f"it gives the {what} {name} twice"
        else:
            seen.add(key)
            continue
        return evolve(record, status=CLASH, message=message), None
    if reason := unit_clash(plugin, known):
        return evolve(record, status=CLASH, message=reason), None
    return record, plugin


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, PluginWarning, stacklevel=2)


_kept: dict[object, Discovery] = {}


def installed(core: Callable[[], Plugin]) -> Discovery:
    """The plugins this process may use; each is imported once and warned of once.

    Raises:
        UsageError: A plugin that is chosen by name is not installed, or the environment makes no sense.
    """
    choice = chosen()
    key = (choice, tuple(sys.path))
    if key not in _kept:
        # Kept, for a plugin that was slow once would be waited for again at every call.
        made = _kept[key] = discover(core, choice, limit())
        for record in made.records:
            if record.warning:
                (TELL.get() or _warn)(record.warning)
    return _kept[key]
