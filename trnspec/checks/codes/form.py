"""The form of a document: its kind, its keys, and the types of their values."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

FORM: tuple[Code, ...] = (
    Code(
        "TRN101",
        "unknown-key",
        Severity.ERROR,
        """\
A key that documents of this kind do not have.

Why:
    A key that nobody reads is a figure that nobody checks: one misspelt letter, and the rate is missing everywhere
    without a word. So a document may have the keys of its schema and no others.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwith: {both: 256 GB/s}  #! TRN101
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {both: 256 GB/s}
    ```

Source:
    JSON Schema 2020-12, Core, section 10.3.2.3, additionalProperties.""",
    ),
    Code(
        "TRN102",
        "missing-field",
        Severity.ERROR,
        """\
A key that every document of this kind must have, and that is not there.

Why:
    What every document of a kind has, other documents and totals rely on: names lead to it, figures are computed
    from it. A document without it cannot be used, nor can what refers to it.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:  #! TRN102
      technology: PCIe Gen5
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      technology: PCIe Gen5
    ```

Source:
    JSON Schema 2020-12, Validation, section 6.5.3, required.""",
    ),
    Code(
        "TRN103",
        "wrong-type",
        Severity.ERROR,
        """\
A value of another type than its place takes.

Why:
    A text where a list is meant, or a number where a text is meant, is read differently by every program: one takes
    the first letter for the first item, another stops. A key without a value is null, which says nothing; leave the
    key out instead.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: Example
      aliases: example-link  #! TRN103
    spec:
      connects: chips
      lanes: {count: "8"}  #! TRN103
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: Example
      aliases: [example-link]
    spec:
      connects: chips
      lanes: {count: 8}
    ```

Source:
    JSON Schema 2020-12, Validation, section 6.1.1, type. trnspec is stricter in one point: 8.0 is no whole number.""",
    ),
    Code(
        "TRN104",
        "unknown-word",
        Severity.ERROR,
        """\
A word that is not one of those its place takes.

Why:
    Programs decide by these words: whether a link joins chips or servers, how near a source stands to the hardware.
    With a word that they do not know they can decide nothing, or decide by chance.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chip  #! TRN104
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
    ```

Source:
    JSON Schema 2020-12, Validation, sections 6.1.2, enum, and 6.1.3, const.""",
    ),
    Code(
        "TRN105",
        "malformed-text",
        Severity.ERROR,
        """\
A text that does not have the form its place takes: a name, a date, a path, a code.

Why:
    Names are typed on command lines and are names of files, so they are kept to characters that are safe in both.
    Dates are compared as texts, which works in one form only: 13.02.2024 would come before every date of this
    century.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Source
    metadata: {name: example, title: Example}
    spec:
      publisher: Somebody
      as_of: 13.02.2024  #! TRN105
      rank: third-party
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Source
    metadata: {name: example, title: Example}
    spec:
      publisher: Somebody
      as_of: 2024-02-13
      rank: third-party
    ```

Source:
    JSON Schema 2020-12, Validation, section 6.3.3, pattern; ISO 8601-1:2019 for calendar dates.""",
    ),
    Code(
        "TRN106",
        "out-of-bounds",
        Severity.ERROR,
        """\
A number below the least that its place takes.

Why:
    A count of 0 or less is no count of anything: totals that are multiplied by it vanish, and rates that are
    divided by it become infinite. What is not there is left out.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      lanes: {count: 0}  #! TRN106
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
    ```

Source:
    JSON Schema 2020-12, Validation, section 6.2.4, minimum.""",
    ),
    Code(
        "TRN107",
        "unknown-kind",
        Severity.ERROR,
        """\
A kind of document, or a version of the format, that is not known.

Why:
    The kind tells which keys a document has and what they mean. Without it no other line of the file can be
    checked, and a document of another version may use the same key for another thing.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Links  #! TRN107
    metadata: {name: example, title: Example}
    spec: {connects: chips}
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec: {connects: chips}
    ```

Source:
    JSON Schema 2020-12, Validation, section 6.1.3, const; the habit of Kubernetes to begin with version and kind.""",
    ),
    Code(
        "TRN108",
        "both-paths",
        Severity.ERROR,
        """\
An attribute that is given twice, by its present path and by a former one.

Why:
    A former path is read as the present one, so the document has two values for one attribute. Even where both are
    the same, the next change is made to one of them only.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      chips: {chip: trainium1, count: 16}
      network: {nics: 8}
      efa: {cards: 16}  #! TRN108
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      chips: {chip: trainium1, count: 16}
      network: {nics: 8}
    ```

Source:
    JSON Schema 2020-12, Validation, section 9.3, deprecated: a deprecated key is still read.""",
    ),
    Code(
        "TRN190",
        "structure-mismatch",
        Severity.ERROR,
        """\
A document that the schema allows and the class of its kind refuses.

Why:
    The schema and the class are one definition told twice, to editors and to programs. When they part, a file that
    an editor calls sound is refused. The mistake is in trnspec, or in the plugin that gives the kind, and not in
    the document.

Example:
    A plugin gives a kind whose class knows more than its schema can say:
    ```python
    @frozen(kw_only=True)
    class Cable:
        metres: Count

        def __attrs_post_init__(self):
            if self.metres > 10:  # the schema knows nothing of this
                raise ValueError("a cable has at most 10 metres")
    ```

Instead:
    A rule says it, with a place and a hint:
    ```python
    @frozen(kw_only=True)
    class Cable:
        metres: Count


    @rule("XYZ001", "long-cable", over=Cable)
    def long_cable(node, graph):
        \"\"\"A cable of more than 10 metres.\"\"\"
        if node.spec.metres > 10:
            yield Finding(("spec", "metres"), "a cable has at most 10 metres")
    ```

Source:
    The design of trnspec: the schema of a kind is written from its class.""",
    ),
)
"""The codes of keys, types, words and texts."""
