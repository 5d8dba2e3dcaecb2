"""The share of small changes to the code that the tests detect, over a seeded sample.

    python benchmarks/mutants.py [--mutants 60] [--seed 1] [--each 4] [--only perf/work] [--minutes 20]

Draws modules of the packages at random, in proportion to their lines, and mutants of each from the operators of
cosmic-ray.  Each mutant is applied in a copy of the repository.  It meets the tests of its module first,
``tests/PACKAGE/test_MODULE*.py``, then those of its folder and of its package, then tests of other packages that import
it and tests of the modules that import it, directly or through others: those that name the changed function first, then
the nearest; and last the slow tests of its module and of callers, those of its package first.  A mutant survives if all of them pass.  A test that takes more than
``MOST_SECONDS`` fails.  At the end, the tests that failed must pass without a mutation, within the same time.  The same
seed draws the same mutants of the same code.

Tests run in forks of this process, which has imported pytest and the libraries, but nothing of trnspec.  Examples of
Hypothesis that fail are not shrunk.

Not mutated is what has no behaviour of its own, see ``skipped``: annotations, which are not evaluated, assertions,
options of attrs classes such as ``slots`` that change speed and representation only, sizes of caches, and numbers such as
1e9, of which one more or less shows in no digit; and equality with a string literal is not replaced by an order, see ``words``.

Prints a table by package and the difference of every survivor, and on standard error a character for each mutant.  A
survivor is a missing test or an equivalent mutant; which of them it is, only reading shows.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import importlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

import grimp
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(
    tests.name for tests in (ROOT / "tests").iterdir() if (ROOT / "trnspec" / tests.name / "__init__.py").is_file()
)
# Removed decorators and replaced names mostly fail at import; an exception that no test raises is the concern of coverage.
LEFT_OUT = ("RemoveDecorator", "VariableReplacer", "VariableInserter", "ExceptionReplacer")
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
IDENTITY = {"Is", "IsNot"}
ORDERS = ("_Lt", "_LtE", "_Gt", "_GtE")
# Arguments that change what a class prints, its speed, its type, when a mistake of ours is found, or how much is kept.
SETTINGS = ("strict", "repr", "kw_only", "frozen", "slots", "cache_hash", "maxsize", "covariant")
MANY = 1e6
"""A number with a point is not changed by one from here on."""
PYTEST = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=native"]
# What the tests import; not trnspec, so that every fork imports the mutant.
LIBRARIES = ("attrs", "cattrs", "hypothesis", "jsonschema", "numpy", "ruamel.yaml")
# pytest cannot rewrite the assertions of Hypothesis once it is imported.
PYTEST += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
MOST_CALLERS = 40
"""How many files of tests of other packages a mutant meets."""
MOST_SLOW = 5
"""How many files of tests of callers whose slow tests a mutant meets."""
MOST_SECONDS = 30.0
"""Processor time of a test and of collection; without a mutation, tests that are not marked slow take at most 2 s."""
MOST_SECONDS_SLOW = 300.0
"""Processor time of a slow test, which takes less than half of it without a mutation."""
MOST_WAITING = 3600.0
"""Seconds of a run of pytest, in which a process that a test starts may wait for ever."""


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a module."""

    module: str
    line: int
    operator: str
    code: str
    original: str


Place = tuple[int, int]


def skipped(code: str) -> list[tuple[Place, Place]]:
    """The parts of a module that have no behaviour, or none of their own: annotations, assertions, ``strict=False``, 1e9."""
    found: list[ast.expr | ast.stmt | None] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.AnnAssign | ast.arg):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg in SETTINGS:
            found.append(node.value)
        elif isinstance(node, ast.Constant):
            found += [node] if isinstance(node.value, float) and node.value >= MANY else []
        elif isinstance(node, ast.Assert) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            found.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n is not None]


def operators(code: str) -> list[tuple[Place, Place]]:
    """Where the arithmetic operators of a module are, unlike the ``*`` and ``/`` between parameters."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.BinOp):
            found.append((node.left, node.right))
        elif isinstance(node, ast.AugAssign):
            found.append((node.target, node.value))
    return [((a.end_lineno or 0, a.end_col_offset or 0), (b.lineno, b.col_offset)) for a, b in found]


def words(code: str) -> list[tuple[Place, Place]]:
    """Comparisons with a string literal; its order has no meaning."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Compare):
            found += itertools.pairwise([node.left, *node.comparators])
    return [
        ((a.end_lineno or 0, a.end_col_offset or 0), (b.lineno, b.col_offset))
        for a, b in found
        if any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in (a, b))
    ]


def sensible(operator: str) -> bool:
    """Whether an operator makes changes that a person could make; ``a << b`` for ``a + b`` only raises errors."""
    kind, *words = operator.rpartition("/")[2].split("_")
    if kind in LEFT_OUT:
        return False
    if kind == "ReplaceBinaryOperator":
        return set(words) <= ARITHMETIC
    if kind == "ReplaceComparisonOperator":
        # An order of None or of classes only raises an error, and == of None or of a member of an enum is "is".
        return len(IDENTITY & {*words}) in (0, 2)
    return True


def mutants(module: str, draw: random.Random, number: int) -> list[Mutant]:
    """Mutants of a module at different places, drawn at random: first the place, then the change."""
    code = (ROOT / module).read_text("utf-8")
    left_out, arithmetic, texts = skipped(code), operators(code), words(code)
    tree = get_ast(code)
    places: dict[Place, list[tuple[str, int]]] = defaultdict(list)
    for name in sorted(operator_names()):
        if not sensible(name):
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in ast_nodes(tree):
            for start, _ in operator.mutation_positions(node):
                elsewhere = "BinaryOperator" in name and not any(low <= start < high for low, high in arithmetic)
                elsewhere |= name.endswith(ORDERS) and any(low <= start < high for low, high in texts)
                if not elsewhere and not any(low <= start < high for low, high in left_out):
                    places[start].append((name, occurrence))
                occurrence += 1
    found: list[Mutant] = []
    for place in draw.sample(sorted(places), len(places)):
        name, occurrence = draw.choice(places[place])
        changed = mutate_code(code, get_operator(name)(), occurrence)
        if changed is not None and parses(changed) and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(code)):
            found.append(Mutant(module, place[0], name.rpartition("/")[2], changed, code))
        if len(found) == number:
            break
    return found


def parses(code: str) -> bool:
    """Whether Python accepts the text."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def below(module: str) -> Path:
    """The place of a module below trnspec/, in the folder "top" if it is in no package."""
    path = Path(module).relative_to("trnspec")
    return path if len(path.parts) > 1 else "top" / path


def package_of(module: str) -> str:
    """The folder of the tests of a module's package."""
    return f"tests/{module.split('/')[1]}"


def own_tests(module: str) -> list[str]:
    """The files of the tests of a module."""
    file = Path("tests") / Path(module).with_suffix("").relative_to("trnspec")
    return sorted(str(f.relative_to(ROOT)) for f in (ROOT / file.parent).glob(f"test_{file.name}*.py"))


@cache
def importing() -> dict[str, list[str]]:
    """The files of tests that import each module, or a name of it; not those of the manual, which run for minutes."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted({*(ROOT / "tests").rglob("test_*.py")} - {*(ROOT / "tests" / "docs").iterdir()}):
        text = file.read_text("utf-8")
        imports = re.findall(r"^ *from (trnspec[\w.]*) import (\([^)]*|.*)", text, re.MULTILINE)
        if re.search("^ *import trnspec$", text, re.MULTILINE):
            imports.append(("trnspec.api", ""))  # the package passes its functions on
        for package, names in imports:
            for name in {package, *(f"{package}.{n}" for n in re.findall(r"\w+", names))}:
                found[name].append(str(file.relative_to(ROOT)))
    return found


def callers_tests(module: str) -> list[str]:
    """The files, unlike its own, of the tests of a module and of the modules that import it, nearest first."""
    graph = grimp.build_graph("trnspec", exclude_type_checking_imports=True, cache_dir=None)
    seen = level = {module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")}
    found: dict[str, None] = {}
    while level:
        found |= dict.fromkeys(t for name in sorted(level) for t in importing().get(name, []))
        found |= dict.fromkeys(t for name in sorted(level) for t in own_tests(f"{name.replace('.', '/')}.py"))
        level = {caller for name in level for caller in graph.find_modules_that_directly_import(name)} - seen
        seen = seen | level
    return [t for t in found if t not in own_tests(module)]


def changed_names(mutant: Mutant) -> set[str]:
    """The names of the functions and classes that contain the change."""
    inside = (
        node.name
        for node in ast.walk(ast.parse(mutant.original))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= mutant.line <= (node.end_lineno or 0)
    )
    return {*inside}


def stages(mutant: Mutant) -> Iterator[list[str]]:
    """The arguments of pytest with which a mutant meets its tests, one after another, none twice."""
    module, names = mutant.module, changed_names(mutant)
    own, package = own_tests(module), package_of(module)
    # The nearest stay first among those that name what has changed, and among the others.
    callers = sorted(
        callers_tests(module), key=lambda file: names.isdisjoint(re.findall(r"\w+", (ROOT / file).read_text("utf-8")))
    )
    if own:
        yield own
    if (ROOT / package).is_dir():
        nearest = str(Path("tests") / Path(module).relative_to("trnspec").parent)
        ignored = [f"--ignore={file}" for file in own]
        if nearest != package and (ROOT / nearest).is_dir():
            yield [nearest, *ignored]
            ignored = [f"--ignore={nearest}"]
        yield [package, *ignored]
    if others := [t for t in callers if package_of(t) != package]:
        yield others[:MOST_CALLERS]
    if own or callers:
        yield [*own, *sorted(callers, key=lambda file: package_of(file) != package)[:MOST_SLOW], "-m", "slow"]


class Failed:
    """A plugin of pytest: notes the tests that fail, and ends the process where a mutant makes one endless.

    The test that runs is in the file, so that one that has no end is noted too.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.tests: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Replaces the profile of ``tests/conftest.py``."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings(), phases=set(Phase) - {Phase.shrink, Phase.explain})
        settings.load_profile("mutants")
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begins to count the processor time of a test."""
        self.file.write_text(item.nodeid, "utf-8")
        slow = item.get_closest_marker("slow")
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS_SLOW if slow else MOST_SECONDS)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a test."""
        if report.failed:
            self.tests.append(report.nodeid)

    pytest_collectreport = pytest_runtest_logreport

    def pytest_sessionfinish(self) -> None:
        """Replaces the last test by those that failed."""
        self.file.write_text("\n".join(self.tests), "utf-8")


class Copy:
    """A copy of the repository in which the tests run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, target)
        self.printed, self.failed = folder / ".printed", folder / ".failed"
        for library in LIBRARIES:
            importlib.import_module(library)

    def passes(self, arguments: list[str]) -> bool:
        """Whether tests pass, with arguments of pytest; a test without an end fails."""
        self.failed.write_text("", "utf-8")
        process = os.fork()
        if process == 0:
            self._run_in_fork(arguments)
        end = time.monotonic() + MOST_WAITING
        while time.monotonic() < end:
            finished, status = os.waitpid(process, os.WNOHANG)
            if finished:
                code = os.waitstatus_to_exitcode(status)
                # Status 4 is a mistake in the arguments, unless the mutant breaks a conftest.py.
                if code == pytest.ExitCode.USAGE_ERROR and b"conftest" not in self.printed.read_bytes():
                    sys.exit(self.printed.read_text("utf-8"))
                return code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return False

    def _run_in_fork(self, arguments: list[str]) -> None:
        """Runs pytest and ends the process."""
        code = 1
        try:
            os.setsid()
            os.chdir(self.folder)
            with self.printed.open("wb") as printed:
                os.dup2(printed.fileno(), 1)
                os.dup2(printed.fileno(), 2)
            sys.path[0] = str(self.folder)
            os.environ["PYTHONPATH"] = str(self.folder)
            os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self.folder / ".hypothesis")
            code = int(pytest.main([*PYTEST, *arguments], plugins=[Failed(self.failed)]))
            sys.stdout.flush()
        finally:
            os._exit(code)

    def detecting(self, mutant: Mutant) -> list[str] | None:
        """The tests that fail with a mutant, none if it made collection endless; ``None`` for a survivor."""
        file = self.folder / mutant.module
        # The compiled module has the time of the source in seconds, which may not have changed.
        compiled = Path(cache_from_source(str(file)))
        try:
            file.write_text(mutant.code, "utf-8")
            compiled.unlink(missing_ok=True)
            if all(self.passes(arguments) for arguments in stages(mutant)):
                return None
            return self.failed.read_text("utf-8").splitlines()
        finally:
            file.write_text(mutant.original, "utf-8")
            compiled.unlink(missing_ok=True)


def difference(mutant: Mutant) -> str:
    """The changed lines of a mutant."""
    lines = difflib.unified_diff(mutant.original.splitlines(), mutant.code.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join([f"{mutant.module}:{mutant.line} {mutant.operator}", *(f"    {line}" for line in changed)])


def drawn(only: str, seed: int, number: int, each: int) -> list[Mutant]:
    """The mutants of a seed."""
    draw = random.Random(seed)
    files = [f for package in PACKAGES for f in sorted((ROOT / "trnspec" / package).rglob("*.py"))]
    files += sorted((ROOT / "trnspec").glob("*.py"))
    lines = {str(f.relative_to(ROOT)): len(f.read_text("utf-8").splitlines()) for f in files}
    weights = {name: n for name, n in lines.items() if n and below(name).is_relative_to(only)}
    found: list[Mutant] = []
    while weights and len(found) < number:
        (module,) = draw.choices(sorted(weights), [weights[name] for name in sorted(weights)])
        del weights[module]
        found += mutants(module, draw, min(each, number - len(found)))
    return found


def main() -> None:
    """Runs the sample and prints what the tests detect."""
    options = argparse.ArgumentParser(description="Mutation testing over a seeded sample.")
    options.add_argument("--mutants", type=int, default=60, help="how many to run")
    options.add_argument("--each", type=int, default=4, help="how many of one module")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="a package or module, such as perf/work, or top")
    options.add_argument("--minutes", type=float, default=1e9, help="start no mutant after this time")
    given = options.parse_args()
    sample = drawn(given.only, given.seed, given.mutants, given.each)
    end = time.monotonic() + 60 * given.minutes
    run: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    tests: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for mutant in sample:
            if time.monotonic() > end:
                break
            package = below(mutant.module).parts[0]
            run[package] += 1
            detecting = copy.detecting(mutant)
            print("S" if detecting is None else ".", end="", file=sys.stderr, flush=True)
            if detecting is None:
                print(difference(mutant), flush=True)
            else:
                killed[package] += 1
                tests.update(detecting)
        if tests and not copy.passes(sorted(tests)):
            sys.exit(f"tests fail without a mutation:\n{copy.printed.read_text('utf-8')}")
    print(f"\n{'package':<12} {'mutants':>7} {'killed':>7} {'rate':>6}")
    for name in [*sorted(run), "all"]:
        n, k = (run.total(), killed.total()) if name == "all" else (run[name], killed[name])
        print(f"{name:<12} {n:>7} {k:>7} {k / max(n, 1):>6.1%}")


if __name__ == "__main__":
    main()
