"""``trnspec completion``: the script with which a shell completes commands, options and names."""

from __future__ import annotations

import click

from trnspec.cli.help import GroupedCommand

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=GroupedCommand, examples=(("trnspec completion bash", "The script for bash:"),))
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the script with which SHELL completes commands, options, documents, models, systems and codes.

    \b
    bash   eval "$(trnspec completion bash)"           in ~/.bashrc
    zsh    eval "$(trnspec completion zsh)"            in ~/.zshrc
    fish   trnspec completion fish > ~/.config/fish/completions/trnspec.fish
    """  # noqa: D301  # click does not wrap after \b
    from click.shell_completion import get_completion_class

    from trnspec.cli import group

    script = get_completion_class(shell)
    assert script is not None, f"click supports {shell}"
    click.echo(script(group, {}, "trnspec", "_TRNSPEC_COMPLETE").source())
