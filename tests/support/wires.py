"""A document that is sound, one that is not, and what is found in that."""

from __future__ import annotations

import json

SOUND = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: A wire}\nspec: {connects: chips}\n"
WRONG = SOUND.replace("spec:", "spce:")
MARKS = {("TRN101", 4), ("TRN102", 1)}


def marks(text: str) -> set[tuple[str, int]]:
    """The (code, line) of a report in JSON."""
    return {(d["code"], d["line"]) for d in json.loads(text)["diagnostics"]}
