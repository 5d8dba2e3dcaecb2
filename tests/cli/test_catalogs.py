"""trnspec.cli.diff: the catalogs that trnspec diff compares."""

import pytest

from tests.support.programs import git, written
from tests.support.rules import document, source
from trnspec.cli.diff import of_folder, open_catalog
from trnspec.errors import TrnspecError, UsageError

PAGE = source("page", "2024-01-01")


def wire(rate: str) -> str:
    return document("Link", "wire", f"spec: {{connects: chips, latency: {rate}}}", "source: page")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    for folder, text in (("sources", PAGE), ("links", wire("9 us"))):
        written(tmp_path / "catalog" / folder / f"{'page' if folder == 'sources' else 'wire'}.yaml", text)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    (tmp_path / "catalog" / "links" / "wire.yaml").write_text(wire("8 us"))
    return tmp_path


def test_open_a_revision_and_a_folder(repository) -> None:
    then, now = open_catalog("git:HEAD"), open_catalog("catalog")

    assert {"page", "wire"} == set(then.graph.nodes) == set(now.graph.nodes)
    assert ("9 us", "8 us") == tuple(c["wire"].figure("latency").value.text for c in (then, now))
    assert "HEAD:catalog/links/wire.yaml" == then["wire"].node.document.file


@pytest.mark.parametrize(
    "word", ["nowhere", "", "git:nowhere", "git:HEAD:nowhere", "as-of:x", "1999.01", "git:", "as-of:"]
)
def test_texts_that_name_no_catalog(repository, word) -> None:
    with pytest.raises(TrnspecError):
        open_catalog(word)


def test_a_broken_document_is_not_a_removed_one(repository) -> None:
    then = open_catalog("git:HEAD")
    (repository / "catalog" / "links" / "wire.yaml").write_text("kind: [")
    made = then.diff(open_catalog("catalog"))

    assert {"wire"} == set(made.unread)
    assert () == made.removed


def test_an_empty_folder(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"holds no \.yaml files"):
        of_folder(tmp_path)
