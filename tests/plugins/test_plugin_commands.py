"""Commands of plugins: they run, they are in the help, and what does not need them does not look for them."""

import pytest

from tests.support.programs import Site

HEAD = "import click\nfrom trnspec.plugins.api import Command\n"

HELLO = """
@click.command('hello')
@click.argument('name')
def hello(name):
    '''Greet.'''
    click.echo(f'hello {name}')
"""


def installed(site: Site, name: str = "one", command: str = "hello", *, run: str | None = None, code: str = "") -> None:
    """A plugin with one command, in a module beside its own."""
    module = site.folder / f"{name}_commands.py"
    module.write_text(code or HEAD + HELLO)
    made = f"Command({command!r}, 'Greet somebody.', {run or f'{name}_commands:hello'!r})"
    site.plugin(name, f"commands=({made},)", head="from trnspec.plugins.api import Command")


def records(site: Site, *options: str) -> dict[str, tuple[str, str]]:
    done = site.run(*options, "plugin", "list", "--format", "json")
    assert 0 == done.status
    return {r["name"]: (r["status"], r["message"]) for r in done.data["plugins"]}


def test_a_command_runs(site) -> None:
    installed(site)
    done = site.run("hello", "world")

    assert (0, "hello world\n", "") == (done.status, done.out, done.err)


def test_help_shows_it_without_importing_it(site) -> None:
    installed(site, code="raise ValueError")
    done = site.run("--help")

    assert (0, "") == (done.status, done.err)
    assert "hello    Greet somebody." in map(str.strip, done.out.partition("\nExtend:\n")[2].splitlines())


@pytest.mark.parametrize("options", [["--no-plugins"], ["--plugin", "two"]])
def test_those_that_are_not_chosen_have_no_commands(site, options) -> None:
    installed(site)
    site.plugin("two")
    done = site.run(*options, "hello", "world")

    assert (2, "") == (done.status, done.out)
    assert "No such command 'hello'" in done.err
    assert "hello" not in site.run(*options, "--help").out


def test_trnspec_wins_a_clash(site) -> None:
    installed(site, command="audit")
    done = site.run("audit", "--help")

    assert (0, "") == (done.status, done.err)
    assert "Compare what different sources state" in done.out
    assert {"one": ("clash", "the command audit is defined by trnspec already")} == records(site)


@pytest.mark.parametrize(
    ("run", "code", "message"),
    [
        (None, "raise ValueError('no')", "one_commands:hello cannot be imported: ValueError: no"),
        ("no_such:hello", "", "no_such:hello cannot be imported: ModuleNotFoundError: No module named 'no_such'"),
        ("math:floor", "", "math:floor is of type builtin_function_or_method; a click.Command is expected"),
    ],
)
def test_commands_that_cannot_be_loaded(site, run, code, message) -> None:
    installed(site, run=run, code=code)
    done = site.run("hello", "world")

    provider = "the command hello of the plugin one of trnspec-one 1.0"
    assert (2, "", f"trnspec: {provider}: {message}\n") == (done.status, done.out, done.err)


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("{}['a']", "KeyError: 'a'"),
        ("assert False, 'no'", "AssertionError: no"),
    ],
)
def test_a_command_that_raises(site, raised, reason) -> None:
    installed(site, code=f"{HEAD}@click.command('hello')\ndef hello():\n    {raised}\n")
    message = f"trnspec: the command hello of the plugin one of trnspec-one 1.0 failed: {reason}\n"
    done = site.run("hello")
    traced = [site.run("--traceback", "hello").err, site.run("hello", TRNSPEC_TRACEBACK="1").err]

    assert (2, "", message) == (done.status, done.out, done.err)
    for err in traced:
        assert err.startswith("Traceback (most recent call last)")
        assert 'one_commands.py", line 5, in hello' in err
        assert err.endswith(message)


def test_a_broken_plugin_is_named_where_its_command_is_missed(site) -> None:
    site.add("bad", "raise ValueError")
    done = site.run("hello")

    assert 2 == done.status
    assert done.err.startswith("trnspec: warning: the plugin bad of trnspec-bad 1.0 is left out")
    assert 1 == done.err.count("left out")
    assert "No such command 'hello'" in done.err
