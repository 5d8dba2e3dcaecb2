"""trnspec.checks.rules.names: names of documents, files and families."""

from __future__ import annotations

import attrs
import pytest
from rules_world import bare, findings, found, put, shipped

from trnspec.graph.graph import Graph
from trnspec.model.server import Family


def lying_in(file: str) -> Graph:
    node = shipped().named("trn1.32xlarge")
    return Graph({node.name: attrs.evolve(node, document=attrs.evolve(node.document, file=file))})


@pytest.mark.parametrize(
    "file",
    [
        "trn1.32xlarge.yaml",
        "servers/trn1.32xlarge.yaml",
        "/a/b.c/trn1.32xlarge.yml",
        "<stdin>",
        "trn1.32xlarge",
        "somewhere.txt",
    ],
)
def test_files_that_are_named_so_or_have_no_such_name(file):
    assert findings("TRN205", lying_in(file)) == []


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("servers/trn1.yaml", "rename the file to trn1.32xlarge.yaml or the document to trn1"),
        ("trn1.32xlarge.bak.yml", "rename the file to trn1.32xlarge.yml or the document to trn1.32xlarge.bak"),
        ("TRN1.32XLARGE.yaml", "rename the file to trn1.32xlarge.yaml or the document to TRN1.32XLARGE"),
    ],
)
def test_other_names(file, hint):
    (found,) = findings("TRN205", lying_in(file))

    assert hint == found.hint
    assert found.where.path == ("metadata", "name")


def test_every_shipped_document_lies_where_it_should():
    assert findings("TRN205", shipped()) == []


@pytest.mark.parametrize(
    ("name", "family", "reported"),
    [
        ("trn2.48xlarge", Family(name="trn2"), False),
        ("trn2.48xlarge", Family(name="trn1"), True),
        ("trn2u.48xlarge", Family(name="trn2"), True),
        ("trn2u.48xlarge", None, False),
        ("trn3-gen1-server", Family(name="trn3"), False),
    ],
)
def test_family_is_the_first_part_of_the_name(name, family, reported):
    expected = {(name, "spec.family.name")} if reported else set()

    assert expected == found("TRN206", put(bare(), name, "family", family))
