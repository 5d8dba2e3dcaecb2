"""Fuzzing by coverage, with atheris: the reader, the quantity grammar and the query language.

``python tests/fuzz/coverage_guided.py SECONDS [TARGET]`` runs each target for a thirtieth of SECONDS. Where atheris is not
installed it says so and succeeds.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEDS = {
    "reader": [f.read_bytes() for f in ROOT.glob("tests/data/badinput/*.yaml") if f.stat().st_size < 5000],
    "quantity": [b"3,040 TFLOPS", b"~1.5 TB/s", b">= 2.9 TB/s", b"16 GiB", b"2 x 100 Gb/s"],
    "query": [b"server where memory.capacity > 1 TB and (chips.count = 16 or not dies known)"],
}


def reader(raw: bytes) -> None:
    """Every text has data or problems."""
    from trnspec.yaml import read_text

    document = read_text(raw)
    assert document.data is not None or document.problems


def quantity(raw: bytes) -> None:
    """What is a quantity is written as it was read."""
    from trnspec.errors import QuantityError
    from trnspec.quantities.quantity import parse

    text = raw.decode("utf-8", "replace")
    try:
        found = parse(text)
    except QuantityError:
        return
    assert parse(found.text) == found, text


def query(raw: bytes) -> None:
    """Every text is a query or an error for its author."""
    from trnspec.catalog.query.parser import parse_query
    from trnspec.errors import TrnspecError

    try:
        parse_query(raw.decode("utf-8", "replace"))
    except TrnspecError:
        return


TARGETS = {"reader": reader, "quantity": quantity, "query": query}


def run(name: str, seconds: int) -> None:
    """Fuzz one target in this process; libFuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["trnspec"]):
        import trnspec.catalog.query.parser
        import trnspec.quantities.quantity
        import trnspec.yaml.reader  # noqa: F401  # imported to be instrumented
    with tempfile.TemporaryDirectory() as corpus:
        for number, text in enumerate(SEEDS[name]):
            Path(corpus, str(number)).write_bytes(text)
        options = [f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=1024", "-max_len=4096", "-verbosity=0"]
        atheris.Setup([sys.argv[0], *options, corpus], TARGETS[name])
        atheris.Fuzz()


def main() -> int:
    """Run all targets, each in a process of its own, or one."""
    seconds = max(1, int(float(sys.argv[1])) // 30)
    try:
        import atheris  # noqa: F401  # only whether it is there
    except ImportError as error:
        print(f"skipped: atheris is not installed ({error})")  # noqa: T201
        return 0
    if len(sys.argv) > 2:
        run(sys.argv[2], seconds)
    failed = [t for t in TARGETS if subprocess.run([sys.executable, __file__, sys.argv[1], t], check=False).returncode]
    print(f"atheris, {seconds} s each: " + (f"failed: {', '.join(failed)}" if failed else "nothing found"))  # noqa: T201
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
