"""The plugins in use by a command, and names from their registry as arguments: the formats of ``export`` and ``validate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
from click.shell_completion import CompletionItem

from trnspec.plugins.api import Exporter, Registry, Reporter
from trnspec.plugins.selection import ONLY, REPORT, TRACEBACK
from trnspec.text_table import visible


@contextmanager
def plugins(only: tuple[str, ...] | None, *, traceback: bool | None = None) -> Iterator[None]:
    """Use only these plugins, or those of the environment; warnings go to standard error, one line each.

    Args:
        only: Names of plugins, empty for no plugin; ``None`` leaves the choice to the environment.
        traceback: Print the tracebacks of errors in plugins; ``None`` leaves the choice to the environment.
    """
    wanted = ONLY.set(only)
    traced = TRACEBACK.set(TRACEBACK.get() if traceback is None else traceback)
    token = REPORT.set(lambda text: click.echo(f"trnspec: warning: {visible(text)}", err=True))
    try:
        yield
    finally:
        ONLY.reset(wanted)
        TRACEBACK.reset(traced)
        REPORT.reset(token)


def known(ctx: click.Context | None) -> Registry:
    """The registry that the options before the command choose.

    Click completes and prints help before these options take effect, so they are read here.
    """
    from trnspec.api import registry

    given = {} if ctx is None else ctx.find_root().params
    only = () if given.get("none") else given.get("only") or None
    with plugins(only if only is not None else ONLY.get(), traceback=given.get("traceback") or None):
        return registry()


class FormatName(click.ParamType[str]):
    """The name of an exporter or a reporter."""

    name = "format"

    def __init__(self, *, exports: bool) -> None:
        self.exports = exports

    def formats(self, ctx: click.Context | None) -> Mapping[str, Exporter | Reporter]:
        """The formats by name; plugins are imported for it."""
        registry = known(ctx)
        return registry.exporters if self.exports else registry.reporters

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002  # click passes it
        """The name itself, if there is such a format.

        Raises:
            UsageError: There is none; the message suggests the nearest.
        """
        registry = known(ctx)
        find = registry.exporter if self.exports else registry.reporter
        return find(value).name

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The names of an option's formats; an argument has its own metavar."""
        return None if isinstance(param, click.Argument) else f"[{'|'.join(self.formats(ctx))}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  # click passes it
        """The names that begin so, with their summaries."""
        formats = self.formats(ctx).values()
        return [CompletionItem(f.name, help=f.summary) for f in formats if f.name.startswith(incomplete)]
