"""Findings of small invalid documents: the table of ``test_schema_check``."""

from __future__ import annotations

Found = tuple[str, int, int, str, str]
"""Code, line, column, message, hint."""

NAME = "a name of lower-case letters, digits, '.' and '-', such as trn2.48xlarge"
PATH = "a path such as spec.memory.bandwidth or spec.peak.dense.{bf16,fp16}"

# After the first three lines: what the fourth line says, and what is reported about it.
TABLE: list[tuple[str, str, list[Found]]] = [
    (
        "unknown key with a near one",
        "spec: {connects: chips, bandwith: {both: 256 GB/s}}",
        [("TRN101", 4, 25, "unknown key 'bandwith' in spec", "did you mean 'bandwidth'?")],
    ),
    (
        "unknown key with none near",
        "spec: {connects: chips, lanes: {count: 8, x: 1}}",
        [("TRN101", 4, 43, "unknown key 'x' in spec.lanes", "one of count, rate")],
    ),
    (
        "unknown key of a figure",
        "spec: {connects: chips, latency: {value: 15 us, sources: x}}",
        [("TRN101", 4, 49, "unknown key 'sources' in spec.latency", "did you mean 'source'?")],
    ),
    (
        "unknown key of the document",
        "spec: {connects: chips}\nclaim: []",
        [("TRN101", 5, 1, "unknown key 'claim' in the document", "did you mean 'claims'?")],
    ),
    (
        "two unknown keys",
        "spec: {connects: chips, q: 1, z: 2}",
        [
            (
                "TRN101",
                4,
                column,
                f"unknown key '{key}' in spec",
                "one of connects, version, technology, lanes, bandwidth, latency, in_network_reduction, note, other",
            )
            for column, key in ((25, "q"), (31, "z"))
        ],
    ),
    (
        "missing key",
        "spec: {version: v1}",
        [("TRN102", 4, 1, "spec has no 'connects'", "add connects: What the link connects.")],
    ),
    (
        "missing spec",
        "claims: []",
        [
            ("TRN102", 1, 1, "the document has no 'spec'", "add spec: {connects: <chips | servers>}"),
        ],
    ),
    (
        "missing keys of a claim, each stated once",
        "spec: {connects: chips}\nclaims:\n  - {at: spec.latency}",
        [
            (
                "TRN102",
                6,
                5,
                "claims.0 has no 'says'",
                "add says: The value as printed: a figure with its unit, a count or a word.",
            ),
            (
                "TRN102",
                6,
                5,
                "claims.0 has no 'source'",
                "add source: the name of a Source, such as neuron-trn1-2023-02",
            ),
        ],
    ),
    (
        "missing value of a figure",
        "spec: {connects: chips, latency: {note: x}}",
        [
            (
                "TRN102",
                4,
                25,
                "spec.latency has no 'value'",
                "add value: The quantity as printed, with its unit.",
            )
        ],
    ),
    (
        "text for a mapping",
        "spec: {connects: chips, lanes: eight}",
        [("TRN103", 4, 32, "'eight' at spec.lanes is not a mapping", "write keys such as count:, rate:")],
    ),
    (
        "null for a mapping",
        "spec:",
        [
            (
                "TRN103",
                4,
                6,
                "null at spec is not a mapping",
                "null is not a value: write one, or leave the key out",
            ),
            ("TRN102", 4, 6, "spec has no 'connects'", "add connects: What the link connects."),
        ],
    ),
    (
        "mapping for a list",
        "spec: {connects: chips}\nclaims: {at: spec.latency}",
        [("TRN103", 5, 9, "a mapping at claims is not a list", "write a list")],
    ),
    (
        "text for a mapping in a list",
        "spec: {connects: chips}\nclaims: [x]",
        [("TRN103", 5, 10, "'x' at claims.0 is not a mapping", "write keys such as at:, says:, source:")],
    ),
    (
        "text for a mapping of names",
        "spec: {connects: chips, other: none}",
        [("TRN103", 4, 32, "'none' at spec.other is not a mapping", "write a mapping")],
    ),
    (
        "number for a text",
        "spec: {connects: chips, version: 2}",
        [("TRN103", 4, 34, "2 at spec.version is not a text", "write it in quotes")],
    ),
    (
        "flag for a text",
        "spec: {connects: chips, note: true}",
        [("TRN103", 4, 31, "true at spec.note is not a text", "write it in quotes")],
    ),
    (
        "text for a count",
        'spec: {connects: chips, lanes: {count: "8"}}',
        [("TRN103", 4, 40, "'8' at spec.lanes.count is not a whole number", "write it without quotes")],
    ),
    (
        "flag for a count",
        "spec: {connects: chips, lanes: {count: true}}",
        [("TRN103", 4, 40, "true at spec.lanes.count is not a whole number", "write a whole number")],
    ),
    (
        "number for a name",
        "spec: {connects: chips, latency: {value: 15 us, source: 2024}}",
        [("TRN103", 4, 57, "2024 at spec.latency.source is not the name of a Source", "write it in quotes")],
    ),
    (
        "list for a figure",
        "spec: {connects: chips, latency: [15 us]}",
        [
            (
                "TRN103",
                4,
                34,
                "a list at spec.latency is not a figure",
                'write one number, one space and a unit, such as "820 us"',
            )
        ],
    ),
    (
        "null for a figure",
        "spec: {connects: chips, latency: ~}",
        [
            (
                "TRN103",
                4,
                34,
                "null at spec.latency is not a figure",
                'write one number, one space and a unit, such as "820 us"',
            )
        ],
    ),
    (
        "neither a count nor a text",
        "spec: {connects: chips}\nclaims: [{at: spec.latency, says: 3.5, source: x}]",
        [("TRN103", 5, 35, "3.5 at claims.0.says is not a whole number or a text", "write a whole number or a text")],
    ),
    (
        "a long text",
        f"spec: {{connects: chips, lanes: {'x' * 60}}}",
        [("TRN103", 4, 32, f"'{'x' * 46}... at spec.lanes is not a mapping", "write keys such as count:, rate:")],
    ),
    (
        "word that is none of the words",
        "spec: {connects: chip}",
        [("TRN104", 4, 18, "'chip' at spec.connects is not one of chips, servers", "did you mean 'chips'?")],
    ),
    (
        "word far from every one",
        "spec: {connects: everything}",
        [("TRN104", 4, 18, "'everything' at spec.connects is not one of chips, servers", "known: chips, servers")],
    ),
    (
        "number for a word",
        "spec: {connects: 5}",
        [("TRN104", 4, 18, "5 at spec.connects is not one of chips, servers", "write one of chips, servers")],
    ),
    (
        "malformed name",
        "spec: {connects: chips, latency: {value: 15 us, source: Neuron_Page}}",
        [("TRN105", 4, 57, f"'Neuron_Page' at spec.latency.source is not {NAME}", "write 'neuron-page'")],
    ),
    (
        "empty text",
        'spec: {connects: chips, note: " "}',
        [("TRN105", 4, 31, "' ' at spec.note is not a text that is not empty", "write a text that is not empty")],
    ),
    (
        "malformed path",
        "spec: {connects: chips}\nclaims: [{at: latency, says: 3 us, source: x}]",
        [("TRN105", 5, 15, f"'latency' at claims.0.at is not {PATH}", f"write {PATH}")],
    ),
    (
        "a line break after a name",
        'spec: {connects: chips, latency: {value: 15 us, source: "x\\n"}}',
        [("TRN105", 4, 57, rf"'x\n' at spec.latency.source is not {NAME}", "write 'x'")],
    ),
    (
        "count below the least",
        "spec: {connects: chips, lanes: {count: 0}}",
        [("TRN106", 4, 40, "0 at spec.lanes.count is not at least 1", "write a number of at least 1")],
    ),
    (
        "figure without a unit, a number",
        "spec: {connects: chips, latency: 15}",
        [("TRN110", 4, 34, "the figure 15 at spec.latency has no unit", 'write a text, such as "15 us"')],
    ),
    (
        "figure without a unit, in base units",
        "spec: {connects: chips, latency: 15e9}",
        [("TRN110", 4, 34, "the figure 15000000000 at spec.latency has no unit", 'write a text, such as "820 us"')],
    ),
    (
        "figure without a unit, a text",
        'spec: {connects: chips, latency: "15"}',
        [("TRN110", 4, 34, '"15" has no unit (at spec.latency)', "units of time: us, s, ms, ns")],
    ),
    (
        "value without a unit",
        "spec: {connects: chips, latency: {value: 15}}",
        [("TRN110", 4, 42, "the figure 15 at spec.latency.value has no unit", 'write a text, such as "15 us"')],
    ),
    (
        "unknown unit",
        "spec: {connects: chips, bandwidth: {both: 256 GBPs}}",
        [
            (
                "TRN111",
                4,
                43,
                '"256 GBPs": unknown unit "GBPs" (at spec.bandwidth.both)',
                'did you mean "GB/s" (1,000,000,000 B/s) or "GiB/s" (1,073,741,824 B/s)?',
            )
        ],
    ),
    (
        "unit of something else",
        "spec: {connects: chips, bandwidth: {both: 256 GB}}",
        [
            (
                "TRN112",
                4,
                43,
                (
                    '"256 GB": GB measures information (base unit B), but bandwidth (base unit B/s) is expected, '
                    "such as GB/s (at spec.bandwidth.both)"
                ),
                "did you mean 256 GB/s?",
            )
        ],
    ),
    (
        "unit of something else in a value",
        "spec: {connects: chips, latency: {value: 15 GB, note: x}}",
        [
            (
                "TRN112",
                4,
                42,
                (
                    '"15 GB": GB measures information (base unit B), but time (base unit s) is expected, '
                    "such as us (at spec.latency.value)"
                ),
                "units of time: us, s, ms, ns",
            )
        ],
    ),
    (
        "no figure at all",
        "spec: {connects: chips, other: {speed: fast}}",
        [
            (
                "TRN113",
                4,
                40,
                '"fast" does not start with a number (at spec.other.speed)',
                'write one number, one space and a unit, such as "820 GB/s"',
            )
        ],
    ),
    (
        "malformed figure",
        "spec: {connects: chips, latency: 15us}",
        [
            (
                "TRN113",
                4,
                34,
                '"15us": exactly one space is expected between number and unit (at spec.latency)',
                'write "15 us"',
            )
        ],
    ),
]
