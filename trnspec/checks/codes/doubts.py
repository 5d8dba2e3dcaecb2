"""What is read as it stands, and may still be a mistake or mislead another reader."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

DOUBTS: tuple[Code, ...] = (
    Code(
        "TRN050",
        "ambiguous-number",
        Severity.WARNING,
        """\
A number that other programs read otherwise, or whose printed digits are lost.

Why:
    The version 1.10 is read as the number 1.1, and its last digit is gone. The number 010 is ten by YAML 1.2 and
    eight by YAML 1.1. An integer past 2**53 is rounded by every program that holds numbers in double precision.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      version: 1.10  #! TRN050, TRN103
      lanes: {count: 010}  #! TRN050
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects: chips
      version: "1.10"
      lanes: {count: 10}
    ```

Source:
    YAML 1.2.2, section 10.3.2, Tag Resolution; RFC 8259, section 6, Numbers, for 2**53.""",
    ),
    Code(
        "TRN051",
        "byte-order-mark",
        Severity.INFO,
        """\
A byte order mark at the beginning of a file.

Why:
    UTF-8 has one byte order, so the mark says nothing. Programs that do not expect it take it for a part of the first
    key, and files that are joined carry it into the middle of the text, where it is an error.

Example:
    ```text
    $ head -c 8 example.yaml | xxd -g 1
    00000000: ef bb bf 61 70 69 5f 76                          ...api_v
    ```

Instead:
    ```text
    $ head -c 8 example.yaml | xxd -g 1
    00000000: 61 70 69 5f 76 65 72 73                          api_vers
    ```

Source:
    RFC 3629, section 6, Byte order mark (BOM); RFC 8259, section 8.1.""",
    ),
    Code(
        "TRN052",
        "carriage-return",
        Severity.INFO,
        """\
A line that ends with a carriage return alone.

Why:
    YAML takes a carriage return for the end of a line; most other programs do not. An editor or a diff then shows the
    whole file as one line, and the line numbers of a report mean nothing there.

Example:
    ```text
    kind: Link<0D>metadata: ...        <0D> is the byte 0D (carriage return)
    ```

Instead:
    ```text
    kind: Link<0A>metadata: ...        <0A> is the byte 0A (line feed)
    ```

Source:
    YAML 1.2.2, section 5.4, Line Break Characters; POSIX.1-2017, Base Definitions, 3.206 Line.""",
    ),
    Code(
        "TRN053",
        "no-final-newline",
        Severity.INFO,
        """\
A last line without a line end.

Why:
    Many tools count and join lines by their ends. When such a file is joined with another, its last value and the first
    key of the other become one line; and whoever adds a line changes two in the diff.

Example:
    ```text
    $ tail -c 6 example.yaml | xxd -g 1
    00000000: 63 68 69 70 73 7d                                chips}
    ```

Instead:
    ```text
    $ tail -c 6 example.yaml | xxd -g 1
    00000000: 68 69 70 73 7d 0a                                hips}.
    ```

Source:
    POSIX.1-2017, Base Definitions, 3.206 Line and 3.195 Incomplete Line.""",
    ),
    Code(
        "TRN054",
        "invisible-character",
        Severity.WARNING,
        """\
A character that cannot be seen, or that reorders the text on the screen.

Why:
    Two texts that look the same are then two texts: a name with a zero width space in it is found by nobody, and a
    figure that was copied from a web page with a no-break space before its unit is refused for no visible reason.
    Characters that reverse the order of writing can show a figure that is not the one in the file.

Example:
    A no-break space stands before "link" and before "us":
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: Example\N{NO-BREAK SPACE}link  #! TRN054
    spec:
      connects: chips
      latency: {value: 15\N{NO-BREAK SPACE}us, source: neuron-trn1-2026-08}  #! TRN054, TRN113
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: Example link
    spec:
      connects: chips
      latency: {value: 15 us, source: neuron-trn1-2026-08}
    ```

Source:
    Unicode Technical Report 36, Unicode Security Considerations; Unicode Technical Standard 39, Unicode Security
    Mechanisms; CVE-2021-42574 for characters that reorder source text.""",
    ),
    Code(
        "TRN055",
        "confusable-keys",
        Severity.WARNING,
        """\
Two keys of one mapping that differ, but look the same.

Why:
    The micro sign and the Greek letter mu look alike and are two characters; so are an accented letter and the same
    letter with a combining accent. A reader sees one key twice, and a program finds only the one it was given.

Example:
    The first key has a micro sign, the second the Greek letter:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      other:
        in_\N{MICRO SIGN}s: 15 us
        in_\N{GREEK SMALL LETTER MU}s: 20 us  #! TRN055
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      other:
        one_hop: 15 us
        two_hops: 20 us
    ```

Source:
    Unicode Standard Annex 15, Unicode Normalization Forms; Unicode Technical Standard 39, Unicode Security
    Mechanisms.""",
    ),
    Code(
        "TRN056",
        "space-before-colon",
        Severity.INFO,
        """\
A space between a key and its colon.

Why:
    YAML drops the space, so nothing is lost; but a search for "name:" does not find the line, and a plain script
    that works line by line may take the space for a part of the key.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec:
      connects : chips  #! TRN056
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
    YAML 1.2.2, section 8.2.2, Block Mappings, which allows the space. That it is reported is the choice of trnspec.""",
    ),
    Code(
        "TRN057",
        "former-path",
        Severity.INFO,
        """\
An attribute at the path that it had in an earlier version.

Why:
    The document is read as if it used the present path, and the exit status stays 0. Queries,
    exports and other documents use the present path alone, and a search for it does not find this line. Two paths
    changed: the network between servers of any technology was "efa", with its NICs as "cards"; and the bandwidth of
    a fabric was one figure, both directions added, where it now has per_direction and both, as that of a link.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Server
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      chips: {chip: trainium1, count: 16}
      efa: {cards: 8}  #! TRN057
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
    JSON Schema 2020-12, Validation, section 9.3, deprecated, which the schemas set for these keys.""",
    ),
)
"""The codes of what is read and may be a mistake all the same."""
