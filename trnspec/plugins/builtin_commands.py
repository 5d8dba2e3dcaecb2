"""The built-in commands with their summaries; each is a module of ``trnspec.cli``, which is not imported here."""

from __future__ import annotations

GROUPS = {
    "Validate": {
        "validate": "Check catalog files and all documents that refer to them.",
        "fmt": "Format documents: order of keys, indentation and spacing.",
        "fix": "Apply the safe hints of findings: misspelt keys and units, missing sources, former paths, idle waivers.",
        "baseline": "Write the present findings to a file, so that only new ones are reported.",
        "explain": "Explain a code, or list the fields of a kind of document.",
    },
    "Query": {
        "list": "List the documents of a kind, or of all kinds.",
        "show": "Print every figure of a document with interval, source and date.",
        "compare": "Print documents side by side, with ratios.",
        "check": "Compare a value with a figure of the catalog.",
        "audit": "Compare what sources state of the same figures; compare a machine with the catalog.",
        "tree": "Print the parts of a system, down to the engines.",
        "query": "Print the documents of a kind that satisfy a condition.",
        "sql": "Query the tables of the catalog in SQL.",
        "diff": "Print the differences between two catalogs, dates or editions.",
        "source": "Print all values that come from a source.",
    },
    "Plan": {
        "eval": "Run an evaluator: step time, serving latency, memory, cost and more.",
        "search": "Search for the best layout of training, or deployment for serving; in parts, on many machines.",
        "plan": "Plan a run: which system, how many, how long, at what cost.",
        "run": "Evaluate the scenarios of a file, and compare them.",
        "plot": "Draw a chart: rooflines, breakdowns, plans, the history of a figure, a topology.",
        "calibrate": "Fit achieved efficiencies of a chip to measurements; import these from logs and result files.",
        "measure": "Measure kernels and collectives of an accelerator, and compare them with its figures.",
    },
    "Extend": {
        "new": "Write a new document of any kind, from options or prompts; a model from its config.json.",
        "plugin": "List the installed plugins and their status; create a new one.",
        "schema": "Print the JSON Schema of a kind of document.",
        "export": "Print a document in the format of another program, or as a picture.",
        "site": "Write the catalog as web pages that work without a server.",
        "edition": "Freeze the catalog, list its editions, verify that none was altered.",
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
