"""The built-in commands with their summaries; each is a module of ``trnspec.cli``, which is not imported here."""

from __future__ import annotations

GROUPS = {
    "Validate": {
        "validate": "Check catalog files and all documents that refer to them.",
        "fmt": "Format documents: order of keys, indentation and spacing.",
        "fix": "Apply the safe hints of findings; migrate former formats.",
        "baseline": "Write the present findings to a file, to report only new ones.",
        "explain": "Explain a code, or list the fields of a kind of document.",
    },
    "Query": {
        "list": "List the documents of a kind, or of all kinds.",
        "show": "Print every figure of a document with interval, source and date.",
        "compare": "Print documents side by side, with ratios.",
        "check": "Compare a value with a figure of the catalog.",
        "audit": "Compare what sources state of a figure; compare a machine.",
        "tree": "Print the parts of a system, down to the engines.",
        "query": "Print the documents of a kind that satisfy a condition.",
        "sql": "Query the tables of the catalog in SQL.",
        "diff": "Print the differences between two catalogs, dates or editions.",
        "source": "Print all values that come from a source.",
    },
    "Plan": {
        "eval": "Run an evaluator: step time, serving latency, memory, cost.",
        "search": "Search for the best layout of training or of serving.",
        "plan": "Plan a run: which system, how many, how long, at what cost.",
        "run": "Evaluate the scenarios of a file, and compare them.",
        "plot": "Draw a chart: rooflines, breakdowns, plans, histories, fabrics.",
        "calibrate": "Fit achieved efficiencies of a chip to measurements.",
        "measure": "Measure kernels and collectives of an accelerator.",
    },
    "Extend": {
        "new": "Write a new document of any kind, from options or prompts.",
        "plugin": "List the installed plugins and their status; create a new one.",
        "schema": "Print the JSON Schema of a kind of document.",
        "export": "Print a document in the format of another program.",
        "site": "Write the catalog as web pages that work without a server.",
        "edition": "Freeze the catalog, list and verify its editions.",
        "lsp": "Start the language server, for editors.",
        "mcp": "Start the MCP server, for agents.",
    },
}
"""Summaries by group and name, as ``--help`` lists them without an import of a command."""

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
"""Summaries by name."""

FORMER = {
    "watch": "validate --watch",
    "migrate": "fix",
    "measurements": "calibrate",
    "completion": "",  # by a variable of click
}
"""Present forms of former commands; the former names work for one release."""
