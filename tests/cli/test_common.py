"""Defaults and ranges of the options; those that choose a catalog are the same for every command that asks.

``python tests/cli/test_common.py`` writes the defaults.
"""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support.programs import commands

DEFAULTS = Path(__file__).with_name("defaults.txt")
OVERLAY = """
change:
  trainium2: {memory.capacity: 128 GiB}
add:
  - api_version: trnspec/v1
    kind: Server
    metadata: {name: mine.8xlarge, title: My own server}
    spec: {chips: {chip: trainium2, count: 8}}
"""


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["show", "mine.8xlarge"], "1,024 GiB"),
        (["compare", "trainium2", "mine.8xlarge"], "128         1,024     8x"),
        (["list", "servers"], "mine.8xlarge"),
        (["tree", "mine.8xlarge"], "8 x trainium2: bf16 667 TFLOPS, 128 GiB"),
    ],
)
def test_overlay(here, args, text) -> None:
    (here.folder / "my.yaml").write_text(OVERLAY)

    assert text in here(*args, "--overlay", "my.yaml").out
    assert text not in here(*args).out


def defaults() -> Iterator[str]:
    """The options of all commands that have a default, a range or a path."""
    for path, option in ((path, option) for path, command in commands() for option in command.params):
        limits = option.type if isinstance(option.type, click.IntRange | click.FloatRange) else ""
        if isinstance(option.type, click.Path):
            limits = [name for name in ("exists", "file_okay", "dir_okay") if getattr(option.type, name)]
        default = option.default if isinstance(option.default, int | float | str | tuple) else None
        if default not in (None, False) or limits:
            yield " ".join(map(str, (path, option.opts[0], default, limits))).rstrip()


def test_defaults() -> None:
    assert DEFAULTS.read_text("utf-8").splitlines() == [*defaults()]


if __name__ == "__main__":
    DEFAULTS.write_text("".join(f"{line}\n" for line in defaults()), "utf-8")
