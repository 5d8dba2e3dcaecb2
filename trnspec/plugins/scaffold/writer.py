"""Writes a new plugin: a distribution with a working example that passes its own tests.

The files are in ``templates/KIND`` and, for every kind, ``templates/common``; NAME, MODULE, CLASS, SCHEMA, LETTERS, SUMMARY
and COMMAND in paths and texts are replaced.
"""

from __future__ import annotations

import re
from pathlib import Path as FilePath

from trnspec.errors import UsageError

_TEMPLATES = FilePath(__file__).parent / "templates"
_SUFFIX = ".tmpl"


# Each document is a test, by the pytest plugin that comes with trnspec.
_PROJECT = 'trnspec_catalogs = ["src/trnspec_MODULE/catalog"]\n'
_README = """
`trnspec schema --all schemas` writes the JSON Schemas that editors use for completion and checking; the documents in
`src/trnspec_MODULE/catalog` refer to them in their first line.
"""

_COMMANDS = {
    "generation": ("hardware of another generation", "trnspec list chips"),
    "rules": ("a cross-check", "trnspec explain LETTERS001"),
    "evaluator": ("an evaluator", "trnspec eval NAME-sweep --times 1,2,3"),
    "kind": ("a kind of document", "trnspec explain CLASSRack"),
    "exporter": ("an export format", "trnspec export NAME-csv trainium2"),
    "reporter": ("a report format", "trnspec validate --format NAME-counts"),
    "command": ("a command", "trnspec NAME-rank memory.capacity"),
    "unit": ("a unit", "trnspec query 'chip where memory.capacity > 1000 Mwords'"),
}
"""By kind, what a new plugin adds, and a command that shows the example."""

KINDS = {kind: summary for kind, (summary, _) in _COMMANDS.items()}
"""Kinds of new plugins, and a summary of each."""


def files(name: str, kind: str) -> dict[str, str]:
    """The files of a new distribution, by their paths in it.

    Raises:
        UsageError: The name or the kind is not valid.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or not 2 <= len(name) <= 40 or name == "trnspec":
        raise UsageError(
            f"{name!r} is not a valid name of a plugin: 2 to 40 lower-case letters, digits and single hyphens, a "
            "letter first, such as acme-tpu"
        )
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a kind of plugin; use one of {', '.join(KINDS)}")
    texts: dict[str, str] = {}
    for folder in (_TEMPLATES / "common", _TEMPLATES / kind):
        for file in sorted(folder.rglob(f"*{_SUFFIX}")):
            texts[file.relative_to(folder).as_posix().removesuffix(_SUFFIX)] = file.read_text(encoding="utf-8")
    if any("/catalog/" in path for path in texts):
        texts["pyproject.toml"] += _PROJECT
        texts["README.md"] += _README
    camel = "".join(word.capitalize() for word in name.split("-"))
    words = {
        "LETTERS": _letters(name),
        "MODULE": name.replace("-", "_"),
        "CLASS": camel,
        "SCHEMA": camel.lower(),
        "NAME": name,
    }
    # These hold some of the other words.
    summary, command = _COMMANDS[kind]
    words |= {"SUMMARY": summary, "COMMAND": _filled(command, words)}
    return {_filled(path, words): _filled(text, words) for path, text in texts.items()}


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub("|".join(words), lambda match: words[match[0]], text)


def _letters(name: str) -> str:
    """The letters that the codes of a plugin begin with; TRN is reserved for trnspec."""
    letters = re.sub(r"[^A-Z]", "", name.upper())[:6]
    return f"{letters}X" if len(letters) < 2 or letters == "TRN" else letters


def write(name: str, kind: str, into: FilePath) -> FilePath:
    """Write a new distribution into a folder of its own, all of it or nothing.

    Args:
        name: The name of the plugin; a ``trnspec-`` before it is dropped.
        kind: One of :data:`KINDS`.
        into: The parent of the new folder ``trnspec-NAME``.

    Returns:
        The folder.

    Raises:
        UsageError: The name or the kind is not valid, or the folder exists or cannot be written.
    """
    from tempfile import TemporaryDirectory

    name = name.removeprefix("trnspec-")
    texts = files(name, kind)
    folder = into / f"trnspec-{name}"
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} exists already; nothing was written")
    try:
        # Absolute: with a relative folder, the new one is relative to it before Python 3.12.
        scratch = TemporaryDirectory(prefix=".trnspec-", dir=into.absolute())
    except OSError as error:
        raise UsageError(f"{into} cannot be written to: {error.strerror}") from error
    try:
        with scratch as place:
            unfinished = FilePath(place, folder.name)
            for path, text in texts.items():
                (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
                (unfinished / path).write_text(text, encoding="utf-8")
            unfinished.rename(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}; nothing was written") from error
    return folder
