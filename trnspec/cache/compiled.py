"""Code that is generated when modules are imported, compiled by earlier runs.

attrs writes the methods of a class as a text when its module is imported, and compiles it; a regular expression is compiled
by a parser that is written in Python. What is compiled depends on nothing but the text and the version of Python, as the
files in ``__pycache__`` do.
"""

from __future__ import annotations

import atexit
import builtins
import marshal
import os
import re
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from trnspec.cache import observer, verdicts

if TYPE_CHECKING:
    from types import CodeType

FORMAT = 2
"""Changes with the structure of a file."""

MOST = 2_000
"""The number of texts and expressions that are kept; plugins may have others."""


_COMPILE = builtins.compile

_HASH = "hash((\n"

_Pattern = tuple[bool, str | bytes, int]
"""Whether a regular expression is one of bytes, its text, and its flags."""


class Compiled:
    """What earlier runs have compiled: code by the hash of its text, and regular expressions."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._name = verdicts.digest(f"{FORMAT} {sys.version} {sys.flags}".encode()).hex()
        self._codes: dict[bytes, bytes] = {}
        self._patterns: dict[_Pattern, tuple[Any, ...]] = {}
        self._is_new = False
        try:
            raw: Any = verdicts.read(os.path.join(folder, self._name))
            self._codes, self._patterns = (raw or {}).get("codes", {}), (raw or {}).get("patterns", {})
        except (ValueError, TypeError, EOFError):
            pass

    def compile(self, source: Any, filename: Any, mode: str, *arguments: Any, **options: Any) -> Any:
        """What the builtin function of this name returns."""
        if mode != "exec" or arguments or options or type(source) is not str or type(filename) is not str:
            return _COMPILE(source, filename, mode, *arguments, **options)
        key = verdicts.digest(filename.encode(), _without_seed(source).encode())
        raw = self._codes.get(key)
        if raw is not None:
            code: CodeType = marshal.loads(raw)  # of this user
            return code
        code = _COMPILE(source, filename, mode, dont_inherit=True)
        self._codes[key] = marshal.dumps(code)
        self._is_new = True
        return code

    def patterns(self, compiler: ModuleType) -> None:
        """Let the compiler of regular expressions use those of earlier runs.

        Args:
            compiler: ``re._compiler``: its function ``compile`` parses an expression, and passes the result to
                ``_sre.compile``.
        """
        names = vars(compiler)
        parsed, sre = names["compile"], names["_sre"]
        known = self._patterns
        made: list[tuple[Any, ...]] = []

        class Recorder:
            """The module that makes the object, which keeps the arguments."""

            def __getattr__(self, name: str) -> Any:
                return getattr(sre, name)

            def compile(self, *arguments: Any) -> re.Pattern[Any]:
                made[:] = [arguments]
                pattern: re.Pattern[Any] = sre.compile(*arguments)
                return pattern

        def compile(pattern: Any, flags: int = 0) -> re.Pattern[Any]:
            if type(pattern) not in (str, bytes) or type(flags) is not int or flags & re.DEBUG:
                return parsed(pattern, flags)  # type: ignore[no-any-return]  # of re
            key = (type(pattern) is bytes, pattern, flags)
            parts = known.get(key)
            if parts is not None:
                return sre.compile(pattern, *parts)  # type: ignore[no-any-return]  # of re
            made.clear()
            result: re.Pattern[Any] = parsed(pattern, flags)
            if len(made) == 1:
                (_, _, code, groups, index, names), flags_ = made[0], made[0][1]
                known[key] = (int(flags_), [int(c) for c in code], groups, dict(index), names)
                self._is_new = True
            return result

        names["_sre"], names["compile"] = Recorder(), compile

    def save(self) -> None:
        """Write what is new; without an error wherever that is not possible."""
        if self._is_new and max(len(self._codes), len(self._patterns)) <= MOST:
            self._is_new = False
            try:
                entry = {"codes": self._codes, "patterns": self._patterns}
                observer.write(self._folder, self._name, [verdicts.packed(entry)])
            except (OSError, ValueError):
                return


def _without_seed(source: str) -> str:
    """A text without the number that attrs draws in each process, which begins the hash of a class; any will do."""
    start = source.find(_HASH) + len(_HASH)
    end = source.find(",\n", start)
    return source[:start] + source[end:] if start >= len(_HASH) and source[start:end].strip(" -").isdigit() else source


class _Deferred(ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


_RARELY_USED = ("inspect", "attr.validators", "attrs.validators")
"""What attrs imports and uses for few classes, none of them one that a changed file needs."""


def install() -> None:
    """Let attrs and the compiler of regular expressions use what earlier runs have compiled, if the cache may be used."""
    place = verdicts.folder()
    if not place or not verdicts.is_allowed(sys.argv[1:], os.environ):
        return
    for name in _RARELY_USED:
        sys.modules.setdefault(name, _Deferred(name))
    with observer.unobserved():
        compiled = Compiled(os.path.join(os.path.dirname(place), f"code-{FORMAT}"))
    if sys.implementation.name == "cpython" and sys.version_info < (3, 14):  # the inside of another re may be different
        compiled.patterns(import_module("re._compiler"))
    builtins.compile = compiled.compile  # for the classes that attrs itself has
    try:
        attrs = import_module("attr._make")
    finally:
        builtins.compile = _COMPILE
    vars(attrs)["compile"] = compiled.compile  # a global name of the module precedes the builtin one
    atexit.register(compiled.save)
