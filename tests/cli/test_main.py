"""``python -m trnspec`` and the group of commands."""

import re

import pytest

from tests.support.programs import apart
from trnspec._version import __version__
from trnspec.catalog.versions.editions import FOLDER, names
from trnspec.cli.dispatch import _message
from trnspec.loading.files import shipped
from trnspec.plugins.builtin_commands import FORMER, GROUPS


def test_version(tmp_path) -> None:
    result = apart("--version", "--help", cwd=tmp_path)

    newest = names(shipped() / FOLDER)[-1]

    assert (0, f"trnspec {__version__}, catalog edition {newest}\n", "") == (result.status, result.out, result.err)


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_the_commands(here, flag) -> None:
    result = here(flag)

    groups: dict[str, list[str]] = {}
    for line in result.out.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            names = groups.setdefault(line[:-1], [])
        elif found := re.match("  ([a-z]+)  ", line):
            names.append(found[1])
    assert result.status == 0
    assert {name: tuple(names) for name, names in groups.items() if name not in ("Options", "Examples")} == {
        group: tuple(commands) for group, commands in GROUPS.items()
    }


@pytest.mark.parametrize("former", sorted(set(FORMER) - {"completion"}))
def test_former_names_work_with_a_hint(here, former) -> None:
    old, present = here(former, "--nope"), here(*FORMER[former].split(), "--nope")

    assert old.err.splitlines()[0] == f"trnspec {former} is now trnspec {FORMER[former]}"
    assert (old.status, old.out) == (present.status, present.out) == (2, "")
    assert "No such option" in old.err


@pytest.mark.parametrize(
    ("evaluator", "present"), [("plan-train", "plan train"), ("plan-serve", "plan serve"), ("search", "search")]
)
def test_evaluators_with_a_command_of_their_own(here, evaluator, present) -> None:
    old, new = here("eval", evaluator, "--help"), here(*present.split(), "--help")

    assert (old.status, old.err) == (0, f"trnspec eval {evaluator} is now trnspec {present}\n")
    assert old.out.split("\n\n")[1:] == new.out.split("\n\n")[1:]
    assert f"  {evaluator} " not in here("eval", "--help").out


def test_unwritable_output_is_named(here) -> None:
    """A file by its name; standard output only where that is what failed (tests/cli/test_validate.py has a full disk)."""
    (here.folder / "file").write_text("")
    done = here("export", "json", "--output", "file/x.json")

    assert (2, "") == (done.status, done.out)
    assert re.fullmatch(r"trnspec: file[/\w.]*: [A-Z][a-z ]+\n", done.err)
    assert "No space left on device" == _message(OSError(28, "No space left on device"))
    assert "a/b: Permission denied" == _message(PermissionError(13, "Permission denied", b"a/b"))


@pytest.mark.parametrize("args", [("--no-plugins", "list", "chips"), ("list", "--no-plugins", "chips")])
def test_no_plugins_before_and_after_the_command(here, args) -> None:
    assert here(*args).out == here("list", "chips", "--no-plugins").out
    assert here(*args).status == 0
