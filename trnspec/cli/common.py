"""What commands that ask share: which catalog is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.loading.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--catalog", metavar="DIR", help="Ask the documents in this folder too; they come before others of their names."
    ),
    click.option(
        "--edition",
        metavar="NAME",
        help="Ask a frozen edition, such as 2026.11, of the shipped catalog or that in DIR.",
    ),
    click.option("--as-of", metavar="DATE", help="Ask only what was published by then: a day, a month or a year."),
    click.option("--overlay", metavar="FILE", help="Lay the changes in this YAML file over it."),
)


def catalog_options(command: F) -> F:
    """Adds the options that choose a catalog; the function hands them to :func:`load_catalog` by name."""
    for option in reversed(_OPTIONS):
        command = option(command)
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

    # An edition is whole, so the catalogs that settings name have no part in it.
    settings = here() if edition is None else None
    return load([catalog] if catalog else [], edition=edition, as_of=as_of, overlay=overlay, settings=settings)


def here() -> Settings:
    """The settings of the current folder."""
    from trnspec.loading import settings

    try:
        return settings.find(FilePath.cwd())
    except FileNotFoundError:
        raise UsageError("the current folder does not exist") from None
