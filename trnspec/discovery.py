"""Which plugins are installed, and which of them a run can use.

Nothing a plugin does stops a run: one that is broken, slow, clashing or of another time becomes a :class:`Record` and
a warning that names its distribution, and the others work.  Where no plugin is installed, nothing is imported to find
that out: the folders of installed distributions are looked through for files that name the group.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.plugin import API, GROUP, Plugin, Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SECONDS = 2.0
"""How long the import of one plugin may take, unless TRNSPEC_PLUGIN_SECONDS says otherwise."""

CORE = ("trnspec", "trnspec.builtin:plugin")
"""The entry point of trnspec itself, which is not loaded through the door."""

OK = "ok"
BROKEN = "broken"
SLOW = "slow"
CLASH = "clash"
OUTDATED = "outdated"
NEWER = "newer"
INVALID = "invalid"
LEFT_OUT = "left-out"
"""The statuses of a record: it works; its import raised; its import took too long; something it gives is given already;
it was written for an older or a newer API; it is not a plugin, or not the one its entry point names; the user did not
want it."""


class PluginWarning(UserWarning):
    """A plugin is left out of a run, though it was not asked to be."""


@frozen
class Record:
    """What became of one installed plugin.

    Attributes:
        name: The name of its entry point, which is also the plugin's.
        distribution: The distribution that brings it: what ``pip uninstall`` takes.
        version: The version of that distribution.
        status: One word: ``ok``, ``broken``, ``slow``, ``clash``, ``outdated``, ``newer``, ``invalid``, ``left-out``.
        message: Why it is not used; empty when it is.
        seconds: How long its import took; 0 when it was not imported.
    """

    name: str
    distribution: str
    version: str
    status: str
    message: str = ""
    seconds: float = 0.0

    @property
    def warning(self) -> str:
        """One line for the user, or an empty text when there is nothing to warn of."""
        if self.status in (OK, LEFT_OUT):
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


@frozen
class Found:
    """An installed entry point that has not been imported."""

    name: str
    distribution: str
    version: str
    entry: EntryPoint = field(repr=False)

    def record(self, status: str, message: str = "", seconds: float = 0.0) -> Record:
        """What became of it."""
        return Record(self.name, self.distribution, self.version, status, message, seconds)


def chosen(environ: dict[str, str] | os._Environ[str] = os.environ) -> Choice:
    """What the environment says: TRNSPEC_PLUGINS is a list with commas, or ``none``; unset or empty means all."""
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


def folders() -> list[FilePath]:
    """The metadata folders, on the path of this interpreter, of distributions whose entry points name the group."""
    found: list[FilePath] = []
    for place in dict.fromkeys(p or "." for p in sys.path):
        try:
            inside = sorted(e.path for e in os.scandir(place) if e.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue  # what cannot be listed holds nothing that could be imported; so does the standard library's zip
        for each in inside:
            try:
                with open(os.path.join(each, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123  # many files
                    text = file.read()
            except OSError:
                continue
            if GROUP.encode() in text:
                found.append(FilePath(each))
    return found


def entries() -> list[Found]:
    """The plugins that are installed, trnspec itself left out, by name; none of them is imported."""
    found: dict[str, list[Found]] = {}
    where = [f for f in folders() if not _only_core(f)]
    if where:
        from importlib.metadata import PathDistribution

        for folder in where:
            distribution = PathDistribution(folder)
            name = str((distribution.metadata or {})["Name"] or folder.name.rpartition(".")[0].partition("-")[0])
            # The first on the path is the one that is imported.
            if (key := re.sub(r"[-_.]+", "-", name).lower()) not in found:
                version = str(distribution.metadata["Version"] or "")
                points = [e for e in distribution.entry_points if e.group == GROUP and (e.name, e.value) != CORE]
                found[key] = [Found(e.name, name, version, e) for e in points]
    return sorted((f for each in found.values() for f in each), key=lambda f: (f.name, f.distribution))


def _only_core(folder: FilePath) -> bool:
    """True for the metadata of trnspec itself, told without reading it."""
    return re.fullmatch(r"trnspec-[^-]+\.(dist|egg)-info|trnspec\.egg-info", folder.name) is not None


def discover(core: Callable[[], Plugin], choice: Choice, seconds: float, found: list[Found] | None = None) -> Discovery:
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
    kept = [core()]
    takers = {key: "trnspec" for key in _gives(kept[0])}
    records: list[Record] = []
    for each in found:
        if not choice.takes(each.name):
            records.append(each.record(LEFT_OUT, "not chosen"))
            continue
        record, plugin = _loaded(each, seconds)
        if plugin is not None:
            record, plugin = _settled(record, plugin, takers)
        if plugin is not None:
            kept.append(plugin)
            takers.update(dict.fromkeys(_gives(plugin), plugin.name))
        records.append(record)
    return Discovery(tuple(kept), tuple(records))


def _loaded(found: Found, seconds: float) -> tuple[Record, Plugin | None]:
    """A plugin, imported in a thread that is left behind when it takes too long."""
    from threading import Thread

    done: list[object] = []
    failed: list[BaseException] = []

    def load() -> None:
        try:
            done.append(found.entry.load())
        except BaseException as error:  # noqa: BLE001  # also SystemExit: nothing in a plugin ends the run
            failed.append(error)

    began = time.perf_counter()
    thread = Thread(target=load, name=f"trnspec plugin {found.name}", daemon=True)
    out = sys.stdout
    # What a plugin prints while it is imported is not part of our output, which programs may read.
    sys.stdout = sys.stderr
    try:
        thread.start()
        thread.join(seconds)
    finally:
        sys.stdout = out
    took = time.perf_counter() - began
    if failed:
        return found.record(BROKEN, f"its import failed: {_told(failed[0])}", took), None
    if not done:
        return found.record(SLOW, f"its import took longer than {seconds:g} s (TRNSPEC_PLUGIN_SECONDS)", took), None
    return _verified(found, done[0], took)


def _told(error: BaseException) -> str:
    # Not even the message of an error need be sound.
    try:
        text = str(error)
    except Exception:  # noqa: BLE001
        text = "its message cannot be shown"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _verified(found: Found, value: Any, took: float) -> tuple[Record, Plugin | None]:
    """The handshake: the API first, for nothing else can be trusted before."""
    if isinstance(value, Plugin) and type(value.api) is int and value.api != API:
        status, what = (OUTDATED, "older") if value.api < API else (NEWER, "newer")
        message = f"it was written for API {value.api}, an {what} one; this is API {API}"
        return found.record(status, message.replace("an newer", "a newer"), took), None
    message = _unsound(found, value)
    return (found.record(INVALID, message, took), None) if message else (found.record(OK, "", took), value)


def _unsound(found: Found, value: Any) -> str:
    """What is wrong with an object that should be a plugin, or an empty text."""
    if not isinstance(value, Plugin):
        return f"{found.entry.value} is of type {type(value).__name__}; a trnspec.plugin.Plugin is expected"
    if type(value.api) is not int:
        return f"its api is {value.api!r}; a whole number is expected"
    if value.name != found.name:
        return f"its entry point is named {found.name!r} and the plugin {value.name!r}; give both the same name"
    try:
        for kept in _gives(value):
            hash(kept)
        missing = [c for c in value.catalogs if not c.is_dir()]
    except Exception as error:  # noqa: BLE001  # fields of other types than they should have
        return f"its fields are not what they should be: {_told(error)}"
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


def _settled(record: Record, plugin: Plugin, takers: dict[tuple[str, str], str]) -> tuple[Record, Plugin | None]:
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
    return record, plugin


CHOICE: ContextVar[Choice | None] = ContextVar("trnspec_plugins", default=None)
"""What the command line says; it wins over the environment."""


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, PluginWarning, stacklevel=2)


TELL: ContextVar[Callable[[str], None]] = ContextVar("trnspec_tell", default=_warn)
"""What is done with a warning: Python's own way, or a line on standard error."""

_kept: dict[object, Discovery] = {}


def installed(core: Callable[[], Plugin]) -> Discovery:
    """The plugins this process may use; each is imported once and warned of once.

    Raises:
        UsageError: A plugin that is chosen by name is not installed, or the environment makes no sense.
    """
    choice = CHOICE.get() or chosen()
    key = (choice, tuple(sys.path))
    if key not in _kept:
        # Kept, for a plugin that was slow once would be waited for again at every call.
        made = _kept[key] = discover(core, choice, limit())
        for record in made.records:
            if record.warning:
                TELL.get()(record.warning)
    return _kept[key]
