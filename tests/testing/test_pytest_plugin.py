"""trnspec.testing.pytest_plugin: every file of a catalog is a test, where that is asked for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.invented_plugins import CHIP, PAGE, SERVER
from tests.support.programs import environment, forked, written

pytestmark = pytest.mark.slow

CATALOG = {"chips/acme-1.yaml": CHIP, "servers/acme-server.yaml": SERVER, "sources/acme-page.yaml": PAGE}
ENTRY = "[pytest11]\ntrnspec = trnspec.testing.pytest_plugin\n"


class Project:
    """A folder with tests and a catalog, and pytest in a process of its own that has the plugin installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self._site = folder / "site"
        self.write("pytest.ini", "[pytest]\n")  # or a file in a folder above would be taken
        self.write("tests/test_other.py", "def test_other():\n    pass\n")
        for name, text in CATALOG.items():
            self.write(f"catalog/{name}", text)
        info = self._site / "trnspec_of_tests-1.0.dist-info"
        written(info / "METADATA", "Metadata-Version: 2.1\nName: trnspec-of-tests\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(ENTRY)

    def write(self, name: str, text: str) -> None:
        written(self.folder / name, text)

    def set(self, *lines: str) -> None:
        self.write("pytest.ini", "\n".join(["[pytest]", "testpaths = tests", *lines, ""]))

    def run(self, *args: str, status: int = 0) -> str:
        """What pytest prints."""
        path = os.pathsep.join(filter(None, [str(self._site), os.environ.get("PYTHONPATH", "")]))
        env = environment(PYTHONPATH=path, TRNSPEC_PLUGINS="none", COLUMNS="200")
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *args]
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)

        assert status == done.returncode, done.stdout + done.stderr
        return done.stdout + done.stderr

    def names(self, *args: str) -> list[str]:
        """The tests there are."""
        warnings = ("-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        done = forked(
            "--collect-only", "-q", "-p", "no:cacheprovider", *warnings, *args, cwd=self.folder, path=self._site,
            run=pytest.console_main, TRNSPEC_PLUGINS="none", COLUMNS="200",
        )  # fmt: skip

        assert 0 == done.status, done.out + done.err
        return [line for line in done.out.splitlines() if "::" in line]


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


FILES = [f"catalog/{name}::trnspec" for name in CATALOG]
OTHER = "tests/test_other.py::test_other"


def test_pytest_plugin_is_inactive_by_default(project) -> None:
    """Also where the folder of a catalog is collected; and nothing of trnspec is imported but the plugin."""
    probe = (
        "import sys\ndef test_imports():\n"
        "    found = {m for m in sys.modules if m.split('.')[0] in ('trnspec', 'ruamel', 'cattrs', 'numpy')}\n"
        "    assert {'trnspec', 'trnspec._version', 'trnspec.testing', 'trnspec.testing.pytest_plugin'} == found\n"
    )
    project.write("tests/test_probe.py", probe)

    assert [OTHER, "tests/test_probe.py::test_imports"] == project.names(".")
    assert "2 passed" in project.run()


@pytest.mark.parametrize(
    ("settings", "args", "expected"),
    [
        ([], ["--trnspec", "catalog"], [OTHER, *FILES]),
        ([], ["--trnspec", "catalog", "tests"], [OTHER, *FILES]),
        ([], ["--trnspec=catalog", "catalog/chips"], [*FILES[:1], *FILES[1:]]),
        (["trnspec_catalogs = catalog"], [], [OTHER, *FILES]),
        # What is named is what is run, as with "testpaths".
        (["trnspec_catalogs = catalog"], ["tests"], [OTHER]),
        (["trnspec_catalogs = catalog"], ["."], [*FILES, OTHER]),
        (["trnspec_catalogs = catalog"], ["catalog/chips"], FILES[:1]),
        (["trnspec_catalogs = catalog"], ["catalog/chips/acme-1.yaml"], FILES[:1]),
        (["trnspec_catalogs = catalog"], ["--trnspec", "catalog"], [OTHER, *FILES]),
        (["trnspec_catalogs = catalog"], ["-k", "server"], FILES[1:2]),
    ],
)
def test_collected_test_files(project, settings, args, expected) -> None:
    project.set(*settings)

    assert sorted(expected) == sorted(project.names(*args))


@pytest.mark.parametrize("parallel", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_a_finding_fails_the_test_of_its_file(project, parallel) -> None:
    """With the text of ``trnspec validate``, the line of the file and the other place; the others pass."""
    project.set("trnspec_catalogs = catalog")
    project.write("catalog/servers/acme-server.yaml", SERVER.replace("512 GiB", "500 GiB"))
    reported = project.run(*parallel, status=1)

    assert "1 failed, 3 passed" in reported
    assert re.search(
        r"^catalog/servers/acme-server.yaml:6:31: error TRN402 aggregate-mismatch: ", reported, re.MULTILINE
    )
    assert "    6 |   stated: {memory: {capacity: 500 GiB}}" in reported
    assert re.search(r"^    see: catalog/chips/acme-1.yaml:6:22", reported, re.MULTILINE)
    assert "Traceback" not in reported
    assert "acme-server.yaml::trnspec" in reported.partition("short test summary")[2]


def test_a_catalog_is_a_folder(project) -> None:
    assert "project/tests/test_other.py is not a folder" in project.run("--trnspec", "tests/test_other.py", status=4)


def test_settings_of_the_project_count(project) -> None:
    project.write("catalog/servers/acme-server.yaml", SERVER.replace("512 GiB", "500 GiB"))
    project.write("trnspec.toml", 'severity = {TRN402 = "info"}\n')
    passed = project.run("--trnspec", "catalog", "-rP")

    assert "4 passed" in passed
    assert ("Captured trnspec call", "info TRN402") == tuple(re.findall("Captured trnspec call|info TRN402", passed))


def test_findings_without_a_file_come_first(tmp_path) -> None:
    from trnspec.diagnostics import Diagnostic, Location, Severity
    from trnspec.testing.pytest_plugin import _Root

    for name, text in CATALOG.items():
        written(tmp_path / name, text)
    root = _Root(tmp_path, tmp_path)
    first, *others = (tmp_path / name for name in CATALOG)
    nowhere = Diagnostic("TRN900", Severity.ERROR, "failed", Location("<catalog>"))
    elsewhere = Diagnostic(
        "TRN402", Severity.ERROR, "other", Location("/elsewhere.yaml"), see=(Location(str(others[0])),)
    )

    assert ([first], [others[0]]) == (root._blamed(nowhere), root._blamed(elsewhere))
