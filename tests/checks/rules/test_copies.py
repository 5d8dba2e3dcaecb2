"""TRN208: copied documents are found, legitimate variants are not."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from tests.support.rules import KNOWN, beside, findings, rule
from trnspec.api import graph as load
from trnspec.api import validate
from trnspec.checks.rules.names import _content, _share
from trnspec.checks.runner import run
from trnspec.loading.files import shipped

PLUGINS = [str(f) for f in Path(__file__).parents[3].glob("plugins/*/src/*/catalog")]

# Document, its name and that of the copy, a text in it and what is written instead.
COPIES = [
    ("cores/neuroncore-v4", "neuroncore-v5", "capacity: 32 MiB", "capacity: 48 MiB"),
    ("chips/trainium3", "trainium5", "capacity: 144 GiB\n", "capacity: 288 GiB\n"),
    ("servers/trn2.48xlarge", "trn4.48xlarge", 'memory: "2,048 GiB"', 'memory: "4,096 GiB"'),
    ("ultraservers/trn3-gen2-ultraserver", "trn3-gen3-ultraserver", "count: 36", "count: 18"),
    ("models/llama-3.1-8b", "llama-3.4-8b", "layers: 32", "layers: 34"),
    ("sources/neuron-trn2-2026-08", "neuron-trn2-2026-09", "as_of: 2026-08", "as_of: 2026-09"),
    ("software/torchtitan-neuron-trainium2", "torchtitan-neuron-b", "0.2.2+neuron.1", "0.3.0"),
    ("links/neuronlink-v3", "neuronlink-v5", "rate: 32 Gbit/s", "rate: 64 Gbit/s"),
    # Without a change.
    ("models/llama-3.1-8b", "another", "kind: ", "kind: "),
    ("cores/neuroncore-v2", "another", "kind: ", "kind: "),
]


def copied(folder: Path, document: str, name: str, old: str, new: str) -> list[tuple[str, str, str]]:
    text = (shipped() / f"{document}.yaml").read_text(encoding="utf-8")
    assert old in text
    text = re.sub(r"aliases: \[[^]]*\](, )?", "", text.replace(old, new, 1))
    file = folder / f"{document.split('/', maxsplit=1)[0]}/{name}.yaml"
    file.parent.mkdir()
    file.write_text(text.replace(f"name: {document.split('/')[1]}", f"name: {name}", 1), encoding="utf-8")
    found = validate([folder]).report.diagnostics
    return [(Path(d.see[0].file).stem, d.where.file, d.hint) for d in found if d.code == "TRN208"]


@pytest.mark.parametrize(("document", "name", "old", "new"), COPIES, ids=[c[0] for c in COPIES])
def test_copy_with_one_figure_changed_or_none(tmp_path, document, name, old, new) -> None:
    ((original, file, hint),) = copied(tmp_path, document, name, old, new)

    assert (original, Path(file).stem) == (document.split("/")[1], name)
    read = "write the address or the version that was read on 2026-09-21, or remove one of the two"
    other = f"correct the values that are still those of {original}, and their sources"
    same = f"write another among the aliases of {original}, or remove one of the two"
    assert hint == (same if old == new else read if document.startswith("sources/") else other)


@pytest.mark.parametrize("document", ["cores/neuroncore-v4", "chips/trainium3", "models/llama-3-8b"])
def test_copy_with_other_sources(tmp_path, document) -> None:
    """Sources and their places are no values: a copy that is credited to another page is found."""
    text = (shipped() / f"{document}.yaml").read_text(encoding="utf-8")
    others = re.sub(r"\bsource: [a-z0-9.-]+", "source: nand-research-trn3", text)
    ((original, *_),) = copied(tmp_path, document, "another", text, others)

    assert original == document.split("/")[1]


def test_similar_documents_of_the_catalogs_are_no_copies() -> None:
    """Sizes of one family, variants of a chip, models of one architecture: the most similar pairs there are."""
    known = load(PLUGINS)
    shares = sorted(
        (_share(_content(one), _content(other)), one.name, other.name)
        for one, other in combinations(known, 2)
        if one.kind == other.kind and one.kind not in ("Calibration", "Measurements", "Source")
    )

    assert len([s for s in shares if s[0] > 0.5]) >= 40
    assert run([rule("TRN208")], known) == []


def test_model_with_a_base_is_no_copy() -> None:
    text = (shipped() / "models/llama-3-8b.yaml").read_text(encoding="utf-8")
    copy = text.replace("name: llama-3-8b", "name: llama-3-8b-tuned", 1)
    based = copy.replace("spec:\n", "spec:\n  base: {model: llama-3-8b}\n", 1)
    graphs = [beside(re.sub(r"aliases: \[[^]]*\](, )?", "", t)) for t in (copy, based)]

    assert [len(findings("TRN208", g)) for g in graphs] == [1, 0]
    assert KNOWN.code("copied-document").id == "TRN208"
