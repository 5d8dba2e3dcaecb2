"""How often the first hint of a finding is right: ``PYTHONPATH=. python benchmarks/hints.py SEED SIZE [CATALOG...]``.

Prints the verdicts by kind of slip, then every slip whose hint is misleading or absent, or whose finding is elsewhere.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.slips import result_of, sampled
from trnspec.api import graph as load
from trnspec.api import registry


def main(seed: int, size: int, *catalogs: str) -> None:
    """Measure one sample."""
    graph = load(catalogs)
    rules = [rule for rule in registry().rules if not rule.code.id.startswith("TRN7")]
    begun, kinds = time.process_time(), defaultdict(Counter)
    results = [result_of(graph, slip, rules) for slip in sampled(graph, size, seed)]
    for result in results:
        kinds[result.slip.kind][result.verdict] += 1
        if result.verdict != "right" or not result.location:
            place = "" if result.location else " (elsewhere)"
            print(
                f"{result.verdict:10} {result.slip}: {result.cause or 'no finding'}{place}: {result.hint}", flush=True
            )
    for kind, verdicts in sorted(kinds.items()):
        print(f"{kind:18} {dict(verdicts)}")
    total = sum(kinds.values(), Counter())
    shares = ", ".join(f"{verdict} {n / len(results):.1%}" for verdict, n in total.items())
    located = sum(result.location for result in results) / len(results)
    print(f"seed {seed}, {len(results)} slips: {shares}, at the place {located:.1%}")
    print(f"{time.process_time() - begun:.0f} s of processor time", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
