"""Stored answers: text files below ``tests/data`` with a line for each case, its name and what it answers.

Numbers are compared within a tolerance.  Of outputs in words that are many, such as messages, :func:`sample` keeps one line of
each wording.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from math import fsum, isclose, log
from pathlib import Path
from typing import Any

from attrs import asdict

from trnspec.errors import RefusalError, TrnspecError
from trnspec.evaluation.result import Evaluation

DATA = Path(__file__).parents[1] / "data"
DIGITS = 5
DERIVED = {
    "title",
    "throughput",
    "throughput_per_chip",
    "mfu",
    "latency",
    "hourly",
    "median_ttft",
    "median_tpot",
    "launch",
}
"""Entries that follow from inputs and other answers."""
TOLERANCE = 2e-4
"""Relative; a number of five digits may be rounded the other way on another processor."""
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")


def read(name: str) -> dict[str, str]:
    """The stored cases of a file below ``tests/data``, by name; a name that begins with a colon continues the group above."""
    cases: dict[str, str] = {}
    group = ""
    for line in (DATA / name).read_text("utf-8").splitlines():
        case, _, answer = line.partition(" | ")
        case = f"{group}{case}" if case.startswith(": ") else case
        group = case.partition(": ")[0]
        cases[case] = answer
    return cases


def write(name: str, cases: Mapping[str, str]) -> None:
    """Write a file below ``tests/data``."""
    lines: list[str] = []
    group = ""
    for case, answer in cases.items():
        short = case.removeprefix(group) if case.startswith(f"{group}: ") else case
        lines.append(f"{short} | {answer}\n".replace(" | \n", " |\n"))
        group = case.partition(": ")[0]
    (DATA / name).parent.mkdir(exist_ok=True)
    (DATA / name).write_text("".join(lines), "utf-8")


def number(value: Any) -> str:
    """A number with five digits; anything else as it is printed."""
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def same(expected: str, found: str, rel_tol: float = TOLERANCE, abs_tol: float = 0.0) -> bool:
    """Whether two texts have the same words, and the same numbers within a relative tolerance."""
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(found), strict=False)
    return NUMBER.sub("#", expected) == NUMBER.sub("#", found) and all(
        isclose(float(a), float(b), rel_tol=rel_tol, abs_tol=abs_tol) for a, b in pairs
    )


def wording(line: str) -> tuple[str, ...]:
    """What lines of one wording have in common: the words, without names and numbers."""
    return tuple(w for w in line.split() if re.fullmatch(r"[\[{(]?[a-z]+[,;:)\]}]?", w))


def sample(name: str, lines: Iterable[str], most: int) -> list[str]:
    """The number and a checksum of all lines, and the first line of each wording, at most a number of them at equal distances.

    The checksum shows a change of any other line.
    """
    made = list(lines)
    first: dict[tuple[str, ...], str] = {}
    for one in made:
        if one.strip():
            first.setdefault(wording(one), one.replace("\n", "\\n"))
    kept = list(first.values())[:: -(-len(first) // most)]
    checksum = zlib.crc32("\n".join(made).encode())
    return [f"{name}: {len(made)} lines, checksum {checksum:08x}", *(f"  {one}" for one in kept)]


def sampled(file: str, name: str) -> list[str]:
    """The stored lines of a sample."""
    text = "\n" + (DATA / file).read_text("utf-8")
    head, *lines = text.partition(f"\n{name}: ")[2].split("\n")
    return [f"{name}: {head}", *takewhile(lambda one: one.startswith("  "), lines)]


def sums(values: Iterable[Any]) -> str:
    """The number of values that are numbers, and their sum."""
    numbers = [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e300]
    return f"{len(numbers)} sum {number(fsum(numbers))}"


def logs(values: Iterable[Any]) -> str:
    """The sum of the absolute logarithms of values that are numbers: small ones contribute as much as large ones."""
    numbers = (abs(v) for v in values if isinstance(v, (int, float)) and v and abs(v) < 1e300)
    return number(fsum(abs(log(v)) for v in numbers))


def texts(data: Any) -> Iterator[str]:
    """All texts and truth values in plain data, keys included."""
    if isinstance(data, (Mapping, list, tuple)):
        for one in data.items() if isinstance(data, Mapping) else data:
            yield from texts(one)
    elif isinstance(data, (str, bool)):
        yield str(data)


def in_texts(*data: Any) -> str:
    """The number of texts in plain data, and the logarithms of the numbers in them; not their words."""
    found = list(texts(data))
    return f"{len(found)}, logs {logs(float(n) for text in found for n in NUMBER.findall(text))}".removesuffix(
        ", logs 0"
    )


def words(data: Any) -> str:
    """A checksum of plain data as JSON, without its numbers."""
    return f"{zlib.crc32(NUMBER.sub('#', json.dumps(data, ensure_ascii=False, default=str)).encode()):08x}"


def entries(found: Evaluation) -> Iterator[tuple[str, str]]:
    """What an evaluation holds: answers with intervals and units, sums over its breakdown and tables, and its texts."""
    yield "title", found.title
    yield "bottleneck", found.bottleneck.partition(":")[0]
    yield "evidence", found.evidence.kind if found.evidence else "none"
    for one in found.answers:
        interval = "" if one.low is None and one.high is None else f" [{number(one.low)}, {number(one.high)}]"
        yield one.name, f"{number(one.value)}{interval} {one.unit}".rstrip()
    for of in dict.fromkeys(part.of for part in found.parts):
        parts = [part.value for part in found.parts if part.of == of]
        yield f"parts of {of}", f"{len(parts)}, logs {logs(parts)}"
    yield "assumptions", f"{len(found.assumptions)} of {len({a.name for a in found.assumptions})}"
    yield "figures", f"{len(found.figures_used)}, suggestions {len(found.suggestions)}"
    for table in found.tables:
        cells = [v for row in table.rows for v in row]
        yield f"table {table.title}", f"{len(table.rows)} rows, logs {logs(cells)}"
    plain = found.to_dict()
    shown = ("answers", "parts", "assumptions", "tables", "suggestions", "bottleneck")
    yield "texts", in_texts(*(plain[name] for name in shown), json.dumps(plain["evidence"]))
    yield "words", words(plain)


def answered(call: Callable[[], Evaluation]) -> dict[str, str]:
    """The entries of an evaluation by name, or the reason of a refusal or error."""
    try:
        return dict(entries(call()))
    except RefusalError as refused:
        about = [str(refused), refused.hint, *map(asdict, refused.suggestions)]
        refusal = f"{refused.reason} at {refused.place or '-'}; {in_texts(about)}".removesuffix("; 2")
        return {"refused": refusal, "words": words(about)}
    except TrnspecError as error:
        return {type(error).__name__: str(error).splitlines()[0][:80]}


def line(case: Mapping[str, str], base: Mapping[str, str] | None = None) -> str:
    """The entries of a case; with a base those that differ from it, and the names of those that the case lacks.

    With a base the interval is that of the first answer only, as the others follow from the same spread; likewise
    :data:`DERIVED` answers are left out. A table of the base is given by its number.
    """
    if base is None:
        return "; ".join(f"{name} {text}" for name, text in case.items())
    tables = {name: f"table {n}" for n, name in enumerate((n for n in base if n.startswith("table ")), 1)}
    changed = [
        f"{tables.get(name, name)} {text}"
        for name, text in case.items()
        if base.get(name) != text and name not in DERIVED
    ]
    first = next((n for n, text in enumerate(changed) if "[" in text), -1)
    changed = [text if n <= first else re.sub(r" \[.*?\]", "", text) for n, text in enumerate(changed)]
    lacking = [] if len(case) == 1 else [f"no {name}" for name in base if name not in case]
    return "; ".join([*changed, *lacking]) or "as the base"
