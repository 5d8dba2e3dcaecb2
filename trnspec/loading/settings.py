"""The settings of the command line and of configuration files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

from attrs import evolve, field, frozen

from trnspec.diagnostics import Severity, did_you_mean, present_id
from trnspec.errors import UsageError


def _present_ids(codes: Iterable[str]) -> tuple[str, ...]:
    return tuple(present_id(code) for code in codes)


def _present_levels(levels: Mapping[str, Severity]) -> Mapping[str, Severity]:
    return {present_id(code): level for code, level in levels.items()}


@frozen(kw_only=True)
class Settings:
    """The settings of a run.

    Attributes:
        select: Codes, or prefixes of codes, to report; all codes if empty.
        ignore: Codes, or prefixes of codes, not to report; takes precedence over ``select``.
        severity: Another severity for a code or a prefix of codes; the longest match applies.
        catalogs: Folders of documents in addition to the shipped catalog; they take precedence over it.
    """

    select: tuple[str, ...] = field(default=(), converter=_present_ids)
    ignore: tuple[str, ...] = field(default=(), converter=_present_ids)
    severity: Mapping[str, Severity] = field(factory=dict, converter=_present_levels)
    catalogs: tuple[FilePath, ...] = ()

    def reports(self, code: str) -> bool:
        """True if findings of this code are reported; TRN001, an unreadable file, is only hidden by ``ignore``."""
        if any(code.startswith(c) for c in self.ignore):
            return False
        return not self.select or code == "TRN001" or any(code.startswith(c) for c in self.select)

    def severity_of(self, code: str, default: Severity) -> Severity:
        """The severity of findings of this code in this run."""
        matches = [c for c in self.severity if code.startswith(c)]
        return self.severity[max(matches, key=len)] if matches else default

    def merged(self, other: Settings) -> Settings:
        """Override these settings by ``other``, which is closer to the user.

        Codes that ``other`` selects are reported even if these settings ignore them, and its severity for ``TRN4`` also
        overrides that of these settings for ``TRN402``.
        """
        overridden = tuple(other.severity)
        kept = {code: level for code, level in self.severity.items() if not code.startswith(overridden)}
        return evolve(
            self,
            select=other.select or self.select,
            ignore=other.ignore if other.select else (*self.ignore, *other.ignore),
            severity={**kept, **other.severity},
            catalogs=(*self.catalogs, *other.catalogs),
        )

    def verify(self, codes: Collection[str]) -> None:
        """Check that every code in these settings exists.

        Args:
            codes: The ids of all known codes.

        Raises:
            UsageError: An entry is neither a code nor a prefix of one.
        """
        for name, entries in (("select", self.select), ("ignore", self.ignore), ("severity", self.severity)):
            for entry in entries:
                if not entry or not any(code.startswith(entry) for code in codes):
                    hint = did_you_mean(entry, codes) or "trnspec explain lists them"
                    raise UsageError(f"{name}: no code is or begins with {entry!r}; {hint}")


_MENTIONED = re.compile(r"""^[ \t]*\[?[ \t]*["']?tool["']?[ \t]*(?:[]=]|\.[ \t]*["']?trnspec\b)""", re.MULTILINE)
"""The possible beginning of a table ``tool.trnspec``; most projects have none, and are not parsed."""


_MOST_BYTES = 1_000_000
"""The size of the largest file of settings that is read."""


def find(start: FilePath) -> Settings:
    """The settings for a folder: the nearest ``trnspec.toml`` or ``[tool.trnspec]`` at or above it.

    Raises:
        UsageError: The file cannot be read, or has an entry that is not a setting.
    """
    for folder in (start, *start.parents):
        own = folder / "trnspec.toml"
        if own.is_file():
            return read(own, _load(own))
        if own.is_symlink() or own.exists():
            raise UsageError(f"{own}: it is not a file, or a link that leads to none")
        project = folder / "pyproject.toml"
        if project.is_file():
            tools = _load(project).get("tool")
            if isinstance(tools, dict) and "trnspec" in tools:
                return read(project, tools["trnspec"])
        if (folder / ".git").exists():
            break
    return Settings()


def _load(file: FilePath) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{file}: it has more than {_MOST_BYTES:,} bytes")
        text = file.read_text(encoding="utf-8")
        if file.name == "pyproject.toml" and not _MENTIONED.search(text):
            return {}
        return tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{file}: it is nested too deeply", hint=_HINT) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{file}:{line}: it is not UTF-8", hint="save the file as UTF-8") from error
    except (OSError, ValueError) as error:
        raise UsageError(_located(file, str(error)), hint=_HINT) from error


_HINT = "a setting is, for instance: severity = {TRN402 = 'warning'}, or catalogs = ['hardware']"


def _located(file: FilePath, message: str) -> str:
    """The message of the TOML reader, with the position as others have it."""
    if (match := re.search(r" \(at line ([0-9]+), column ([0-9]+)\)", message)) is not None:
        return f"{file}:{match[1]}:{match[2]}: {message.replace(match[0], '')}"
    too_long = message.startswith("Exceeds the limit")
    return f"{file}: {'a number has too many digits' if too_long else message}"


def read(file: FilePath, table: Any) -> Settings:
    """The settings in a table that was read from ``file``; ``UsageError`` names the wrong entry."""
    if not isinstance(table, dict):
        raise UsageError(f"{file}: [tool.trnspec] is a table", hint=_HINT)
    names = ("select", "ignore", "severity", "catalogs")
    for key in table:
        if key not in names:
            hint = did_you_mean(key, names) or f"known: {', '.join(names)}"
            raise UsageError(f"{file}: {key!r} is not a setting of trnspec; {hint}")
    severity = table.get("severity", {})
    if not isinstance(severity, dict):
        raise UsageError(f"{file}: severity is a table such as {{TRN402 = 'warning'}}", hint=_HINT)
    try:
        severities = {str(code).upper(): Severity.of(str(label)) for code, label in severity.items()}
    except ValueError as error:
        raise UsageError(f"{file}: severity: {error}") from error
    return Settings(
        select=_codes(file, table, "select"),
        ignore=_codes(file, table, "ignore"),
        severity=severities,
        catalogs=tuple(file.parent / c for c in _texts(file, table, "catalogs")),
    )


def _codes(file: FilePath, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(code.upper() for code in _texts(file, table, key))


def _texts(file: FilePath, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        example = "catalogs = ['hardware']" if key == "catalogs" else f"{key} = ['TRN402']"
        raise UsageError(f"{file}: {key} is a list of texts", hint=f"write for instance: {example}")
    return tuple(value)
