"""Files: what cannot be read, is too large, or is not one document."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

READING: tuple[Code, ...] = (
    Code(
        "TRN001",
        "unreadable-file",
        Severity.ERROR,
        """\
A file that cannot be opened or read.

Why:
    Nothing can be said of what was not read. A run that passed over the file in silence would call a catalog sound
    of which it has seen a part only.

Example:
    ```text
    $ chmod 000 catalog/chips/example.yaml
    $ trnspec validate catalog/chips/example.yaml
    ```

Instead:
    ```text
    $ chmod 644 catalog/chips/example.yaml
    $ trnspec validate catalog/chips/example.yaml
    ```

Source:
    POSIX.1-2017, open(): the errors EACCES, EISDIR, ENOENT and their kin.""",
    ),
    Code(
        "TRN002",
        "wrong-encoding",
        Severity.ERROR,
        """\
A file that is not UTF-8.

Why:
    The same bytes are other characters in another encoding, and a reader that guesses may guess wrong: the micro sign
    of "15 µs" is the byte B5 in Latin-1 and no character at all in UTF-8. A unit that is read wrong is a wrong figure.

Example:
    ```text
    latency: 15 µs        saved as Latin-1: the byte after "15 " is B5
    ```

Instead:
    ```text
    latency: 15 µs        saved as UTF-8: the bytes after "15 " are C2 B5
    ```

Source:
    RFC 3629, section 3; RFC 8259, section 8.1, which asks the same of JSON. YAML 1.2.2, section 5.2, allows UTF-16 and
    UTF-32 too; trnspec does not.""",
    ),
    Code(
        "TRN003",
        "control-character",
        Severity.ERROR,
        """\
A control character, or a byte order mark inside the text.

Why:
    Programs disagree on what they mean: some stop at a NUL, some end a line at U+0085 or U+2028, some drop them. A
    terminal obeys an escape character instead of showing it. They come from broken copies, and YAML forbids most.

Example:
    ```text
    title: AWS<00>Trainium        <00> is the byte 00 (NUL)
    ```

Instead:
    ```text
    title: AWS Trainium
    ```

Source:
    YAML 1.2.2, section 5.1, Character Set; section 5.7 for the escapes that say such a character openly.""",
    ),
    Code(
        "TRN011",
        "excessive-depth",
        Severity.ERROR,
        """\
A nesting that is deeper than any document needs.

Why:
    A program that reads a nesting by calling itself ends when the nesting is too deep. No document of a catalog
    comes near the 64 levels that are read; a file that goes past them is broken, or made to break programs.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[  #! TRN011
      ]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec: {connects: chips}
    ```

Source:
    CWE-674, Uncontrolled Recursion; RFC 8259, section 9, allows a parser to limit the depth.""",
    ),
    Code(
        "TRN012",
        "excessive-size",
        Severity.ERROR,
        """\
A file or a value that is larger than any page of specifications.

Why:
    A file is read as a whole, by hooks and by servers that check what strangers send. Without a budget one file could
    take all their memory. A page of specifications has some 10,000 bytes; the budgets are 1,000,000 bytes for a file,
    100,000 keys and values in it, and 65,536 characters for one value.

Example:
    ```text
    $ wc -c catalog/links/example.yaml
    2000000 catalog/links/example.yaml
    ```

Instead:
    ```text
    $ wc -c catalog/links/*.yaml
     700000 catalog/links/one.yaml
     700000 catalog/links/other.yaml
     600000 catalog/links/third.yaml
    2000000 total
    ```

Source:
    CWE-770, Allocation of Resources Without Limits or Throttling; RFC 8259, section 9, allows a parser such limits.""",
    ),
    Code(
        "TRN013",
        "empty-file",
        Severity.ERROR,
        """\
A file that holds no data.

Why:
    An empty file in a catalog is a document that somebody meant to write, or one that a failed copy cut off. Whoever
    refers to it would be told that the name does not exist.

Example:
    ```yaml
    # The rates are still to be looked up.  #! TRN013
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, note: The rates are still to be looked up.}
    spec: {connects: chips}
    ```

Source:
    YAML 1.2.2, section 9.2, Streams: a stream may hold no document at all.""",
    ),
    Code(
        "TRN014",
        "root-not-mapping",
        Severity.ERROR,
        """\
A file that holds a list or a single value instead of a document.

Why:
    A document says its kind and its name with keys. Of a list of documents only one could have the name of the
    file, and a single value is most often a key whose colon lacks its space.

Example:
    ```yaml
    - api_version: trnspec/v1  #! TRN014
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
    YAML 1.2.2, section 8.2.2, Block Mappings. That a document is a mapping is the choice of trnspec.""",
    ),
    Code(
        "TRN015",
        "second-document",
        Severity.ERROR,
        """\
A second YAML document in one file.

Why:
    Many readers take the first document and drop the others without a word, so that half of the file is checked and
    never used. A file that holds one document can be found by its name.

Example:
    ```yaml
    # file: links/one.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: one, title: Example}
    spec: {connects: chips}
    ---  #! TRN015
    api_version: trnspec/v1
    kind: Link
    metadata: {name: other, title: Example}
    spec: {connects: servers}
    ```

Instead:
    ```yaml
    # file: links/one.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: one, title: Example}
    spec: {connects: chips}
    # file: links/other.yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: other, title: Example}
    spec: {connects: servers}
    ```

Source:
    YAML 1.2.2, section 9.2, Streams, which allows several. That a file holds one is the choice of trnspec.""",
    ),
)
"""The codes of files that cannot be read, or are not one document."""
