"""Names and references among documents."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

LINKING: tuple[Code, ...] = (
    Code(
        "TRN201",
        "dangling-reference",
        Severity.ERROR,
        """\
A name that no document has.

Why:
    A server whose chip does not exist has no rates, no memory and no totals. The name is most often misspelt, or
    the document was renamed and this one was not.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example}
    spec:
      chips: {chip: no-such-chip, count: 16}  #! TRN201
    ```

Instead:
    ```yaml
    # file: servers/example.yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example}
    spec:
      chips: {chip: example-chip, count: 16}
    # file: chips/example-chip.yaml
    api_version: trnspec/v1
    kind: Chip
    metadata: {name: example-chip, title: Example, source: neuron-trn1-2026-08}
    spec:
      peak: {dense: {bf16: 100 TFLOPS}}
      memory: {capacity: 16 GiB}
    ```

Source:
    ISO/IEC 9075-2 (SQL), referential constraints: what is referred to exists.""",
    ),
    Code(
        "TRN202",
        "wrong-kind-reference",
        Severity.ERROR,
        """\
A name that leads to a document of another kind.

Why:
    A link has other figures than a chip, under other keys, so nothing that is computed from such a reference can be
    right. It happens where names are alike: that of a server and that of its chip, for instance.

Example:
    ```yaml
    # file: links/one.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: one, title: Example}
    spec: {connects: chips}
    # file: servers/example.yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example}
    spec:
      chips: {chip: one, count: 16}  #! TRN202
    ```

Instead:
    ```yaml
    # file: chips/one.yaml
    api_version: trnspec/v1
    kind: Chip
    metadata: {name: one, title: Example, source: neuron-trn1-2026-08}
    spec:
      peak: {dense: {bf16: 100 TFLOPS}}
      memory: {capacity: 16 GiB}
    # file: servers/example.yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example}
    spec:
      chips: {chip: one, count: 16}
    ```

Source:
    The design of trnspec: a reference has a type, Ref[Chip], and what it leads to is of that type.""",
    ),
    Code(
        "TRN203",
        "unusable-reference",
        Severity.ERROR,
        """\
A name of a document that has too many errors to be used.

Why:
    The document exists, so the name is right; but it lacks what it must have, and everything that is computed from
    it stays unchecked. It is reported here too, so that nobody takes this file for sound. Mend the other one first.

Example:
    ```yaml
    # file: chips/one.yaml
    api_version: trnspec/v1
    kind: Chip
    metadata: {name: one, title: Example, source: neuron-trn1-2026-08}
    spec:  #! TRN102
      peak: {dense: {bf16: 100 TFLOPS}}
    # file: servers/example.yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example}
    spec:
      chips: {chip: one, count: 16}  #! TRN203
    ```

Instead:
    ```yaml
    # file: chips/one.yaml
    api_version: trnspec/v1
    kind: Chip
    metadata: {name: one, title: Example, source: neuron-trn1-2026-08}
    spec:
      peak: {dense: {bf16: 100 TFLOPS}}
      memory: {capacity: 16 GiB}
    # file: servers/example.yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example}
    spec:
      chips: {chip: one, count: 16}
    ```

Source:
    The design of trnspec: every stage reports, and passes on what is sound.""",
    ),
    Code(
        "TRN204",
        "name-taken",
        Severity.ERROR,
        """\
A name or an alias that another document has already.

Why:
    A reference by that name could mean either, and which one it finds would depend on the order in which the files
    are read. Names and aliases share one space, across all kinds. A document of a plugin may take the place of a
    shipped one of the same name when its `metadata.overrides` lists every place where the two differ.

Example:
    ```yaml
    # file: links/one.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: one, title: Example, aliases: [first]}
    spec: {connects: chips}
    # file: links/other.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: other, title: Example, aliases: [first]}  #! TRN204
    spec: {connects: servers}
    ```

Instead:
    ```yaml
    # file: links/one.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: one, title: Example, aliases: [first]}
    spec: {connects: chips}
    # file: links/other.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: other, title: Example, aliases: [second]}
    spec: {connects: servers}
    ```

Source:
    ISO/IEC 9075-2 (SQL), unique constraints: a key names one row.""",
    ),
)
"""The codes of names and references."""
