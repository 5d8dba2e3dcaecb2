"""Programs, repositories and distributions that tests run and make."""

import asyncio
import atexit
import contextlib
import csv
import fcntl
import functools
import importlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import venv
import warnings
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest
from attrs import frozen

from trnspec.__main__ import main as process
from trnspec.api import validate
from trnspec.cli import COMMANDS, group, main

# Running the command line: in this process, where that is enough, and in one of its own.

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
NVIDIA = ROOT / "plugins" / "trnspec-nvidia" / "src" / "trnspec_nvidia" / "catalog"


def written(file: Path, text: str) -> Path:
    """A new or changed file, with its folders."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return file


@frozen
class Result:
    """What a run wrote, and how it ended."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What was written, of a run with ``--format json``."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, str]]:
        """What was written, of a run with ``--format csv``."""
        return list(csv.DictReader(io.StringIO(self.out)))


class Here:
    """The command line in this process, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.delenv("FORCE_COLOR", raising=False)

    def __call__(self, *args: str | Path) -> Result:
        self._monkeypatch.setattr(sys, "argv", ["trnspec", *map(str, args)])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        written = self._capsys.readouterr()
        return Result(status, written.out, written.err)


def command(*args: str | Path) -> list[str]:
    """The command line as an argument vector."""
    return [sys.executable, "-m", "trnspec", *map(str, args)]


def commands(command: click.Command = group, path: str = "trnspec") -> Iterator[tuple[str, click.Command]]:
    """A command and all commands below it, with their names."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")


def environment(**more: str) -> dict[str, str]:
    """This environment without what changes how text is written, and with ``more``."""
    left_out = ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL")
    return {k: v for k, v in os.environ.items() if k not in left_out} | more


def completed(work: Coroutine[Any, Any, Any]) -> Any:
    """What ``work`` returns. It has a thread of its own: Playwright's browser keeps an event loop in the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def apart(*args: str | Path, cwd: Path, stdin: bytes = b"", **env: str) -> Result:
    """The command line in a process of its own."""
    done = subprocess.run(
        command(*args), cwd=cwd, input=stdin, env=environment(**env), capture_output=True, check=False, timeout=60
    )
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    return Result(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))


def forked(
    *args: str | Path, cwd: Path, path: Path, stdin: bytes = b"", run: Callable[[], object] = process, **env: str
) -> Result:
    """The command line, or another, in a fork of this process, with a folder before those that modules are imported from.

    It has streams, an environment, imports and an exit status of its own, and needs a tenth of the time of a new
    interpreter.  :func:`apart` is for what an interpreter does at its start, except the encoding of its streams, and
    where there is no fork.
    """
    if not hasattr(os, "fork") or any(name.startswith("PYTHON") for name in env.keys() - {"PYTHONIOENCODING"}):
        before = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH", "")]))
        return apart(*args, cwd=cwd, stdin=stdin, **{"PYTHONPATH": before} | env)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        child = _fork(args, cwd, path, environment(**env), (given.fileno(), out.fileno(), err.fileno()), run)
        _, status = os.waitpid(child, 0)
        written = []
        for stream in (out, err):
            stream.seek(0)
            written.append(stream.read().decode(env.get("PYTHONIOENCODING", "utf-8")))
        return Result(os.waitstatus_to_exitcode(status), *written)


def at_a_terminal(*args: str | Path, cwd: Path, **env: str) -> Result:
    """The command line in a fork of this process that a terminal listens to; what it writes is in ``out``."""
    ours, theirs = os.openpty()
    child = _fork(args, cwd, cwd, environment(**{"TERM": "xterm"} | env), (theirs, theirs, theirs))
    os.close(theirs)
    written = b""
    # Linux says with an error that the other side has gone.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 65_536):
            written += part
    os.close(ours)
    _, status = os.waitpid(child, 0)
    return Result(os.waitstatus_to_exitcode(status), written.decode().replace("\r\n", "\n"), "")


def _fork(
    args: tuple[str | Path, ...],
    cwd: Path,
    path: Path,
    env: dict[str, str],
    files: tuple[int, int, int],
    run: Callable[[], object] = process,
) -> int:
    """The number of a fork that runs the command line with these streams."""
    _prepare()
    with warnings.catch_warnings():
        # Threads of pytest-xdist are no part of the fork, and it needs none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _run_in_fork(args, cwd, path, env, files, run)
    return child


@functools.cache
def _prepare() -> None:
    """Imports what most commands import, and parses the shipped catalog: each fork has it then."""
    validate()
    importlib.import_module("trnspec.catalog.catalog")
    for name in COMMANDS:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"trnspec.cli.{name}")


def _run_in_fork(
    args: tuple[str | Path, ...],
    cwd: Path,
    path: Path,
    env: dict[str, str],
    files: tuple[int, int, int],
    run: Callable[[], object],
) -> NoReturn:
    status: object = 1
    try:
        # Ends what hangs, as the time limit of a subprocess does.
        signal.alarm(60)
        for number, file in enumerate(files):
            os.dup2(file, number)
        encoding = env.get("PYTHONIOENCODING", "utf-8")
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(open(n, "wb" if n else "rb", closefd=False), encoding=encoding, write_through=n == 2)  # noqa: SIM115
            for n in range(3)
        )
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.path.insert(0, str(path))
        sys.argv = ["trnspec", *map(str, args)]
        for name in [name for name in sys.modules if name.startswith("trnspec_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        status = run()
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001  # whatever it is, the fork must not go on with the tests
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status if isinstance(status, int) else 0 if status is None else 1)


def few_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sites have the plans of one model on one system."""
    some = {"MODELS": ("llama-3.1-8b",), "TRAINED": ("trn1.32xlarge",), "SERVED": (), "COUNTS": (4,)}
    for name, values in some.items():
        monkeypatch.setattr(f"trnspec.site.planner.{name}", values)


# The real git in a folder of a test.


def git(where: Path, *args: str) -> str:
    settings = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    # A hook that runs the tests has variables of its own repository.
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(["git", "-C", str(where), *settings, *args], env=env, capture_output=True, check=True)
    return done.stdout.decode().strip()


# A document that is sound, one that is not, and what is found in that.

SOUND = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: A wire}\nspec: {connects: chips}\n"
WRONG = SOUND.replace("spec:", "body:")
MARKS = {("TRN101", 4), ("TRN102", 1)}


def marks(text: str) -> set[tuple[str, int]]:
    """The (code, line) of a report in JSON."""
    return {(d["code"], d["line"]) for d in json.loads(text)["diagnostics"]}


# Installed distributions, made by hand: a module and its metadata in a folder that is put on the path.

HEAD = "from trnspec.plugins.api import API, Kind, Plugin, Evaluator, Finding, rule\n"


class Site:
    """A folder of installed distributions, and the command line that sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, code: str, *, version: str = "1.0", value: str = "plugin") -> Path:
        """Install the distribution ``trnspec-NAME``, whose module holds ``code``; returns the module."""
        module = f"trnspec_{name.replace('-', '_')}"
        (self.folder / f"{module}.py").write_text(code)
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trnspec-{name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[trnspec.plugins]\n{name} = {module}:{value}\n")
        return self.folder / f"{module}.py"

    def plugin(self, name: str, more: str = "", *, head: str = "") -> Path:
        """Install a plugin that works, with ``more`` arguments."""
        return self.add(name, f"{HEAD}{head}\nplugin = Plugin(name={name!r}, api=API, {more})\n")

    def catalog(self, name: str, documents: dict[str, str]) -> Path:
        """Install a plugin with a catalog; returns its folder."""
        folder = self.folder / f"{name}_catalog"
        for file, text in documents.items():
            written(folder / file, text)
        self.plugin(name, f"catalogs=(Path({str(folder)!r}),)", head="from pathlib import Path")
        return folder

    def run(self, *args: str | Path, **env: str) -> Result:
        """The command line in a process that finds what is installed here."""
        return forked(*args, cwd=self.folder, path=self.folder, **env)


# An environment outside the repository that holds the wheel: what somebody who installs trnspec has.


@frozen
class Elsewhere:
    """An environment outside the repository that holds the wheel, and a folder to work in."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    def run(self, *args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A program that sees nothing of this environment's Python."""
        hidden = ("PYTHON", "VIRTUAL_ENV", "TRNSPEC", "PYTEST", "COLUMNS")
        env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        return subprocess.run([*args], cwd=cwd or self.folder, env=env, capture_output=True, check=False, text=True)

    def reported(self, *args: str | Path, cwd: Path | None = None) -> str:
        """What a program prints that must not fail."""
        done = self.run(*args, cwd=cwd)

        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def trnspec(self, *args: str) -> str:
        return self.reported(self.folder / "env" / "bin" / "trnspec", *args)

    def pip(self, *args: str | Path) -> None:
        self.reported(self.python, "-m", "pip", *args, "--quiet")

    def files(self) -> set[str]:
        """All that is installed; what the interpreter keeps of modules it has read comes and goes."""
        every = (self.folder / "env").rglob("*")
        return {f.relative_to(self.folder).as_posix() for f in every if "__pycache__" not in f.parts}


def _temporary() -> Path:
    """A folder that lasts as long as this process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return folder


@contextlib.contextmanager
def _alone() -> Iterator[Path]:
    """The folder that the processes of pytest-xdist share, for one of them at a time."""
    folder = Path(tempfile.gettempdir()) / f"trnspec-wheel-{os.environ['PYTEST_FIRST_PROCESS']}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@cache
def wheel() -> Path:
    """The wheel of this checkout, built once for all tests, by the process of pytest-xdist that needs it first."""
    with _alone() as folder:
        if not [*folder.glob("*.whl")]:
            pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
            Elsewhere(folder).reported(*pip)
    (made,) = folder.glob("*.whl")
    return made


@cache
def _installed() -> Elsewhere:
    """The wheel, pytest and what builds plugins, installed once for all tests."""
    made = wheel()
    with _alone() as folder:
        first = Elsewhere(folder)
        if not (folder / "installed").exists():
            venv.create(folder / "env")
            # The pip of this environment, which need not be unpacked.
            (site,) = (folder / "env" / "lib").glob("python*/site-packages")
            (site / "pip").symlink_to(Path(importlib.import_module("pip").__file__ or "").parent)
            pip = folder / "env" / "bin" / "pip"
            pip.write_text(f"#!{first.python}\nimport runpy\nrunpy.run_module('pip', run_name='__main__')\n")
            pip.chmod(0o755)
            # Compiled is what a command imports; all modules of numpy and the others take three times as long to install.
            first.pip("install", "--no-compile", made, "pytest", "hatchling", "editables")
            first.trnspec("validate")
            (folder / "installed").touch()
    return first


def built(folder: Path, *more: str) -> Elsewhere:
    """A new environment in a folder, with all that is installed once, and further distributions."""
    before, after = _installed().folder / "env", folder / "env"
    # Files that are replaced or removed in one environment stay in the others.
    shutil.copytree(before, after, symlinks=True, copy_function=os.link)
    for script in (after / "bin").iterdir():
        if not script.is_symlink() and bytes(before) in (contents := script.read_bytes()):
            script.unlink()
            script.write_bytes(contents.replace(bytes(before), bytes(after)))
            script.chmod(0o755)
    made = Elsewhere(folder)
    if more:
        made.pip("install", *more)
    return made


@cache
def with_pytest() -> Elsewhere:
    """An environment for tests that remove again what they install."""
    return built(_temporary())


# A copy of the package that a test changes, as a contributor would, and the programs that run it.

_DATA = {"catalog", "schemas"}


class Scratch:
    """A checkout with the package, the catalog, the schemas and the hook.

    Attributes:
        folder: The root of the copy.
        changed: The files that were changed, by their paths in the checkout.
        added: The new files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changed: set[str] = set()
        self.added: set[str] = set()
        folder.mkdir(parents=True)
        # With the compiled modules, which are valid where size and time of the source are the same.
        shutil.copytree(ROOT / "trnspec", folder / "trnspec", ignore=shutil.ignore_patterns("*.pyc.*"))
        for name in _DATA:
            (folder / name).symlink_to(ROOT / name)

    def insert(self, file: str, before: str, text: str) -> None:
        """Insert a text before the only occurrence of another one."""
        old = (self.folder / file).read_text("utf-8")
        assert old.count(before) == 1, (file, before, old.count(before))
        self._own(file).write_text(old.replace(before, text + before), "utf-8")
        self.changed.add(file)

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace the only occurrence of a text."""
        self.insert(file, old, "")
        path = self.folder / file
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")

    def add(self, file: str, text: str) -> None:
        """Write a new file."""
        path = self._own(file)
        assert not path.exists(), file
        written(path, text)
        self.added.add(file)

    def _own(self, file: str) -> Path:
        """The path of a file in the copy; its folder is no longer that of the checkout."""
        top = file.split("/", 1)[0]
        if (self.folder / top).is_symlink():
            (self.folder / top).unlink()
            shutil.copytree(ROOT / top, self.folder / top)
        return self.folder / file

    def document(self, file: str, kind: str, spec: str) -> Path:
        """Write a document that is not part of the change, for the command line; its name is that of the file."""
        path = self.folder / "mine" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        title = f"metadata: {{name: {path.stem}, title: {path.stem}, source: neuron-trn1-2026-08}}"
        path.write_text(f"api_version: trnspec/v1\nkind: {kind}\n{title}\nspec: {spec}\n", "utf-8")
        return path

    def run(self, *args: str | Path) -> Result:
        """The command line of the copy, without plugins."""
        return apart("--no-plugins", *args, cwd=self.folder, PYTHONPATH=str(self.folder))

    def out(self, *args: str | Path) -> str:
        """What a command that succeeds prints."""
        done = self.run(*args)

        assert (0, "") == (done.status, done.err), done
        return done.out

    def json(self, *args: str | Path) -> Any:
        """What a command that succeeds prints as JSON."""
        return json.loads(self.out(*args, "--format", "json"))

    def found(self, file: Path, *options: str) -> list[tuple[str, list[str]]]:
        """What is found in a document: code and path."""
        found = json.loads(self.run("validate", file, *options, "--format", "json").out)["diagnostics"]
        return [(d["code"], d["path"]) for d in found]

    def python(self, *script: str) -> str:
        """What a program prints that imports the copy."""
        env = environment(PYTHONPATH=str(self.folder), TRNSPEC_PLUGINS="none")
        check = f"import trnspec; assert trnspec.__file__.startswith({str(self.folder)!r}), trnspec.__file__"
        done = subprocess.run(
            [sys.executable, "-c", "\n".join([check, *script])],
            cwd=self.folder,
            env=env,
            capture_output=True,
            check=False,
            text=True,
        )

        assert done.returncode == 0, done.stderr
        return done.stdout


# The table "I want to add ..." of CONTRIBUTING.md.


@frozen
class Row:
    """A row of the table.

    Attributes:
        what: What is added.
        changed: The files of trnspec that change.
        own: The new files, with NAME in their paths; where there are none, the first file that changes.
    """

    what: str
    changed: tuple[str, ...]
    own: tuple[str, ...]


def rows() -> dict[str, Row]:
    """The table, by the first column."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## I want to add ...\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    result = {}
    for line in table[1:]:
        what, core, *_ = (cell.strip() for cell in line.strip("|").split(" | "))
        paths = [p for p in re.findall(r"`([^`]+)`", core) if re.search(r"\.(py|md|yaml)$", p)]
        own = tuple(p for p in paths if "NAME" in p)
        changed = tuple(p for p in paths if "NAME" not in p)
        result[what] = Row(what, changed, own)
    return result


ROWS = rows()


def made_as_stated(scratch: Scratch, what: str) -> None:
    """The files that were touched are those of the row."""
    patterns = [re.escape(f).replace("NAME", "[A-Za-z0-9_-]+") for f in ROWS[what].own]

    assert set(ROWS[what].changed) == scratch.changed
    assert set() == {f for f in scratch.added if not any(re.fullmatch(p, f) for p in patterns)}
    assert [] == [p for p in patterns if not any(re.fullmatch(p, f) for f in scratch.added)]
