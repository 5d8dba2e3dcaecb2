"""A chip, its source and a server are written from the messages alone, in at most three rounds of validation."""

import re

from trnspec.diagnostics import Diagnostic
from trnspec.testing import report

NAMES = {"sources/nova-page.yaml": "nova-page", "chips/nova.yaml": "nova", "servers/nova-8.yaml": "nova-8"}
"""What the author knows: the files, their kinds and their names."""


def followed(texts: dict[str, str], findings: tuple[Diagnostic, ...]) -> dict[str, str]:
    """The texts after what each hint says was written, with the names of the author and the first word of a choice."""
    for finding in findings:
        file, hint = finding.where.file, re.sub(r"<([a-z-]+)[^>]*>", r"\1", finding.hint)
        if hint.startswith("name one in metadata.source"):
            texts[file] = re.sub(r"(metadata: \{[^}]*)\}", r"\1, source: nova-page}", texts[file])
            continue
        assert hint.startswith("add "), finding
        added = hint.removeprefix("add ").replace(" and spec: ", "\nspec: ").replace("chip: trainium1", "chip: nova")
        texts[file] += added.replace("name: trainium1", f"name: {NAMES[file]}") + "\n"
    return texts


def test_documents_are_written_from_messages_in_three_rounds() -> None:
    kinds = {"sources": "Source", "chips": "Chip", "servers": "Server"}
    texts = {file: f"kind: {kinds[file.partition('/')[0]]}\n" for file in NAMES}
    counts = []
    for _ in range(3):
        findings = report(texts, plugins=()).diagnostics
        counts.append(len(findings))
        texts = followed(texts, findings)

    assert counts == [6, 1, 0]
