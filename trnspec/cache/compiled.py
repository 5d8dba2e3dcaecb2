"""The code that attrs generates for classes, compiled by earlier runs.

attrs writes the methods of a class as a text when its module is imported, and compiles it: a quarter of the time that
importing trnspec takes. A compiled text depends on nothing but the text and the version of Python, as the files in
``__pycache__`` do.
"""

from __future__ import annotations

import atexit
import builtins
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from trnspec.cache import observer, verdicts

if TYPE_CHECKING:
    from types import CodeType, ModuleType

FORMAT = 1
"""Changes with the structure of a file."""

MOST = 2_000
"""The number of texts that are kept; plugins may have other classes."""


_SEED = re.compile(r"(?<=\n) +-?[0-9]+,(?=\n)")


class Compiled:
    """The compiled texts of earlier runs, by file name and text."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._name = verdicts.digest(f"{FORMAT} {sys.version} {sys.flags}".encode()).hex()
        self._codes: dict[tuple[str, str], CodeType] = {}
        self._is_new = False
        try:
            raw: Any = verdicts.read(os.path.join(folder, self._name))
            self._codes = (raw or {}).get("codes", {})
        except (ValueError, TypeError, EOFError):
            pass

    def compile(self, source: Any, filename: Any, mode: str, *arguments: Any, **options: Any) -> Any:
        """What the function of this name returns."""
        if mode != "exec" or arguments or options or type(source) is not str or type(filename) is not str:
            return builtins.compile(source, filename, mode, *arguments, **options)
        # The hash of a class begins with a number that attrs draws in each process; any will do.
        key = (filename, _SEED.sub(",", source))
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = builtins.compile(source, filename, mode, dont_inherit=True)
            self._is_new = True
        return code

    def save(self) -> None:
        """Write what is new; without an error wherever that is not possible."""
        if self._is_new and len(self._codes) <= MOST:
            self._is_new = False
            try:
                observer.write(self._folder, self._name, verdicts.packed({"codes": self._codes}))
            except (OSError, ValueError):
                return


def install(module: ModuleType) -> None:
    """Let a module that compiles generated texts use those of earlier runs, if the cache may be used."""
    place = verdicts.folder()
    if not place or not verdicts.is_allowed(sys.argv[1:], os.environ):
        return
    with observer.unobserved():
        compiled = Compiled(os.path.join(os.path.dirname(place), f"code-{FORMAT}"))
    # A global name of the module precedes the builtin one.
    vars(module)["compile"] = compiled.compile
    atexit.register(compiled.save)
