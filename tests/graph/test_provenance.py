"""trnspec.graph.provenance: the source of a value."""

import pytest

from tests.support.rules import KNOWN
from trnspec.graph.provenance import source_of
from trnspec.loading.pipeline import load_document
from trnspec.yaml import read_text

TEXT = """\
api_version: trnspec/v1
kind: Server
metadata: {name: box, title: Box, source: of-the-document}
spec:
  chips: {chip: one, count: {value: 16, source: own}}
  network:
    nics: 8
    bandwidth: {value: 800 Gbps, derived: 8 x 100 Gbps}
    peak: {value: 900 Gbps, source: another}
    storage: 80 Gbps
"""


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (("chips", "count"), "own"), (("network", "nics"), "of-the-document"), (("network", "bandwidth"), None),
        (("network", "peak"), "another"), (("network", "storage"), "of-the-document"),
        (("network", "baseline"), None), (("local_storage",), None),
    ],
)  # fmt: skip
def test_source_of(path, source) -> None:
    """Its own, or that of the document; a derived figure has none, and neither has what is not there."""
    node = load_document(read_text(TEXT, "box.yaml"), KNOWN).node
    assert node is not None
    found = source_of(node, ("spec", *path))

    assert source == (None if found is None else found.name)
