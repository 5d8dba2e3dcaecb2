"""The commands of trnspec, told where it costs nothing to read: each is a module of its own in ``trnspec.cli``."""

from __future__ import annotations

COMMANDS = {
    "validate": "Check catalog files and everything they take part in.",
    "audit": "Print every disagreement of the catalog, recorded or found.",
    "list": "List the documents of a kind, or of all kinds.",
    "show": "Print every figure of a document with source, date and rivals.",
    "compare": "Print documents side by side, with ratios.",
    "source": "Print everything that rests on a source.",
    "tree": "Print what a system is built of, down to the engines.",
    "diff": "Tell what changed from A to B: documents, figures, counts, words, and why.",
    "edition": "Freeze the catalog, list its editions, verify that none was altered.",
    "eval": "Evaluate: step times, costs and whatever else the evaluators answer.",
    "calibrate": "Fit what is achieved on a chip to published measurements.",
    "query": "Print the documents of a kind that fulfil a condition.",
    "sql": "Ask the tables of the catalog in SQL.",
    "export": "Convert a document to the format of another program, or to a picture.",
    "plugin": "List the installed plugins and their status; create a new one.",
    "schema": "Print the JSON Schema of a kind of document.",
    "explain": "Explain a code, or list the fields of a kind of document.",
    "completion": "Print the completion script of a shell.",
}
"""The commands with what ``--help`` says of each, so that it need not import them."""
