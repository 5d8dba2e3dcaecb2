"""Time of command lines, compared with the imports that they need.

    python benchmarks/startup.py [RUNS]

Every command runs once before it is timed, so that all bytecode is written; then all of them run in turn, RUNS times
(15 by default), so that other load affects all alike.  Prints the medians in milliseconds, the
quartiles, and the ratio of each median to that of the first.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "catalog"
TRNSPEC = Path(sys.executable).parent / "trnspec"

COMMANDS = {
    "import attrs, cattrs, ruamel.yaml": [sys.executable, "-c", "import attrs, cattrs, ruamel.yaml"],
    "trnspec --version": [TRNSPEC, "--version"],
    "trnspec show trainium2": [TRNSPEC, "show", "trainium2"],
    "trnspec validate FILE": [TRNSPEC, "validate", CATALOG / "chips" / "trainium2.yaml"],
    "trnspec validate": [TRNSPEC, "validate"],
}


def once(command: list[str | Path], environment: dict[str, str]) -> float:
    """Seconds from start to end of one run."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Time the commands and print what was found."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for command in COMMANDS.values():
        once(command, environment)
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            times[name].append(once(command, environment))
    first = statistics.median(next(iter(times.values())))
    print(f"{'':34} {'median':>9} {'quartiles':>17} {'ratio':>7}   ({runs} runs)")
    for name, found in times.items():
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"{name:34} {1000 * middle:6.0f} ms {1000 * low:6.0f} to {1000 * high:4.0f} ms {middle / first:6.2f}x")


if __name__ == "__main__":
    main()
