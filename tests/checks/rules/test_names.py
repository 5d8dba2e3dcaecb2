"""trnspec.checks.rules.names: names of documents, files and families."""

from __future__ import annotations

import attrs
import pytest

from tests.support.rules import bare, findings, found, put, shipped
from trnspec.graph.graph import Graph
from trnspec.model.ref import Ref
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


@pytest.mark.parametrize(
    ("name", "chip", "reported"),
    [
        ("trn2.48xlarge", "trainium2", False),
        ("trn2.48xlarge", "trainium1", True),
        ("trn2.48xlarge", "trainium3", True),
        ("trn2.48xlarge", "no-such-chip", False),
        ("trn3-gen1-server", "trainium2", False),  # no instance type
    ],
)
def test_the_number_of_a_family_is_that_of_its_chip(name, chip, reported):
    expected = {(name, "spec.chips.chip")} if reported else set()

    assert expected == found("TRN206", put(bare(), name, "chips.chip", Ref(chip)))


@pytest.mark.parametrize(
    ("name", "version", "reported"),
    [
        ("neuronlink-v3", "NeuronLink-v3", False),
        ("neuronlink-v3", "V3", False),
        ("neuronlink-v3", "v2", True),
        ("neuronlink-v3", "v3.1", True),
        ("neuronlink-v3", "third", False),
        ("neuronlink-v3", None, False),
        ("neuroncore-v2", "v4", True),
    ],
)
def test_the_version_of_a_core_or_a_link_is_that_of_its_name(name, version, reported):
    graph = bare().replace(name, attrs.evolve(bare().named(name).spec, version=version))

    assert ({(name, "spec.version")} if reported else set()) == found("TRN207", graph)
