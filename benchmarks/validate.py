"""Time and memory of ``trnspec validate`` and of the language server, as ratios to check-jsonschema in the same run.

    python benchmarks/validate.py [--runs N] [--largest N]

Every figure is that of fresh processes, which alternate with those of check-jsonschema (dependency group "bench"). Ratios
are those of the least processor times, which other programs on the machine change least. check-jsonschema checks the form
of the same files, without references, figures and rules.

file        one changed chip file, with the shipped catalog as its context
folder      1,000 documents, copies of trainium2.yaml and trn2.48xlarge.yaml under other names; check-jsonschema checks chips
            and servers in a process each
growth      time and peak memory of 10,000 such documents, and the ratio of the time of one to that of one of 1,000
hook        one changed file of 500, as a pre-commit hook checks it: of documents like those of the shipped catalog (1.1 KB on
            average), and of 500 of those of "folder" (12 KB)
keystroke   from a change in the editor to the findings, with the whole shipped catalog
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from lsp import FIRST, Session

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "catalog"
SCHEMAS = ROOT / "schemas" / "v1"


@dataclass
class Run:
    """Wall time [s], processor time [s] and peak memory [MB] of one process."""

    wall: float
    processor: float
    memory: float


def run(*command: str | Path) -> Run:
    """Run a command to its end, whatever its status."""
    began = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    return Run(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def trnspec(*paths: Path) -> Run:
    """Check documents; they are copies of one document, which TRN208 would say of each."""
    return run(sys.executable, "-m", "trnspec", "validate", "--skip-others", "--ignore", "TRN208", *paths)


def others(*paths: Path) -> Run:
    """Check the form of documents of the kinds Chip and Server with check-jsonschema."""
    program = shutil.which("check-jsonschema", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise SystemExit("check-jsonschema is not installed: pip install --group bench")
    runs = [
        run(program, "--schemafile", SCHEMAS / f"{kind}.schema.json", *files)
        for kind in ("chip", "server")
        if (files := [path for path in paths if path.parent.name == f"{kind}s"])
    ]
    return Run(sum(r.wall for r in runs), sum(r.processor for r in runs), max(r.memory for r in runs))


def compare(name: str, targets: list[Path], files: list[Path], runs: int, goal: float) -> Run:
    """Print the ratio of the least processor times of some runs that alternate."""
    pairs = [(trnspec(*targets), others(*files)) for _ in range(runs)]
    walls = [min(pair[side].wall for pair in pairs) for side in (0, 1)]
    used = [min(pair[side].processor for pair in pairs) for side in (0, 1)]
    print(
        f"{name:10} trnspec {walls[0]:7.2f} s ({used[0]:.2f} s CPU), check-jsonschema {walls[1]:7.2f} s ({used[1]:.2f} s CPU),"
        f" ratio {used[0] / used[1]:.2f} (goal {goal}), peak {max(pair[0].memory for pair in pairs):.0f} MB",
        flush=True,
    )
    return Run(walls[0], used[0], max(pair[0].memory for pair in pairs))


def renamed(text: str, name: str) -> str:
    """A document under another name, and without aliases."""
    text = re.sub(r"(?m)^  name: .*$", f"  name: {name}", text, count=1)
    return re.sub(r"(?m)^  aliases: .*\n", "", text, count=1)


def make(folder: Path, number: int) -> list[Path]:
    """Write a catalog of chips and servers, every second one a server."""
    chip = (CATALOG / "chips" / "trainium2.yaml").read_text(encoding="utf-8")
    # With all its ports in one server, the rate of the links of a copy would not be that of its ports.
    chip = re.sub(r"(?m)^    ports: .*\n", "", chip)
    server = (CATALOG / "servers" / "trn2.48xlarge.yaml").read_text(encoding="utf-8")
    files = []
    for index in range(number):
        name = f"trn2.{index}" if index % 2 else f"chip-{index}"
        file = folder / ("servers" if index % 2 else "chips") / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(renamed(server if index % 2 else chip, name), encoding="utf-8")
        files.append(file)
    return files


def make_like_shipped(folder: Path, number: int) -> list[Path]:
    """Write a catalog of copies of shipped documents under other names; the first is a chip."""
    shipped = sorted(CATALOG.glob("*/*.yaml"), key=lambda file: file.stem != "trainium2")
    files = []
    for index in range(number):
        file = shipped[index % len(shipped)]
        name = f"{file.stem}-{index}"
        copy = folder / file.parent.name / f"{name}.yaml"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(renamed(file.read_text(encoding="utf-8"), name), encoding="utf-8")
        for table in file.parent.glob("*.csv"):
            shutil.copy(table, copy.parent)
        files.append(copy)
    return files


def changed(file: Path) -> Path:
    """The file, with another comment."""
    file.write_text(file.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    return file


async def keystroke(changes: int) -> list[float]:
    """The times from a change of a document to its first findings [ms]."""
    session = Session()
    await session.start()
    file = CATALOG / f"{FIRST}.yaml"
    uri, text = file.as_uri(), file.read_text(encoding="utf-8")
    await session.diagnostics(uri, session.write(uri, text), 3)
    times = []
    for number in range(changes):
        start = session.write(uri, text.replace("2.9 TB/sec", f"2.9{number} TB/sec"))
        times += await session.diagnostics(uri, start, 1)
        await asyncio.sleep(0.1)
    await session.client.shutdown_async(None)
    session.client.exit(None)
    await session.client.stop()
    return times


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="runs of one file (default: 7)")
    parser.add_argument("--largest", type=int, default=10_000, help="documents of the last folder (default: 10000)")
    options = parser.parse_args()
    run(sys.executable, "-m", "trnspec", "validate")  # compiles the modules
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary, "file", "chips", "trainium2.yaml")
        file.parent.mkdir(parents=True)
        shutil.copy(CATALOG / "chips" / "trainium2.yaml", file)
        compare("file", [changed(file)], [file], options.runs, 1.5)
        for name, files in (
            ("hook", make_like_shipped(Path(temporary, "hook"), 500)),
            ("hook 12 KB", make(Path(temporary, "large"), 500)),
        ):
            compare(name, [changed(files[0])], [files[0]], options.runs, 1.5)
        files = make(Path(temporary, "folder"), 1_000)
        first = compare("folder", [Path(temporary, "folder")], files, 1, 0.8)
        make(Path(temporary, "growth"), options.largest)
        last = trnspec(Path(temporary, "growth"))
    growth = last.processor / options.largest / (first.processor / 1_000)
    print(
        f"growth     {options.largest:,} documents {last.wall:.1f} s, {growth:.2f} times as long for each (goal 1), "
        f"peak {last.memory:.0f} MB (goal 500)"
    )
    times = asyncio.run(keystroke(40))
    print(f"keystroke  median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms (goal 100)")


if __name__ == "__main__":
    main()
