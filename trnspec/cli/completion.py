"""``trnspec completion``: the script that makes a shell complete commands, options and names."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print what makes SHELL complete commands, options and the names of documents.

    \b
    bash   eval "$(trnspec completion bash)"           in ~/.bashrc
    zsh    eval "$(trnspec completion zsh)"            in ~/.zshrc
    fish   trnspec completion fish > ~/.config/fish/completions/trnspec.fish
    """  # noqa: D301  # click's mark for lines that it must not wrap
    from click.shell_completion import get_completion_class

    from trnspec.cli import group

    found = get_completion_class(shell)
    assert found is not None, f"click knows {shell}"
    click.echo(found(group, {}, "trnspec", "_TRNSPEC_COMPLETE").source())
