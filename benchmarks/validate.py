"""Time and memory of ``trnspec validate``, with check-jsonschema and yamllint where they are installed.

    python benchmarks/validate.py [NUMBER]...

Makes folders of 1, 100, 1,000 and 10,000 documents (or the given numbers): copies of the shipped trainium2.yaml and
trn2.48xlarge.yaml, about 10 KB each, under other names. Every run is a process of its own; its wall time, CPU time and peak
memory are measured, with those of the processes that it starts: memory is the sum of their proportional set sizes where
the system has them. "cold" has an empty cache, "warm" repeats the run, "one changed" repeats it after a
change to one file, with TRNSPEC_JOBS=1 and =2 in turn; "file" is the run of a hook: one file of the folder, cold, warm and after a change.
check-jsonschema and yamllint (dependency group "bench") check the same files up to 1,000 documents, without references
and figures; the ratio is their wall time to the cold time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "catalog"
NUMBERS = (1, 100, 1_000, 10_000)
MOST_OTHERS = 1_000
"""Other programs take minutes for more documents."""


@dataclass
class Run:
    """One process: seconds of wall time, seconds of CPU time, and peak memory in MiB."""

    wall: float
    cpu: float
    memory: float

    def __str__(self) -> str:
        return f"{self.wall:9.3f} s {self.cpu:9.3f} s {self.memory:8.0f} MiB"


def run(command: list[str], environ: dict[str, str]) -> Run:
    """Run a command to its end, whatever its status."""
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended = threading.Event()
    sizes: list[float] = []

    def sample() -> None:
        while not ended.wait(0.05):
            sizes.append(memory_of(process.pid))

    sampling = threading.Thread(target=sample)
    sampling.start()
    _, _, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    ended.set()
    sampling.join()
    return Run(took, usage.ru_utime + usage.ru_stime, max([*sizes, 0.0]) or usage.ru_maxrss / 1024)


def memory_of(process: int) -> float:
    """The proportional set size of a process and its children, in MiB; 0 where it is not known."""
    total = 0.0
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    for each in (process, *children):
        try:
            match = re.search(r"(?m)^Pss: +(\d+) kB", Path(f"/proc/{each}/smaps_rollup").read_text())
        except OSError:
            continue
        total += int(match[1]) / 1024 if match else 0.0
    return total


def renamed(text: str, name: str) -> str:
    """A document under another name, and without aliases."""
    text = re.sub(r"(?m)^  name: .*$", f"  name: {name}", text, count=1)
    return re.sub(r"(?m)^  aliases: .*\n", "", text, count=1)


def make(folder: Path, number: int) -> Path:
    """Write the documents, every second one a server; the first of them is the one that is changed."""
    chip = (CATALOG / "chips" / "trainium2.yaml").read_text(encoding="utf-8")
    # With all its ports in one server, the rate of the links of a copy would not be that of its ports.
    chip = re.sub(r"(?m)^    ports: .*\n", "", chip)
    server = (CATALOG / "servers" / "trn2.48xlarge.yaml").read_text(encoding="utf-8")
    (folder / "chips").mkdir(parents=True)
    (folder / "servers").mkdir()
    for index in range(number):
        if index % 2:
            (folder / "servers" / f"trn2.{index}.yaml").write_text(renamed(server, f"trn2.{index}"), encoding="utf-8")
        else:
            (folder / "chips" / f"chip-{index}.yaml").write_text(renamed(chip, f"chip-{index}"), encoding="utf-8")
    return folder / "chips" / "chip-0.yaml"


def measure(folder: Path, number: int, environ: dict[str, str]) -> None:
    """Print the runs over one folder."""
    file = make(folder, number)
    cold = None
    for name, target, jobs in (("folder", folder, "1"), ("folder", folder, "2"), ("file", file, "2")):
        command = [sys.executable, "-m", "trnspec", "validate", str(target)]
        environ = {**environ, "TRNSPEC_JOBS": jobs}
        shutil.rmtree(environ["XDG_CACHE_HOME"], ignore_errors=True)
        if name == "file":
            run([*command[:-1], str(folder)], environ)  # keeps the documents around it
        for what in ("cold", "warm", "one changed"):
            if what == "one changed":
                text = file.read_text(encoding="utf-8")
                file.write_text(text + "# changed\n", encoding="utf-8")
            time.sleep(0.2)  # the content of a file that was written just now is not cached
            result = run(command, environ)
            cold = cold or result
            print(f"{number:7,} {name:7} {what:12} {jobs:5}{result}", flush=True)
    schema = str(ROOT / "schemas" / "v1" / "chip.schema.json")
    others = {
        "check-jsonschema": ["--schemafile", schema, *map(str, sorted((folder / "chips").iterdir()))],
        "yamllint": [str(folder)],
    }
    for name, arguments in others.items():
        program = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
        if program and number <= MOST_OTHERS and cold is not None:
            result = run([program, *arguments], environ)
            print(f"{number:7,} {name:25} {result} {result.wall / cold.wall:6.1f} x", flush=True)


def main() -> None:
    """Measure each number of documents."""
    numbers = [int(a) for a in sys.argv[1:]] or NUMBERS
    print(
        f"{'':29}jobs {'wall':>11} {'CPU':>11} {'peak memory':>12}   (plugins: {os.environ.get('TRNSPEC_PLUGINS', 'all')})"
    )
    for number in numbers:
        with tempfile.TemporaryDirectory() as folder:
            environ = {**os.environ, "XDG_CACHE_HOME": str(Path(folder, "cache"))}
            environ.pop("TRNSPEC_NO_CACHE", None)
            environ.pop("PYTHONDONTWRITEBYTECODE", None)
            run([sys.executable, "-m", "trnspec", "validate", "--no-cache"], environ)  # compiles the modules
            measure(Path(folder, "catalog"), number, environ)


if __name__ == "__main__":
    main()
