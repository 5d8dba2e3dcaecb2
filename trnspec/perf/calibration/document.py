"""The YAML document of a fit: kind Calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from trnspec.model.calibration import Achieved, FittedTable, KernelRoof
from trnspec.model.calibration import Protocol as Stated
from trnspec.model.document_text import document_text
from trnspec.model.reflection import FigureShape, ObjectShape
from trnspec.perf.calibration.fits.fit import Errors, Fitted
from trnspec.perf.calibration.fits.uncertainty import Information
from trnspec.perf.calibration.groups import COVERAGE, GroupErrors
from trnspec.perf.calibration.transfer import Beyond
from trnspec.quantities.units import Dimension

_DIGITS = 4


def document(  # noqa: PLR0913  # each is a line of the document
    fitted: Fitted, *, name: str, of: str, software: str, source: str, date: str, schema: str = "",
    tables: Sequence[FittedTable] = (), data: Sequence[str] = (), hashes: Sequence[str] = (),
) -> str:  # fmt: skip
    """The YAML text of a calibration.

    Args:
        fitted: The fit.
        name: Name of the document.
        of: ``training``, ``inference``, ``collectives`` or ``kernels``.
        software: The software that was measured.
        source: Name of the source of the measurements.
        date: Date of the fit.
        schema: Path of the JSON Schema, for editors.
        tables: The fitted rows of tables of the catalog, see :func:`trnspec.perf.calibration.measured.cells.fitted_tables`.
        data: The names of other tables.
        hashes: The hashes of the fitted rows of these.
    """
    spreads = dict(zip(("spread", "first"), fitted.errors.values(), strict=False))
    labelled = [g for g in fitted.groups if g.scale or g.models or of == "kernels"]
    library = None if fitted.library is None else fitted.library.protocols
    spec = {
        "chip": fitted.chip,
        "of": of,
        "software": software,
        "framework": fitted.framework,
        "era": fitted.era,
        "models": fitted.models,
        "fitted": date,
        "tables": [attrs.asdict(table) for table in tables],
        "data": ", ".join(data),
        "fitted_on": fitted.fitted_on,
        "achieved": printed(fitted.values),
        "protocols": [
            _figures({n: v for n, v in attrs.asdict(p).items() if v or n != "own"}, Stated) for p in library or ()
        ],
        **{
            key: _spread(
                errors, len(errors.fit) if i else len(fitted.cases), fitted.beyond[i] if fitted.beyond else None
            )
            for i, (key, errors) in enumerate(spreads.items())
        },
        "groups": [_group(group) for group in labelled],
        "roofs": [_figures(roof, KernelRoof) for roof in fitted.roofs],
        "prior": _prior(fitted),
        "rows": " ".join(sorted(set(hashes))),
    }
    metadata = {"name": name, "title": f"{software}, {of}", "source": source, "note": fitted.note}
    return document_text("Calibration", _stated(metadata), _stated(spec), schema)


def _stated(value: Any) -> Any:
    """A value without the empty ones in it; a count of 0 is none of these."""
    if isinstance(value, Mapping):
        kept = {name: _stated(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each or each == 0}
    return [*map(_stated, value)] if isinstance(value, list | tuple) else value


def _figures(values: Mapping[str, Any], kind: type | None) -> dict[str, Any]:
    """Values of an object with its numbers as figures: times by the fields of ``kind``, else shares."""
    shapes = {} if kind is None else {name: each.shape for name, each in ObjectShape(kind).fields.items()}
    return {
        name: _figure(value, shapes.get(name)) if isinstance(value, float) else value for name, value in values.items()
    }


def _group(group: GroupErrors) -> dict[str, Any]:
    size = None if group.size is None else dict(zip(("low", "high"), map(round, group.size), strict=True))
    return {**_figures(attrs.asdict(group), None), "size": size}


def _spread(errors: Errors, rows: int, beyond: Beyond | None) -> dict[str, Any]:
    mean, median, worst = errors.summary(held_out=True)
    shares: dict[str, float] = {"mean": mean, "median": median, "worst": worst, "coverage": COVERAGE}
    shares |= {"low": errors.low, "high": errors.high}
    lines: dict[str, Any] = {"rows": rows, **{n: _share(value) for n, value in shares.items()}}
    if beyond is not None:
        lines["extrapolation"] = _share(beyond.exponent)
        for name, there in (("transfer", beyond.elsewhere), ("other_chips", beyond.chips)):
            lines[name] = {} if there is None else _figures(attrs.asdict(there), None)
    return lines


def _prior(fitted: Fitted) -> dict[str, Any]:
    if not fitted.learned:
        return {}
    values = printed({each.name: each.prior for each in fitted.learned})
    shares = {each.name: round(each.share, 3) for each in fitted.learned}
    learned = [{"name": name, "share": f"{_digits(share)}x"} for name, share in shares.items() if share]
    return {"calibration": fitted.prior.name, "values": values, "learned": learned}


def printed(values: Mapping[str, float]) -> dict[str, str]:
    """The figures of :class:`~trnspec.model.calibration.Achieved` among some parameters, as printed."""
    fields = ObjectShape(Achieved).fields
    return {name: _figure(values[name], each.shape) for name, each in fields.items() if name in values}


def printed_learned(fitted: Fitted) -> list[tuple[str, str, str, Information | None]]:
    """Each parameter with its value and that of the prior, as printed, and what the rows add.

    Names of parameters of a protocol begin with its name.
    """
    fields = ObjectShape(Achieved).fields
    learned = {each.name: each for each in fitted.learned}
    values, priors = printed(fitted.values), printed({name: each.prior for name, each in learned.items()})
    lines = [(name, text, priors.get(name, ""), learned.get(name)) for name, text in values.items()]
    for name, each in learned.items():
        if name not in values:
            # A protocol's own part is a share, its other figures have the names of those of a chip.
            shape = fields["link" if (last := name.split()[-1]) == "own" else last].shape
            lines.append((name, _figure(each.value, shape), _figure(each.prior, shape), each))
    return lines


def _is_time(shape: Any) -> bool:
    return isinstance(shape, FigureShape) and shape.dimension is Dimension.TIME


def _figure(value: float, shape: Any) -> str:
    return _time(value) if _is_time(shape) else _share(value)


def _share(value: float) -> str:
    return f"{_digits(value)}x"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def _digits(value: float) -> str:
    """Four significant digits without an exponent, at most ten decimals."""
    text = np.format_float_positional(value, precision=_DIGITS, unique=False, fractional=False, trim="-")
    return text[:12].rstrip("0").rstrip(".") if "." in text else text
