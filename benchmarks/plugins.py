"""Startup time of the command line with plugins installed.

    python benchmarks/plugins.py [RUNS]

Makes folders of installed distributions by hand, each a module with one rule and its metadata, and puts one of them on
the path: none, 4, 50, 50 and one that cannot be imported, 50 and one that sleeps for a minute when it is imported.
Every command runs once before it is timed; then all run in turn, RUNS times (11 by default).  Prints the fastest run of
each in milliseconds, which is least affected by other load, and the difference to that without plugins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRNSPEC = [sys.executable, "-m", "trnspec"]
COMMANDS = {
    "trnspec --version": [*TRNSPEC, "--version"],
    "trnspec validate FILE": [*TRNSPEC, "validate", str(ROOT / "catalog" / "chips" / "trainium2.yaml")],
    "the same, --no-plugins": [
        *TRNSPEC,
        "--no-plugins",
        "validate",
        str(ROOT / "catalog" / "chips" / "trainium2.yaml"),
    ],
}
SOUND = '''
from trnspec.model.chip import Chip
from trnspec.plugins.api import API, Plugin, rule

@rule("MANY{number:02}", "many-{number:02}", over=Chip)
def check(chip, graph):
    """It says nothing."""
    yield from ()

plugin = Plugin(name="many-{number:02}", api=API, rules=(check,))
'''


def install(folder: Path, name: str, code: str) -> None:
    """Install a distribution with one module into a folder."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[trnspec.plugins]\n{name} = {module}:plugin\n")


def sites(top: Path) -> dict[str, Path]:
    """The folders, by what is installed in each."""
    more = {"0": (0, ""), "4": (4, ""), "50": (50, ""), "50 + 1 broken": (50, "raise ImportError('gone')")}
    more["50 + 1 sleeping"] = (50, "import time\ntime.sleep(60)")
    made = {}
    for label, (count, code) in more.items():
        made[label] = top / label.replace(" ", "")
        made[label].mkdir()
        for number in range(count):
            install(made[label], f"many-{number:02}", SOUND.format(number=number))
        if code:
            install(made[label], "other", code)
    return made


def once(command: list[str], environment: dict[str, str]) -> float:
    """Seconds from start to end of one run."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Time the commands and print what was found."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    with tempfile.TemporaryDirectory() as top:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        cases = {
            (label, name): (command, {**environment, "PYTHONPATH": str(folder)})
            for label, folder in sites(Path(top)).items()
            for name, command in COMMANDS.items()
        }
        for command, env in cases.values():
            once(command, env)
        times: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
        for _ in range(runs):
            for case, (command, env) in cases.items():
                times[case].append(once(command, env))
    fastest = {case: 1000 * min(found) for case, found in times.items()}
    print(f"| plugins | {' | '.join(COMMANDS)} |")
    print(f"|---|{'---:|' * len(COMMANDS)}")
    for label in dict.fromkeys(label for label, _ in cases):
        cells = [f"{fastest[label, n]:,.0f} ms ({fastest[label, n] - fastest['0', n]:+,.0f})" for n in COMMANDS]
        print(f"| {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
