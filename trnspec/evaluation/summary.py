"""The summary of an evaluation: main answers, evidence, bottleneck, disputed figures and missing data, a line or more each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trnspec.evaluation.measures import measure, printed
from trnspec.evaluation.result import SHORT, Answer, Evaluation, Value
from trnspec.evidence import Evidence
from trnspec.text_table import columns_of, escape, padded, wrapped

BAR = 20
COMMAND = "sh"
"""The unit of an answer that is a command."""
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
_UPPER_CASE = {word: word.upper() for word in ("mfu", "hfu", "ttft", "tpot", "kv", "mtbf", "hbm")} | {"flops": "FLOPs"}
SYNONYMS = {name.replace("_", " "): short.upper() for short, name in SHORT.items()}
_SUMMARY_ENTRIES = 9
_SUMMARY_ANSWERS = 3
_MAIN = (
    *("run_time", "run_cost", "in_time", "in_budget", "within_limits", "step_time", "mfu"),
    *("time_to_first_token", "time_per_output_token", "million_tokens", "throughput"),
)
"""The answers that a summary prefers, whatever their order."""
_REMARKS = (
    *("likely_tpot", "by_computed_times", "goals", "limited_by", "chips", "layout", "mfu", "published_run"),
    *("published_fleet", "unmeasured_layout", "best_supported"),
)
"""The other answers that a summary has."""
_CALIBRATION = re.compile(r"(?<=: )\S+ has (?=no rows )")
"""The calibration that lacks some rows, which the details of the evidence name too."""
_DETAILS = ("memory", "total", "capacity", "fits")
"""The answers that the line ``fits`` of a summary combines."""


def label(name: str) -> str:
    """A name for people: ``step_time`` is ``step time``, ``mfu`` is ``MFU``; a path of a figure stays as it is."""
    if "." in name:
        return name
    return " ".join(_UPPER_CASE.get(word, word) for word in name.split("_"))


def is_number(value: Value | None) -> bool:
    """True of an integer or a float; a truth value is neither."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def lines_of(items: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """A line for each name, with the first of its texts that fits."""
    size = max((columns_of(name) for name, *_ in items), default=0)
    lines = []
    for name, *texts in items:
        head = f"  {padded(name, size)}  "
        available = width - columns_of(head)
        fitting = next((text for text in texts if columns_of(text) <= available), texts[-1])
        lines.append(head + shortened(fitting, available))
    return lines


_CLAUSE = re.compile(r"[;:,.] ")
_INTERVAL = re.compile(r"( [^\d\[\]]+) \[[^\[\]]*\]\1\b")
"""An interval after its value, with the unit of both: the second part of ``~8.9 M USD [5.0, 19.5] M USD``."""
_OPENED = re.compile(r" *[(\[][^()\[\]]*\Z")
"""A bracket at the end of a text that is not closed."""
_SHARE = re.compile(r" \([^()]*%[^()]*\)\Z")


def shortened(text: str, size: int) -> str:
    """The longest beginning of a text that fits in some columns and ends with a clause, or else with a word.

    Intervals are left out first, no text ends within brackets, and a clause that fills less than a third of the columns says too
    little. A share in parentheses at the end of a sentence is kept: ``compute-bound: all layers (69 %)`` becomes
    ``compute-bound (69 %)``.
    """
    if columns_of(text) > size:
        text = _INTERVAL.sub(r"\1", text)
    if columns_of(text) <= size:
        return text
    first = text.partition("; ")[0]
    share = _SHARE.search(first)
    whole, tail = (first, "") if share is None else (first[: share.start()], share[0])
    ends = [len(first) - len(tail), *reversed([m.start() for m in _CLAUSE.finditer(whole)])]
    for end in ends:
        short = _OPENED.sub("", whole[:end]) + tail
        if columns_of(short) <= size and (tail or columns_of(short) >= size / 3):
            return short
    return _OPENED.sub("", wrapped("", whole, size).partition("\n")[0]).rstrip(":,;")


def summary_items(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """The summary, at most nine lines: the kind of evidence, main answers, whether it fits, and the bottleneck.

    Returns:
        For each line its name and its text, followed by shorter texts for where that does not fit.
    """
    numbers = [a for a in evaluation.answers if is_number(a.value)]
    preferred = [a for name in _MAIN for a in numbers if a.name == name]
    others = [a for a in numbers if a not in preferred and a.name not in _DETAILS]
    chosen = [*preferred, *(others if not preferred else ())][:_SUMMARY_ANSWERS]
    chosen = chosen or numbers[:_SUMMARY_ANSWERS]
    items: list[tuple[str, ...]] = []
    for answer in chosen:
        note = f"({answer.note})" if answer.note and len(answer.note) <= BAR else ""
        items.append((SYNONYMS.get(label(answer.name), label(answer.name)), *_texts(answer, note)))
    remarks = [a for name in _REMARKS for a in evaluation.answers if a.name == name and a not in chosen]
    items += [(label(answer.name), *_texts(answer)) for answer in remarks]
    fits = _fits(evaluation)
    items += [fits] if fits else []
    if evaluation.bottleneck:
        items.append((bottleneck_label(evaluation).lower(), escape(evaluation.bottleneck)))
    evidence = evidence_text(evaluation)
    items = [("evidence", escape(_CALIBRATION.sub("", evidence))), *items] if evidence else items
    return items[:_SUMMARY_ENTRIES]


def _texts(answer: Answer, note: str = "") -> tuple[str, ...]:
    """The texts of an answer, the longest first."""
    if not is_number(answer.value):
        return (escape(str(answer.value)),)
    shown = printed(answer)
    # A value and one end, ``176, at least 96``, would read as one number.
    both = f"{shown.value}{',' if shown.interval.startswith('at ') else ''} {shown.interval}".rstrip()
    texts = ((both, note), (both,), (shown.value,))
    return tuple(escape(" ".join(filter(None, text))) for text in texts)


def bottleneck_label(evaluation: Evaluation) -> str:
    """``Bottleneck``, or ``Largest part`` where the limit named takes no more than half."""
    percent = _PERCENT.search(evaluation.bottleneck)
    if percent is not None:
        return "Bottleneck" if float(percent[1]) > 50 else "Largest part"
    first = evaluation.parts[0].of if evaluation.parts else ""
    sizes = [abs(p.value) for p in evaluation.parts if p.of == first]
    return "Largest part" if sum(sizes) and max(sizes) <= sum(sizes) / 2 else "Bottleneck"


def _fits(evaluation: Evaluation) -> tuple[str, str] | None:
    answers = {a.name: a for a in evaluation.answers}
    sizes = [a for a in (answers.get("memory") or answers.get("total"), answers.get("capacity")) if a is not None]
    both = len(sizes) > 1 and all(is_number(a.value) for a in sizes)
    of = f"{' of '.join(measure(a.value, a.unit) for a in sizes)} per rank" if both else ""
    fits = answers.get("fits")
    if fits is not None:
        return "fits", measure(fits.value) + (f", {of}" if of else "")
    return ("memory", of) if of else None


def evidence_text(evaluation: Evaluation) -> str:
    """The kind of evidence and its reason; empty without evidence."""
    evidence = evaluation.evidence
    return "" if evidence is None else f"{evidence.kind}: {evidence.reason}"


def evidence_details(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Rows that the calibration of an evaluation was fitted on, and its errors there."""
    if not evidence.calibration:
        return
    about = [f"{evidence.rows:,} rows", evidence.chip, evidence.framework or evidence.software, evidence.era]
    yield "fitted on", ", ".join(filter(None, about))
    if evidence.nearest is not None:
        yield "nearest row", str(evidence.nearest)
    if evidence.errors:
        yield "mean error", "; ".join(map(str, evidence.errors))
    if evidence.page:
        yield "errors of all rows", evidence.page


def not_summarized(evaluation: Evaluation) -> list[Answer]:
    """The answers that no line of the summary has."""
    named = {name for name, *_ in summary_items(evaluation)}
    details = _DETAILS if named & {"fits", "memory"} else ()
    return [
        a for a in evaluation.answers
        if a.unit != COMMAND and a.name not in details and not named & {label(a.name), SYNONYMS.get(label(a.name), "")}
    ]  # fmt: skip


def evidence_lines(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The nearest measured row, without the difference that the evidence states, and the mean error of the calibration."""
    evidence = evaluation.evidence
    details = dict(evidence_details(evidence)) if evidence is not None else {}
    if evidence is not None and "nearest row" in details:
        first = evidence.reason.partition("; ")[0]  # the summary has it, and the others where they fit
        details["nearest row"] = details["nearest row"].replace(f"; {first};", ";").removesuffix(f"; {first}")
    return [(name, escape(details[name])) for name in ("nearest row", "mean error") if name in details]


MOST_UNCERTAIN = 12
"""The most lines of evidence, disputed figures and missing data on a first page."""


def uncertain(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Disputed catalog figures, and the assumptions about missing data, a line each."""
    rows = []
    for figure in evaluation.figures_used:
        if disputed := [c for c in figure.conflicting if _DISPUTED.search(c)]:
            text = f"{figure.of} {figure.at}: {figure.says} or {' or '.join(_DISPUTED.sub('', c) for c in disputed)}"
            rows.append(("disputed", escape(text)))
    rows += [
        (label(a.name), escape(f"{a.value}: {a.why}" if a.why else a.value)) for a in evaluation.assumptions if a.first
    ]
    more = len(rows) - MOST_UNCERTAIN
    if more > 0:
        rows[MOST_UNCERTAIN - 1 :] = [("more", f"{more + 1} other disputed figures and assumptions: --full")]
    return rows


_DISPUTED = re.compile(r", unresolved\b")
