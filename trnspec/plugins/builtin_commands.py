"""The built-in commands: each is a module of its own in ``trnspec.cli``, imported when it is called."""

from __future__ import annotations

COMMANDS = {
    "validate": "Check catalog files and everything that refers to them.",
    "audit": "List every disagreement in the catalog, recorded or computed.",
    "list": "List the documents of a kind, or of all kinds.",
    "show": "Print every figure of a document with source, date and conflicting values.",
    "compare": "Print documents side by side, with ratios.",
    "source": "Print every figure that cites a source.",
    "tree": "Print the parts of a system, down to the engines.",
    "diff": "Print what changed from A to B, and according to which source.",
    "edition": "Freeze the catalog, list its editions, verify their integrity.",
    "eval": "Run an evaluator: training, memory, inference, search, ...",
    "calibrate": "Fit achieved efficiencies of a chip to published measurements.",
    "query": "Print the documents of a kind that satisfy a condition.",
    "sql": "Query the catalog tables in SQL.",
    "export": "Print a document in the format of another program, or as a picture.",
    "plugin": "List plugins and their status; create a new plugin.",
    "schema": "Print the JSON Schema of a kind of document.",
    "explain": "Explain a code, or list the fields of a kind.",
    "completion": "Print the completion script of a shell.",
}
"""The commands with their summaries, so that ``--help`` imports none of them."""
