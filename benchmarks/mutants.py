"""The share of small changes to the code that the tests detect, over a seeded sample.

    python benchmarks/mutants.py [--mutants 60] [--seed 1] [--each 4] [--only perf/work] [--minutes 20] [--kept FOLDER]

Draws modules of the measured packages at random, in proportion to their lines, and mutants of each from the operators of
cosmic-ray.  Each mutant is applied in a copy of the repository.  The tests of its package run once with coverage, so that
a mutant meets the tests that execute its line first: those of its module, ``tests/PACKAGE/test_MODULE*.py``, then the
others.  If these pass, all tests of the package run, as results may be shared between tests.  A mutant survives if all of
them pass.  Annotations are not mutated, as they are not evaluated.  The same seed draws the same mutants of the same code.

Prints a table by package and the difference of every survivor.  A survivor is a missing test or an equivalent mutant;
which of them it is, somebody has to read.  ``--kept`` keeps the coverage between runs.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("quantities", "yaml", "graph", "checks", "catalog", "perf", "evaluators")
# Removed decorators and replaced names mostly fail at import; an exception that no test raises is the concern of coverage.
LEFT_OUT = ("RemoveDecorator", "VariableReplacer", "VariableInserter", "ExceptionReplacer")
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
IDENTITY = {"Is", "IsNot"}
# Arguments that change what a class prints, or when a mistake of ours is found.
SETTINGS = ("strict", "repr", "kw_only", "frozen")
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:randomly"]
PASSED, NONE_COLLECTED = 0, 5


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a module."""

    module: str
    line: int
    operator: str
    code: str


Place = tuple[int, int]


def skipped(code: str) -> list[tuple[Place, Place]]:
    """The parts of a module that have no behaviour, or none of their own: annotations, assertions, ``strict=False``."""
    found: list[ast.expr | ast.stmt | None] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.AnnAssign | ast.arg):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.keyword) and node.arg in SETTINGS:
            found.append(node.value)
        elif isinstance(node, ast.Assert) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            found.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n is not None]


def sensible(operator: str) -> bool:
    """Whether an operator makes changes that a person could make; ``a << b`` for ``a + b`` only raises errors."""
    kind, *words = operator.rpartition("/")[2].split("_")
    if kind in LEFT_OUT:
        return False
    if kind == "ReplaceBinaryOperator":
        return set(words) <= ARITHMETIC
    if kind == "ReplaceComparisonOperator":
        return words[0] in IDENTITY or not IDENTITY & {*words}
    return True


def mutants(module: str, draw: random.Random, number: int) -> list[Mutant]:
    """Mutants of a module at different places, drawn at random: first the place, then the change."""
    code = (ROOT / module).read_text("utf-8")
    left_out = skipped(code)
    tree = get_ast(code)
    places: dict[Place, list[tuple[str, int]]] = defaultdict(list)
    for name in sorted(operator_names()):
        if not sensible(name):
            continue
        operator, occurrence = get_operator(name)(), 0
        for node in ast_nodes(tree):
            for start, _ in operator.mutation_positions(node):
                if not any(low <= start < high for low, high in left_out):
                    places[start].append((name, occurrence))
                occurrence += 1
    found: list[Mutant] = []
    for place in draw.sample(sorted(places), len(places)):
        name, occurrence = draw.choice(places[place])
        changed = mutate_code(code, get_operator(name)(), occurrence)
        if changed is not None and parses(changed) and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(code)):
            found.append(Mutant(module, place[0], name.rpartition("/")[2], changed))
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


def package_of(module: str) -> str:
    """The folder of the tests of a module's package."""
    return f"tests/{module.split('/')[1]}"


def executing(kept: Path, module: str, line: int) -> list[str]:
    """The tests of a package that execute a line, those of its module first; none of what runs at import only."""
    data = CoverageData(str(kept))
    data.read()
    measured = next((f for f in data.measured_files() if f.endswith(f"/{module}")), None)
    contexts = data.contexts_by_lineno(measured).get(line, []) if measured else []
    own = str(Path("tests") / Path(module).relative_to("trnspec").parent / f"test_{Path(module).stem}")
    tests = {context.rpartition("|")[0] for context in contexts} - {""}
    return sorted(tests, key=lambda test: (not test.startswith(own), test))


class Copy:
    """A copy of the repository in which the tests run."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self.folder, self.kept = folder, kept
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_file():
                shutil.copy2(ROOT / name, target)
        self.printed = ""
        self._seconds: dict[str, float] = {}

    def run(self, tests: list[str], limit: float) -> tuple[bool, float]:
        """Whether tests pass, and the seconds they take; more than the limit counts as a failure."""
        env = os.environ | {
            "PYTHONPATH": str(self.folder),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder / ".hypothesis"),
        }
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        arguments = self.folder / ".arguments"
        arguments.write_text("\n".join(tests), "utf-8")
        start = time.monotonic()
        try:
            done = subprocess.run(
                [*PYTEST, f"@{arguments}"],
                cwd=self.folder,
                env=env,
                capture_output=True,
                check=False,
                timeout=limit,
                text=True,
            )
        except subprocess.TimeoutExpired:
            return False, limit
        self.printed = done.stdout
        return done.returncode in (PASSED, NONE_COLLECTED), time.monotonic() - start

    def coverage(self, package: str) -> tuple[Path, float]:
        """Which tests of a package execute which lines, and the seconds that all take; they must pass."""
        kept = self.kept / f"{package.rpartition('/')[2]}.coverage"
        measuring = ["--cov=trnspec", "--cov-context=test", "--cov-report=", "--cov-fail-under=0"]
        if package not in self._seconds:
            passed, seconds = self.run([package, *([] if kept.exists() else measuring)], 3600.0)
            if not passed:
                sys.exit(f"the tests fail without a mutation: pytest {package}\n{self.printed}")
            if not kept.exists():
                shutil.move(self.folder / ".coverage", kept)
            self._seconds[package] = seconds
        return kept, self._seconds[package]

    def survives(self, mutant: Mutant) -> bool:
        """Whether the tests of the package of a mutant pass in spite of it."""
        file = self.folder / mutant.module
        original = file.read_text("utf-8")
        package = package_of(mutant.module)
        kept, seconds = self.coverage(package)
        limit = 60.0 + 4.0 * seconds
        executed = executing(kept, mutant.module, mutant.line)
        try:
            file.write_text(mutant.code, "utf-8")
            # The compiled module has the time of the source in seconds, which may not have changed.
            Path(cache_from_source(str(file))).unlink(missing_ok=True)
            return all(self.run(tests, limit)[0] for tests in (executed, [package]) if tests)
        finally:
            file.write_text(original, "utf-8")
            Path(cache_from_source(str(file))).unlink(missing_ok=True)


def difference(mutant: Mutant) -> str:
    """The changed lines of a mutant."""
    old = (ROOT / mutant.module).read_text("utf-8").splitlines()
    lines = difflib.unified_diff(old, mutant.code.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return "\n".join([f"{mutant.module}:{mutant.line} {mutant.operator}", *(f"    {line}" for line in changed)])


def drawn(only: str, seed: int, number: int, each: int) -> list[Mutant]:
    """The mutants of a seed."""
    draw = random.Random(seed)
    files = [f for package in PACKAGES for f in sorted((ROOT / "trnspec" / package).rglob("*.py"))]
    lines = {str(f.relative_to(ROOT)): len(f.read_text("utf-8").splitlines()) for f in files}
    weights = {name: n for name, n in lines.items() if n and name.startswith(f"trnspec/{only}")}
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
    options.add_argument("--only", default="", help="a package or module below trnspec/, such as perf/work")
    options.add_argument("--minutes", type=float, default=1e9, help="start no mutant after this time")
    options.add_argument("--kept", type=Path, help="a folder that keeps the coverage; remove it when the code changes")
    given = options.parse_args()
    sample = drawn(given.only, given.seed, given.mutants, given.each)
    end = time.monotonic() + 60 * given.minutes
    run: Counter[str] = Counter()
    killed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        kept = (given.kept or Path(folder, ".kept")).resolve()
        kept.mkdir(parents=True, exist_ok=True)
        copy = Copy(Path(folder), kept)
        for mutant in sample:
            if time.monotonic() > end:
                break
            package = mutant.module.split("/")[1]
            run[package] += 1
            if copy.survives(mutant):
                print(difference(mutant), flush=True)
            else:
                killed[package] += 1
    print(f"\n{'package':<12} {'mutants':>7} {'killed':>7} {'rate':>6}")
    for name in [*sorted(run), "all"]:
        n, k = (run.total(), killed.total()) if name == "all" else (run[name], killed[name])
        print(f"{name:<12} {n:>7} {k:>7} {k / max(n, 1):>6.1%}")


if __name__ == "__main__":
    main()
