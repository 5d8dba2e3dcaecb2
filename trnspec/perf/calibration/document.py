"""The YAML document of a fit: kind Calibration."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import asdict

from trnspec.model.calibration import Achieved, KernelRoof
from trnspec.model.reflection import FigureShape, ObjectShape
from trnspec.perf.calibration.fits.collectives import FittedLibrary
from trnspec.perf.calibration.fits.inference import FittedServing
from trnspec.perf.calibration.fits.training import COVERAGE
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trnspec.perf.calibration.fits.prior import Learned
    from trnspec.perf.calibration.fits.training import Fitted
    from trnspec.perf.calibration.groups import GroupErrors
    from trnspec.perf.calibration.transfer import Beyond
    from trnspec.perf.collectives.library import Protocol

_DIGITS = 4


def document(  # noqa: PLR0913  # each is a line of the document
    result: Fitted,
    *,
    name: str,
    chip: str,
    of: str,
    software: str,
    source: str,
    data: str,
    fitted: str,
    schema: str,
    framework: str = "",
    era: str = "",
    models: str = "",
    note: str = "",
    fitted_on: Mapping[str, str] = {},
    beyond: Sequence[Beyond] = (),
    groups: Sequence[GroupErrors] = (),
    hashes: Sequence[str] = (),
    roofs: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The YAML text of a calibration.

    Args:
        result: The fit.
        name: Name of the document.
        chip: Name of the chip.
        of: ``training``, ``inference`` or ``collectives``.
        software: The software that was measured.
        source: Name of the source of the measurements.
        data: Name of the table of measurements.
        fitted: Date of the fit.
        schema: Path of the JSON Schema, for editors.
        framework: The framework, as ``--framework`` names it; empty if unknown.
        era: The era of its release.
        models: ``dense`` or ``experts``; empty for both.
        note: A note for readers, such as that the rows are of other chips.
        fitted_on: What the rows have in common and their ranges, see :func:`trnspec.perf.calibration.fit_range.fitted_on`.
        beyond: How far the fit is off beyond its rows, for ``spread`` and for ``first``.
        groups: The errors of each group of held-out rows; the interval of ``spread`` is that of the group of all rows.
        roofs: The fields of each :class:`~trnspec.model.calibration.KernelRoof`.
        hashes: The hashes of the fitted rows, see :func:`trnspec.perf.calibration.measured.tables.row_hashes`.
    """
    labels = {"framework": framework, "era": era, "models": models}
    spreads = {"spread": result}
    if isinstance(result, FittedServing) and result.ttft is not None:
        spreads["first"] = result.ttft
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
        *(f"  {key}: {_text(text)}" for key, text in labels.items() if text),
        f"  fitted: {fitted}",
        f"  data: {_text(data)}",
        *(["  fitted_on:"] if fitted_on else []),
        *(f"    {key}: {value}" for key, value in fitted_on.items()),
        "  achieved:",
        *(f"    {key}: {value}" for key, value in printed_values(result).items()),
        *(["  protocols:", *map(_protocol, result.library.protocols)] if isinstance(result, FittedLibrary) else []),
    ]
    for i, (key, spread) in enumerate(spreads.items()):
        phase = "ttft" if key == "first" else "step" if of == "training" else "tpot"
        pooled = next((g for g in groups if g.phase == phase and not (g.scale or g.models)), None)
        lines += [f"  {key}:", *(f"    {name}: {value}" for name, value in _spread(spread, pooled).items())]
        lines += beyond_lines(beyond[i]) if beyond else []
    labelled = [g for g in groups if g.scale or g.models or of == "kernels"]
    lines += ["  groups:", *map(_group, labelled)] if labelled else []
    lines += ["  roofs:"] if roofs else []
    lines += map(_roof, roofs)
    lines += _prior(result)
    lines += ["  rows: >-", *_wrapped(sorted(set(hashes)))] if hashes else []
    return "\n".join(lines) + "\n"


def _protocol(protocol: Protocol) -> str:
    cells = {"name": _text(protocol.name), "algorithm": protocol.algorithm, "kinds": f"[{', '.join(protocol.kinds)}]"}
    cells |= {name: _time(getattr(protocol, name)) for name in ("call", "hop", "network_hop")}
    cells |= {name: _share(value) for name in ("link", "network", "own") if (value := getattr(protocol, name))}
    return f"    - {{{', '.join(f'{name}: {text}' for name, text in cells.items())}}}"


def _prior(result: Fitted) -> list[str]:
    if not result.learned:
        return []
    return [
        "  prior:",
        *([f"    calibration: {result.prior.name}"] if result.prior.name else []),
        "    values:",
        *(f"      {name}: {text}" for name, text in printed_priors(result).items()),
        "    learned:",
        *(f"      - {{name: {_text(each.name)}, share: {_plain(round(each.share, 3))}x}}" for each in result.learned),
    ]


def _group(group: GroupErrors) -> str:
    labels = {"phase": group.phase, "scale": group.scale, "models": group.models}
    shares = {name: _share(getattr(group, name)) for name in ("mean", "median", "low", "high")}
    cells = {name: text for name, text in labels.items() if text}
    cells |= {"rows": str(group.rows), "clusters": str(group.clusters)} | shares
    if group.size is not None:
        cells["size"] = "{" + f"low: {group.size[0]:.0f}, high: {group.size[1]:.0f}" + "}"
    return f"    - {{{', '.join(f'{name}: {text}' for name, text in cells.items())}}}"


def _wrapped(hashes: Sequence[str]) -> Iterator[str]:
    for i in range(0, len(hashes), _PER_LINE):
        yield f"    {' '.join(hashes[i : i + _PER_LINE])}"


_PER_LINE = 12
"""Hashes on a line."""


def beyond_lines(beyond: Beyond) -> list[str]:
    """The lines of a spread about rows beyond the fit."""
    lines = [f"    extrapolation: {_share(beyond.exponent)}"]
    if (there := beyond.elsewhere) is not None:
        lines += [
            "    transfer:",
            f"      rows: {there.rows}",
            f"      groups: {there.groups}",
            f"      low: {_share(there.low)}",
            f"      high: {_share(there.high)}",
        ]
    return lines


def printed_values(fitted: Fitted) -> dict[str, str]:
    """The figures of a fit, as printed."""
    if isinstance(fitted, FittedLibrary):
        return achieved(fitted.library, fitted.names)
    if not isinstance(fitted, FittedServing):
        return achieved(fitted.efficiency, fitted.names)
    return achieved(SimpleNamespace(**asdict(fitted.efficiency) | asdict(fitted.serving)), fitted.names)


def printed_priors(fitted: Fitted) -> dict[str, str]:
    """The figures before the rows, as printed."""
    values = SimpleNamespace(**{each.name: each.prior for each in fitted.learned})
    return achieved(values, tuple(each.name for each in fitted.learned))


def printed_learned(fitted: Fitted) -> list[tuple[str, str, str, Learned | None]]:
    """Each parameter with its value and that of the prior, as printed, and what the rows add.

    Names of parameters of a protocol begin with its name.
    """
    fields = ObjectShape(Achieved).fields
    values, priors = printed_values(fitted), printed_priors(fitted)
    learned = {each.name: each for each in fitted.learned}
    lines = [(name, text, priors.get(name, ""), learned.get(name)) for name, text in values.items()]
    for name, each in learned.items():
        if name not in values:
            # A protocol's own part is a share, its other figures have the names of those of a chip.
            shape = fields["link" if (last := name.split()[-1]) == "own" else last].shape
            lines.append((name, _figure(each.value, shape), _figure(each.prior, shape), each))
    return lines


def _spread(fitted: Fitted, pooled: GroupErrors | None) -> dict[str, str]:
    mean, median, worst = fitted.summary(held_out=True)
    return {
        "rows": str(len(fitted.errors)),
        "mean": _share(mean),
        "median": _share(median),
        "worst": _share(worst),
        "coverage": _share(COVERAGE),
        "low": _share(fitted.low if pooled is None else pooled.low),
        "high": _share(fitted.high if pooled is None else pooled.high),
    }


def _roof(roof: Mapping[str, Any]) -> str:
    fields = ObjectShape(KernelRoof).fields
    cells = {
        n: _figure(value, fields[n].shape) if isinstance(value, float) else str(value) for n, value in roof.items()
    }
    return f"    - {{{', '.join(f'{name}: {text}' for name, text in cells.items())}}}"


def _figure(value: float, shape: Any) -> str:
    return _time(value) if isinstance(shape, FigureShape) and shape.dimension is Dimension.TIME else _share(value)


def achieved(efficiency: Any, names: tuple[str, ...]) -> dict[str, str]:
    """The fitted figures as printed, and those that are a property of the rows."""
    printed = {}
    for name, field in ObjectShape(Achieved).fields.items():
        if name in names or (hasattr(efficiency, name) and name in _of_rows(efficiency)):
            value = getattr(efficiency, name)
            if value is None:
                continue
            printed[name] = _figure(value, field.shape)
    return printed


def _of_rows(efficiency: Any) -> tuple[str, ...]:
    """Whether attention computes only the causal half; and ``overlap`` where the software overlaps no gradients."""
    return ("causal",) if getattr(efficiency, "overlap", 1.0) else ("causal", "overlap")


def _text(text: str) -> str:
    """A YAML scalar: plain where it can only be a string, else in double quotes, as in JSON."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+,?)*", text)
    if plain and text.lower() not in _RESERVED:
        return text
    # YAML needs escapes for some characters that JSON does not escape.
    return "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in json.dumps(text, ensure_ascii=False))


_RESERVED = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def _share(value: float) -> str:
    return f"{_plain(value)}x"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{_plain(seconds / size)} {unit}"
    return f"{_plain(seconds / 1e-9)} ns"


def _plain(value: float) -> str:
    """Four significant digits without an exponent, at most ten decimals."""
    text = np.format_float_positional(value, precision=_DIGITS, unique=False, fractional=False, trim="-")
    return text[:12].rstrip("0").rstrip(".") if "." in text else text
