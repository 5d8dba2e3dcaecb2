"""What commands that ask share: which catalog is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from trnspec.ask import Catalog
    from trnspec.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def catalog_options(command: F) -> F:
    """Adds the options that choose a catalog; the function gets them by name and hands them to :func:`load_catalog`."""
    return click.option("--catalog", metavar="DIR", help="Ask this catalog instead of the shipped one.")(command)


def load_catalog(*, catalog: str | None = None) -> Catalog:
    """The catalog that the options choose."""
    from trnspec.api import load

    return load([catalog] if catalog else [], settings=here())


def here() -> Settings:
    """The settings of the current folder."""
    from trnspec import settings

    try:
        return settings.find(FilePath.cwd())
    except FileNotFoundError:
        raise UsageError("the current folder does not exist") from None
