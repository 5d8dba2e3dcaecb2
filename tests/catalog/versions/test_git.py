"""trnspec.catalog.versions.git: a folder of a git revision, with the real git."""

from pathlib import Path

import pytest

from tests.support.programs import git
from trnspec.catalog.versions.git import files, is_committed
from trnspec.errors import UsageError


@pytest.fixture
def repository(tmp_path) -> Path:
    """Two commits, then a change that is not committed."""
    git(tmp_path, "init", "-q", "-b", "main")
    inside = tmp_path / "catalog" / "chips"
    inside.mkdir(parents=True)
    (inside / "one.yaml").write_bytes(b"one\r\n\xff")
    (inside / "empty file.yaml").write_bytes(b"")
    (tmp_path / "beside.yaml").write_text("beside")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    (inside / "two é.yaml").write_text("two")
    (inside / "one.yaml").write_text("one, changed")
    (inside / "link.yaml").symlink_to("one.yaml")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "second")
    git(tmp_path, "tag", "v1")
    (inside / "one.yaml").write_text("not committed")
    return tmp_path


def test_each_revision_has_its_bytes(repository) -> None:
    assert {"chips/one.yaml": b"one\r\n\xff", "chips/empty file.yaml": b""} == files("HEAD~1", "catalog", repository)
    assert {"chips/one.yaml": b"one, changed", "chips/empty file.yaml": b"", "chips/two é.yaml": b"two"} == files(
        "v1", "catalog/", repository
    )


def test_files_that_git_can_restore(repository, tmp_path_factory) -> None:
    inside, apart = repository / "catalog" / "chips", tmp_path_factory.mktemp("apart")
    names = ("one.yaml", "two é.yaml", "empty file.yaml", "new.yaml")
    for folder in (inside, apart):
        (folder / "new.yaml").write_text("")

    assert [False, True, True, False] == [is_committed([str(inside / name)]) for name in names]
    assert is_committed([str(inside / name) for name in names[1:3]])
    assert not is_committed([str(inside / name) for name in names[1:]])
    assert not is_committed([str(apart / "new.yaml")])  # no repository


def test_from_a_folder_inside(repository) -> None:
    """The folder is named from the top of the repository, wherever in it one is."""
    assert {"one.yaml", "empty file.yaml"} == set(files("HEAD~1", "catalog/chips", repository / "catalog"))


@pytest.mark.parametrize(
    ("revision", "folder", "said"),
    [
        ("nowhere", "catalog", "git has no 'nowhere' here"),
        ("HEAD", "nowhere", "git has no 'HEAD:nowhere' here"),
        ("HEAD", "beside.yaml", "git has no 'HEAD:beside.yaml' here"),
        ("--help", "catalog", "git has no '--help' here"),
        ("", "catalog", "git has no '' here"),
    ],
)
def test_missing_revision_or_folder(repository, revision, folder, said) -> None:
    with pytest.raises(UsageError, match=said):
        files(revision, folder, repository)


def test_folder_without_repository(tmp_path) -> None:
    with pytest.raises(UsageError, match="not a git repository"):
        files("HEAD", "catalog", tmp_path)


def test_git_not_installed(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="git is not installed"):
        files("HEAD", "catalog", tmp_path)
