"""trnspec.checks.rules.names: names of documents, files and families."""

import attrs
import pytest

from tests.support.rules import findings, shipped
from trnspec.graph.graph import Graph


def lying_in(file: str) -> Graph:
    node = shipped().named("trn1.32xlarge")
    return Graph({node.name: attrs.evolve(node, document=attrs.evolve(node.document, file=file))})


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        *((name, "") for name in ("trn1.32xlarge.yaml", "servers/trn1.32xlarge.yaml", "/a/b.c/trn1.32xlarge.yml")),
        *((name, "") for name in ("<stdin>", "trn1.32xlarge", "somewhere.txt")),
        ("servers/trn1.yaml", "rename the file to trn1.32xlarge.yaml or the document to trn1"),
        ("trn1.32xlarge.bak.yml", "rename the file to trn1.32xlarge.yml or the document to trn1.32xlarge.bak"),
        ("TRN1.32XLARGE.yaml", "rename the file to trn1.32xlarge.yaml"),
    ],
)
def test_names_of_files(file, hint):
    found = [(d.hint, d.where.path) for d in findings("TRN205", lying_in(file))]

    assert found == ([(hint, ("metadata", "name"))] if hint else [])
