"""Generates the JSON Schemas and the reference page of all codes.

``python docs/generate.py --check`` writes nothing and fails if a file is not up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from trnspec.api import registry
from trnspec.model.json_schema import document_schema

ROOT = Path(__file__).resolve().parent.parent


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    known = registry()
    generated = {
        ROOT / "schemas" / "v1" / f"{kind.name.lower()}.schema.json": _json(document_schema(kind.name, kind.spec))
        for kind in known.kinds.values()
    }
    generated[ROOT / "docs" / "reference" / "codes.md"] = _codes()
    return generated


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
