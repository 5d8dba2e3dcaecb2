"""The options that choose a catalog, which most commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from trnspec.cli.help import option
from trnspec.errors import UsageError

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.loading.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    ("--catalog", "DIR", "Also read the documents in this folder; they take precedence over others of the same name."),
    ("--edition", "NAME", "Use a frozen edition, such as 2026.11, of the shipped catalog or of that in DIR."),
    ("--as-of", "DATE", "Use only what was published by this date: a day, a month or a year."),
    ("--overlay", "FILE", "Apply the changes in this YAML file to the catalog."),
)


def catalog_options(command: F) -> F:
    """Adds the options that choose a catalog; the function passes them to :func:`load_catalog` by name."""
    for name, metavar, text in reversed(_OPTIONS):
        command = option(name, group="Catalog", metavar=metavar, help=text)(command)
    return command


def check_options(command: F) -> F:
    """The options of commands that rewrite documents: ``--check`` and ``--diff``, which write nothing."""
    shown = {"--check": "list the files that would change", "--diff": "print what would change"}
    for name, effect in reversed(shown.items()):
        text = f"Write nothing; {effect}, with exit status 1."
        command = option(name, is_flag=True, group="Output", help=text)(command)
    return command


def load_catalog(
    *,
    catalog: str | None = None,
    edition: str | None = None,
    as_of: str | None = None,
    overlay: str | None = None,
) -> Catalog:
    """The catalog that the options choose; it raises what :func:`trnspec.api.load` raises."""
    from trnspec.api import load

    # An edition is complete: the catalogs that settings name are not added to it.
    settings = here() if edition is None else None
    return load([catalog] if catalog else [], edition=edition, as_of=as_of, overlay=overlay, settings=settings)


def here() -> Settings:
    """The settings of the current folder."""
    from trnspec.loading import settings

    try:
        return settings.find(FilePath.cwd())
    except FileNotFoundError:
        raise UsageError("the current folder does not exist") from None
