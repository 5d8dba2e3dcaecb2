"""Shared settings of Hypothesis, one reading of the catalogs, measurements shown at the end of the run."""

import atexit
import gc
import io
import os
import shutil
import tempfile

# Fits solve small systems, for which threads of the linear algebra only wait for each other; read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.kept_documents import keep
from tests.support.programs import Here, Site

# How long an example takes says something about the machine, which others use as well. Every run draws other examples;
# --hypothesis-profile=thorough draws many at once.
settings.register_profile("ci", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("ci")

# Before the first module of tests loads a catalog.
keep()

# Processes that tests start use what others have compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Processes of pytest-xdist share what is built once, by the number of the process that starts them and removes it.
if os.environ.setdefault("PYTEST_FIRST_PROCESS", str(os.getpid())) == str(os.getpid()):
    made = Path(tempfile.gettempdir()) / f"trnspec-wheel-{os.getpid()}"
    atexit.register(shutil.rmtree, made, ignore_errors=True)

# Most of what a run creates stays until its end: modules, tests, kept readings. None of it is garbage before the first test.
gc.disable()
gc.set_threshold(100_000, 20, 20)

# Tests of half a minute and more, which begin first, so that no process waits for one at the end.
LONG = ("test_new_plugins_pass", "test_hooks_in_a_repository", "test_sphinx", "add-a-generation", "size-a-serving-fleet",
        "test_installed_plugins", "_of_all_problems", "test_plans_of_published_fleets")  # fmt: skip


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules without slow tests are not imported where only those are run: most of the time of collection."""
    skipped = config.option.markexpr == "slow" and collection_path.suffix == ".py"
    return True if skipped and b"mark.slow" not in collection_path.read_bytes() else None


def pytest_collection_finish() -> None:
    """What collection has made is not looked at again for garbage."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not any(name in item.name for name in LONG))


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    """The command line in this process, 80 columns wide, with nothing to read; settings are not looked for above its folder."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)


@pytest.fixture
def site(tmp_path) -> Site:
    """The command line where invented plugins are installed."""
    return Site(tmp_path / "site")


Tell = Callable[[str, Iterable[str]], None]

_TOLD = "reported at the end of the run"


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Tell:
    """Show lines under a title at the end of the run, whether or not the test passes: the first two, with -v all."""

    def keep(title: str, lines: Iterable[str]) -> None:
        # A property of the test's report: it also comes back from the processes of pytest-xdist. The fixture
        # record_property would warn in the schema that pytest --junitxml writes by default.
        request.node.user_properties.append((_TOLD, [title, *lines]))

    return keep


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, lines in getattr(report, "user_properties", ()):
                if name == _TOLD:
                    terminalreporter.section(lines[0])
                    for line in lines[1:] if terminalreporter.verbosity > 0 else lines[1:3]:
                        terminalreporter.line(line)
