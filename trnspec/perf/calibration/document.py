"""A fit as a document of the kind Calibration."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from trnspec.model.calibration import Achieved
from trnspec.model.reflection import FigureShape, ObjectShape
from trnspec.perf.calibration.fit_inference import FittedServing
from trnspec.perf.calibration.fit_training import COVERAGE
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from trnspec.perf.calibration.fit_training import Fitted

_DIGITS = 4


def document(  # noqa: PLR0913  # each is one line of it
    found: Fitted,
    *,
    name: str,
    chip: str,
    of: str,
    software: str,
    source: str,
    data: str,
    fitted: str,
    schema: str,
    note: str = "",
) -> str:
    """The YAML text of a calibration.

    Args:
        found: The fit.
        name: The name of the document.
        chip: The name of the chip.
        of: ``training`` or ``inference``.
        software: What ran.
        source: The name of the source of the measurements.
        data: The name of the file of measurements.
        fitted: The day of the fit.
        schema: Where the schema lies, for editors.
        note: What a reader should know, such as that the rows are of other chips.
    """
    spreads = {"spread": found}
    if isinstance(found, FittedServing) and found.first is not None:
        spreads["first"] = found.first
    lines = [
        f"# yaml-language-server: $schema={schema}",
        "api_version: trnspec/v1",
        "kind: Calibration",
        "metadata:",
        f"  name: {name}",
        f"  title: {_text(f'{software}, {of}')}",
        f"  source: {source}",
        *([f"  note: {_text(note)}"] if note else []),
        "spec:",
        f"  chip: {chip}",
        f"  of: {of}",
        f"  software: {_text(software)}",
        f"  fitted: {fitted}",
        f"  data: {_text(data)}",
        "  achieved:",
        *(f"    {key}: {value}" for key, value in printed_values(found).items()),
    ]
    for key, each in spreads.items():
        lines += [f"  {key}:", *(f"    {name}: {value}" for name, value in _spread(each).items())]
    return "\n".join(lines) + "\n"


def printed_values(found: Fitted) -> dict[str, str]:
    """What a fit found to be achieved, as printed."""
    return achieved(found.serving if isinstance(found, FittedServing) else found.efficiency, found.names)


def _spread(found: Fitted) -> dict[str, str]:
    mean, median, worst = found.summary(held_out=True)
    return {
        "rows": str(len(found.errors)),
        "mean": _share(mean),
        "median": _share(median),
        "worst": _share(worst),
        "coverage": _share(COVERAGE),
        "low": _share(found.low),
        "high": _share(found.high),
    }


def achieved(efficiency: Any, names: tuple[str, ...]) -> dict[str, str]:
    """What is achieved, as printed: what was fitted, and whether attention computes the half that causality leaves."""
    found = {}
    for name, field in ObjectShape(Achieved).fields.items():
        if name in names or name == "causal":
            value = float(getattr(efficiency, name))
            time = isinstance(field.shape, FigureShape) and field.shape.dimension is Dimension.TIME
            found[name] = _time(value) if time else _share(value)
    return found


def _text(words: str) -> str:
    """A text as YAML: as it is where it can only be a text, else in double quotes, as in JSON."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+,?)*", words)
    if plain and words.lower() not in _WORDS:
        return words
    # JSON leaves some characters as they are that YAML wants escaped.
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in json.dumps(words, ensure_ascii=False))


_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def _share(value: float) -> str:
    return f"{_plain(value)}x"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{_plain(seconds / size)} {unit}"
    return f"{_plain(seconds / 1e-9)} ns"


def _plain(value: float) -> str:
    """Four digits, never with an exponent; nothing beyond the tenth decimal."""
    text = np.format_float_positional(value, precision=_DIGITS, unique=False, fractional=False, trim="-")
    return text[:12].rstrip("0").rstrip(".") if "." in text else text
