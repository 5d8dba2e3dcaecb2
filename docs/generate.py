"""Generates the JSON Schemas and the reference pages of codes, accuracy and currency.

``python docs/generate.py --check`` writes nothing and fails if a file is not up to date.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from currency import currencies

from trnspec.api import graph, registry
from trnspec.catalog.versions.editions import names
from trnspec.loading.files import shipped
from trnspec.model.json_schema import document_schema
from trnspec.model.reflection import field_docs
from trnspec.perf.calibration.score import AccuracyRow

ROOT = Path(__file__).resolve().parent.parent


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    known = registry()
    generated = {
        ROOT / "schemas" / "v1" / f"{kind.name.lower()}.schema.json": _json(document_schema(kind.name, kind.spec))
        for kind in known.kinds.values()
    }
    generated[ROOT / "schemas" / "v1" / "accuracy.schema.json"] = _json(_accuracy())
    generated[ROOT / "docs" / "reference" / "accuracy.md"] = _accuracy_page()
    generated[ROOT / "docs" / "reference" / "codes.md"] = _codes()
    generated[ROOT / "docs" / "reference" / "currency.md"] = _currency()
    return generated


def _accuracy() -> dict[str, object]:
    """The JSON Schema of ``trnspec eval accuracy --format json``, of which ``rows`` is the part that programs read."""
    properties: dict[str, object] = {}
    texts = field_docs(AccuracyRow)
    for name, hint in get_type_hints(AccuracyRow).items():
        options = [o for each in (get_args(hint) if isinstance(hint, UnionType) else (hint,)) for o in _options(each)]
        properties[name] = {"description": texts[name][0], **(options[0] if len(options) == 1 else {"anyOf": options})}
    row = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": True}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trnspec eval accuracy --format json",
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
        "required": ["rows"],
        "$defs": {"row": row},
    }


def _accuracy_page() -> str:
    """The reference of the rows that ``trnspec eval accuracy`` lists."""
    lines = [
        "# Rows of `trnspec eval accuracy`",
        "",
        "Generated from the class `AccuracyRow` in `trnspec/perf/calibration/score.py`.",
        "",
        "`trnspec eval accuracy --data FILE,FILE --format json` prints an object whose array `rows` has an object for each",
        "measured quantity, and for each row without an estimate. `--format csv` prints the same fields as columns. The interface",
        "is stable: fields are only added. [Its JSON Schema](../../schemas/v1/accuracy.schema.json) is",
        "`schemas/v1/accuracy.schema.json`.",
        "",
        "A table needs no document of kind Measurements; names of files and rows are arbitrary. A row is marked as seen",
        "where the calibration was fitted to a row with the same conditions and the same measured value: `rows` of a calibration",
        "document names them, as lines of a table or by hashes.",
        "",
        "| field | content |",
        "|---|---|",
        *(f"| `{name}` | {text.replace('``', '`')} |" for name, (text, _) in field_docs(AccuracyRow).items()),
    ]
    return "\n".join(lines) + "\n"


def _currency() -> str:
    """How current the shipped catalog is, against its newest edition."""
    edition = names(ROOT / "catalog" / "editions")[-1]
    known = graph()
    own = [c for c in currencies(known, edition) if known.named(c.name).document.file.startswith(str(shipped()))]
    years = sorted({year for c in own for year, _ in c.years})
    total = Counter[str]()
    for each in own:
        total.update(dict(each.years))
    lines = [
        "# Currency of the catalog",
        "",
        "Generated from the documents of the shipped catalog by `docs/generate.py`. `trnspec audit --stale` lists the values whose",
        "newest source is older than 12 months, or than `--older-than 18mo`.",
        "",
        f"The newest edition is {edition}. Ages are in calendar months up to this edition; a source dated by year only has the date",
        "December of that year. The columns of years count values (figures, counts, words) by their newest source: the adopted one,",
        "or a claim that agrees with it. Derived values are computed from other values and have their age. *Not known* lists",
        "attributes without an adopted value that another document of the kind states or claims.",
        "",
        f"All documents: {total.total()} values, "
        + ", ".join(f"{total[y]} with a newest source of {y}" for y in years)
        + ".",
    ]
    for kind in dict.fromkeys(c.kind for c in own):
        heads = ["document", "newest source", "date", "age", *years, "derived", "not known"]
        lines += ["", f"## {kind}", "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        for each in (c for c in own if c.kind == kind):
            counts = [str(dict(each.years).get(year, "")) for year in years]
            unknown = ", ".join(each.unknown) or "-"
            cells = [each.name, each.source, each.as_of, str(each.months), *counts, str(each.derived or ""), unknown]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _options(hint: object) -> list[dict[str, object]]:
    """The schemas of a type: of each of its choices where it has some."""
    if get_origin(hint) is Union:
        return [option for each in get_args(hint) for option in _options(each)]
    if get_origin(hint) is Literal:
        return [{"enum": list(get_args(hint))}]
    return [{"type": {str: "string", float: "number", bool: "boolean", NoneType: "null"}[hint]}]


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _codes() -> str:
    lines = [
        "# Codes",
        "",
        "Generated from the pages in `trnspec/checks/codes/` and the docstrings of the rules; `trnspec explain CODE` prints the same.",
        "",
    ]
    known = registry().codes.values()
    lines += ["| code | name | severity | finding |", "|---|---|---|---|"]
    lines += [f"| [{c.id}](#{c.id.lower()}) | {c.name} | {c.severity.label} | {c.summary} |" for c in known]
    for code in known:
        lines += ["", f'<a id="{code.id.lower()}"></a>', "", f"## {code.id} {code.name}", ""]
        lines += _dedent(code.doc)
    return "\n".join(lines) + "\n"


def _dedent(doc: str) -> list[str]:
    """The sections of an explanation as Markdown: headings for ``Why:``, their contents moved to the margin."""
    lines: list[str] = []
    for line in doc.strip().splitlines():
        if line and not line.startswith(" ") and line.endswith(":"):
            lines += [f"### {line[:-1]}", ""]
        else:
            lines.append(line.removeprefix("    "))
    return lines


def main() -> int:
    """Write the files, or with ``--check`` list those that are not up to date."""
    stale = [f for f, text in files().items() if not f.is_file() or f.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for file in stale:
            print(f"{file.relative_to(ROOT)} is not up to date: run make docs")
        return 1 if stale else 0
    for file in stale:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(files()[file], encoding="utf-8")
        print(f"wrote {file.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
