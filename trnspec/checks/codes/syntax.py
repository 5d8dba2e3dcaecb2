"""YAML: what is refused of it, so that every reader sees the same data."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

SYNTAX: tuple[Code, ...] = (
    Code(
        "TRN004",
        "syntax-error",
        Severity.ERROR,
        """\
A text that is not YAML.

Why:
    What follows a mistake of syntax can be read in several ways, so nothing of the file is used. The usual causes
    are a colon inside a value, a quote that is never closed, a tab for indentation and a missing space after a
    colon; the message names the one at hand.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: The example: a link  #! TRN004
    spec: {connects: chips}
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: "The example: a link"
    spec: {connects: chips}
    ```

Source:
    YAML 1.2.2, section 7.3.3, Plain Style, for the colon; section 6.1, Indentation Spaces, for the tab.""",
    ),
    Code(
        "TRN005",
        "duplicate-key",
        Severity.ERROR,
        """\
A key that stands twice in one mapping.

Why:
    One of the two values is lost, and which one depends on the program that reads the file. A rate that is
    corrected by adding a line is then corrected for some readers only.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      note: Both directions are added.
      note: One direction is printed.  #! TRN005
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      note: One direction is printed.
    ```

Source:
    YAML 1.2.2, section 3.2.1.1, Nodes: the keys of a mapping are unique; RFC 7493 (I-JSON), section 2.3.""",
    ),
    Code(
        "TRN006",
        "anchor-or-alias",
        Severity.ERROR,
        """\
An anchor or an alias.

Why:
    An alias makes one figure follow another in silence: whoever corrects the first changes the second too, without
    a source for it. JSON has no word for them, so that other programs see another document than the editor does. A
    few lines of aliases can also grow to billions of values.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth:
        per_direction: &rate 128 GB/s  #! TRN006
        both: *rate  #! TRN006
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth:
        per_direction: 128 GB/s
        both: 256 GB/s
    ```

Source:
    YAML 1.2.2, section 3.2.2.2, Anchors and Aliases; CWE-776 tells of the same growth in XML.""",
    ),
    Code(
        "TRN007",
        "merge-key",
        Severity.ERROR,
        """\
A merge key.

Why:
    Merge keys belong to YAML 1.1: some readers of YAML 1.2 obey them, others give a mapping with a key named "<<".
    What a document says must not depend on who reads it.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      bandwidth:
        <<: {both: 256 GB/s}  #! TRN007
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth:
        both: 256 GB/s
    ```

Source:
    Merge Key Language-Independent Type for YAML Version 1.1, a draft of 2005 that YAML 1.2.2 does not contain.""",
    ),
    Code(
        "TRN008",
        "explicit-tag",
        Severity.ERROR,
        """\
A tag that sets the type of a value.

Why:
    A tag may stand for any type a program knows, and some loaders make objects or run code for it. The types of a
    catalog are told by its schema, and a text in quotes is a text without a tag.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      version: !!str 2  #! TRN008
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      version: "2"
    ```

Source:
    YAML 1.2.2, section 6.9.1, Node Tags; CWE-502, Deserialization of Untrusted Data.""",
    ),
    Code(
        "TRN009",
        "non-text-key",
        Severity.ERROR,
        """\
A key that is not a text.

Why:
    JSON has keys that are texts and no others. A program that turns the number 8 into a key may write "8", "8.0" or
    refuse, and then finds the value no more.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      other:
        8: 128 GB/s  #! TRN009
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      other:
        lanes_8: 128 GB/s
    ```

Source:
    RFC 8259, section 4, Objects: a name is a string; YAML 1.2.2, section 10.2, JSON Schema.""",
    ),
    Code(
        "TRN010",
        "unrepresentable-number",
        Severity.ERROR,
        """\
A number that other programs cannot hold: infinite, not a number, or past 64 bits.

Why:
    JSON has no infinity and no NaN, and most programs hold numbers in 64 bits. Such a number becomes another one on
    its way, or ends the program that reads it. An unknown figure is left out; it is never infinite.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      latency: .inf  #! TRN010
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
    RFC 8259, section 6, Numbers; RFC 7493 (I-JSON), section 2.2; IEEE 754-2019 for the range of double precision.""",
    ),
    Code(
        "TRN016",
        "yaml-directive",
        Severity.ERROR,
        """\
A directive, such as a version of YAML other than 1.2.

Why:
    By YAML 1.1 the word "no" is false, 010 is eight and 12:30 is 750. A directive that asks for it would give the
    same lines another meaning, and programs differ on whether they obey. A directive that names tags has no use
    where tags are refused.

Example:
    ```yaml
    %YAML 1.1  #! TRN016
    ---
    api_version: trnspec/v1
    kind: Link
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
    YAML 1.2.2, section 6.8, Directives.""",
    ),
)
"""The codes of YAML that is refused."""
