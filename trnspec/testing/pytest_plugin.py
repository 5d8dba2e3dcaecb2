"""A pytest plugin: every file of a catalog is a test, which fails with the findings of ``trnspec validate``.

It is active only with ``--trnspec DIR`` or the setting ``trnspec_catalogs``; see ``docs/how-to/test-a-catalog.md``.
Nothing of trnspec is imported before the first file is collected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # pytest imports this package when it starts
    from trnspec.checks.runner import Checked
    from trnspec.diagnostics import Diagnostic, Location, Report


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option and the setting."""
    group = parser.getgroup("trnspec")
    text = "Test every file of the catalog DIR with trnspec; may be repeated."
    group.addoption("--trnspec", action="append", default=[], metavar="DIR", help=text)
    parser.addini("trnspec_catalogs", "Catalogs whose files are tested with trnspec.", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Collect the folders of the catalogs that are given.

    Raises:
        pytest.UsageError: One is not a folder.
    """
    given = [Path(config.invocation_params.dir, each).resolve() for each in config.getoption("--trnspec")]
    configured = [each.resolve() for each in config.getini("trnspec_catalogs")]
    roots = list(dict.fromkeys((*given, *configured)))
    if not roots:
        return
    for root in roots:
        if not root.is_dir():
            raise pytest.UsageError(f"trnspec: the catalog {root} is not a folder")
    # As with "testpaths", the configured ones are not used when the user names what to run.
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    inside = [Path(config.invocation_params.dir, arg.partition("::")[0]).resolve() for arg in config.args]
    for root in given if named else roots:
        if not any(root.is_relative_to(each) for each in inside):
            config.args.append(str(root))
    config.pluginmanager.register(_Catalogs(config, roots), "trnspec-catalogs")


class _Catalogs:
    """Turns the files of catalogs into tests; each catalog is checked once, when its first test runs."""

    def __init__(self, config: pytest.Config, roots: list[Path]) -> None:
        self._here = config.invocation_params.dir
        self._roots = {root: _Root(root, self._here) for root in roots}

    @pytest.hookimpl
    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """A file with one test, for a document of one of the catalogs."""
        for root in self._roots.values():
            if file_path in root.files:
                collector: pytest.Collector = _File.from_parent(parent, path=file_path, root=root)
                return collector
        return None


class _Root:
    """One catalog.

    Attributes:
        folder: Its folder.
        files: Its documents, in order.
    """

    def __init__(self, folder: Path, here: Path) -> None:
        self.folder = folder
        self._here = here
        self._files: dict[Path, None] | None = None
        self._checked: Checked | None = None

    @property
    def files(self) -> dict[Path, None]:
        if self._files is None:
            from trnspec.loading.files import documents_in

            self._files = dict.fromkeys(documents_in(self.folder))
        return self._files

    @property
    def checked(self) -> Checked:
        if self._checked is None:
            from trnspec.api import validate
            from trnspec.loading.settings import find

            self._checked = validate([str(self.folder)], settings=find(self.folder))
        return self._checked

    def of(self, file: Path) -> tuple[Report, Mapping[str, str]]:
        """The findings in a file, and the texts of the files, with paths relative to where pytest was started.

        A finding outside the catalog counts for the files of the catalog that it refers to, else for the first one.
        """
        from attrs import evolve

        checked = self.checked
        diagnostics = [d for d in checked.report.diagnostics if file in self._blamed(d)]
        renamed = [evolve(d, where=self._called(d.where), see=tuple(map(self._called, d.see))) for d in diagnostics]
        texts = {self._name(name): text for name, text in checked.texts.items()}
        return evolve(checked.report, diagnostics=tuple(renamed)), texts

    def _blamed(self, diagnostic: Diagnostic) -> list[Path]:
        where = Path(diagnostic.where.file)
        if where in self.files:
            return [where]
        return [f for f in (Path(s.file) for s in diagnostic.see) if f in self.files] or list(self.files)[:1]

    def _called(self, location: Location) -> Location:
        from attrs import evolve

        return evolve(location, file=self._name(location.file))

    def _name(self, file: str) -> str:
        """Relative to where pytest was started, for a file below that."""
        return os.path.relpath(file, self._here) if Path(file).is_relative_to(self._here) else file


class _File(pytest.File):
    """A document of a catalog."""

    def __init__(self, *, root: _Root, **rest: Any) -> None:
        super().__init__(**rest)
        self.root = root

    def collect(self) -> Iterator[pytest.Item]:
        """The one test of it."""
        yield _Item.from_parent(self, name="trnspec", root=self.root)


class _FindingsError(Exception):
    """A document with findings; the message is the report."""


class _Item(pytest.Item):
    """The check of a document, in its catalog."""

    def __init__(self, *, root: _Root, **rest: Any) -> None:
        super().__init__(**rest)
        self.root = root

    def runtest(self) -> None:
        """Fail on errors and warnings."""
        from trnspec.output.reporters import render

        report, texts = self.root.of(self.path)
        # Without the summary line: pytest counts the tests.
        text = render(report, "text", texts=texts).rpartition("\n\n")[0]
        if not report.ok:
            raise _FindingsError(text)
        if text:
            self.add_report_section("call", "trnspec", text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any) -> Any:
        """The report, or the error, without a traceback."""
        from trnspec.errors import TrnspecError

        if isinstance(excinfo.value, _FindingsError):
            return str(excinfo.value)
        if isinstance(excinfo.value, TrnspecError):
            return f"trnspec: {excinfo.value}"
        return super().repr_failure(excinfo, *args)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """The location of the test: the document as a whole."""
        return self.path, None, f"trnspec {self.root.folder.name}/{self.path.relative_to(self.root.folder).as_posix()}"
