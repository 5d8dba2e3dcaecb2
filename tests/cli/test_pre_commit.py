"""The hook, as pre-commit itself runs it in the repository of somebody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

CONFIG = """\
repos:
  - repo: {repo}
    rev: {rev}
    hooks:
      - id: trnspec
        additional_dependencies: [{plugin}]
        args: [hardware]
      - id: trnspec-fmt
"""


class Shell:
    """Programs that see nothing of the user's own configuration."""

    def __init__(self, home: Path) -> None:
        left_out = ("GIT_", "PRE_COMMIT", "PYTHON", "VIRTUAL_ENV", "NO_COLOR", "FORCE_COLOR", "SKIP")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(left_out)} | {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "PRE_COMMIT_HOME": str(home / "pre-commit"),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
            },
        }

    def __call__(self, *args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*args], cwd=cwd, env=self.env, capture_output=True, check=False, text=True)

    def git(self, *args: str, cwd: Path) -> str:
        done = self("git", *args, cwd=cwd)

        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def shell(tmp_path_factory) -> Shell:
    return Shell(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def hook(shell: Shell, tmp_path_factory) -> tuple[Path, str]:
    """This working tree as a repository with one commit, which is what pre-commit can fetch."""
    folder = tmp_path_factory.mktemp("hook")
    for name in ("trnspec", "catalog", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, folder)
    shell.git("init", "--quiet", cwd=folder)
    shell.git("add", "--all", "--force", cwd=folder)
    shell.git("commit", "--quiet", "--message", "All", cwd=folder)
    return folder, shell.git("rev-parse", "HEAD", cwd=folder)


@pytest.fixture
def scratch(shell: Shell, hook: tuple[Path, str], tmp_path: Path) -> Path:
    """Somebody's repository: a catalog of their own, another YAML file, and the hook."""
    repo, rev = hook
    (tmp_path / "hardware" / "servers").mkdir(parents=True)
    shutil.copy(ROOT / "catalog" / "servers" / "trn1.32xlarge.yaml", tmp_path / "hardware" / "servers")
    (tmp_path / "other.yaml").write_text("- this: is no document\n")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "schema.yml").write_text("version:   2\n")
    (tmp_path / ".pre-commit-config.yaml").write_text(
        CONFIG.format(repo=repo, rev=rev, plugin=ROOT / "plugins" / "trnspec-energy")
    )
    shell.git("init", "--quiet", cwd=tmp_path)
    shell.git("add", "--all", cwd=tmp_path)
    return tmp_path


def pre_commit(shell: Shell, folder: Path) -> subprocess.CompletedProcess[str]:
    return shell(sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never", cwd=folder)


def test_sound_repository_passes(shell, scratch) -> None:
    """The other file is not looked at; what the server refers to is shipped with the hook."""
    done = pre_commit(shell, scratch)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


def test_wrong_total_is_refused(shell, scratch) -> None:
    """The message names the file as the repository does, the line and the code."""
    file = scratch / "hardware" / "servers" / "trn1.32xlarge.yaml"
    lines = file.read_text(encoding="utf-8").splitlines()
    number = next(i for i, line in enumerate(lines) if "bf16: 3,040 TFLOPS" in line)
    lines[number] = lines[number].replace("3,040", "3,360")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    shell.git("add", "--all", cwd=scratch)
    done = pre_commit(shell, scratch)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "Failed" in done.stdout
    assert "hardware/servers/trn1.32xlarge.yaml:" + str(number + 1) + ":" in done.stdout
    # Once.
    assert [number + 1] == [
        int(line.split(":")[1]) for line in done.stdout.splitlines() if " error TRN402 aggregate-mismatch: " in line
    ]


def commit(shell: Shell, folder: Path) -> subprocess.CompletedProcess[str]:
    """A commit with the hooks installed, as a user makes one."""
    return shell("git", "commit", "--quiet", "--message", "Change", cwd=folder)


def test_a_deleted_document_that_is_used_is_refused(shell, scratch) -> None:
    """The document that refers to it was not changed."""
    (scratch / "hardware" / "chips").mkdir()
    chip = (ROOT / "catalog" / "chips" / "trainium1.yaml").read_text(encoding="utf-8")
    (scratch / "hardware" / "chips" / "acme.yaml").write_text(chip.replace("name: trainium1", "name: acme", 1))
    server = scratch / "hardware" / "servers" / "trn1.32xlarge.yaml"
    server.write_text(server.read_text(encoding="utf-8").replace("chip: trainium1,", "chip: acme,"))
    shell.git("add", "--all", cwd=scratch)
    shell.git("commit", "--quiet", "--message", "Hardware", cwd=scratch)
    shell(sys.executable, "-m", "pre_commit", "install", cwd=scratch)
    shell.git("rm", "--quiet", "hardware/chips/acme.yaml", cwd=scratch)
    done = commit(shell, scratch)

    assert done.returncode == 1, done.stdout + done.stderr
    assert " error TRN201 " in done.stdout + done.stderr


def test_an_untidy_document_is_formatted(shell, scratch) -> None:
    """The file of the other program is not."""
    file = scratch / "hardware" / "servers" / "trn1.32xlarge.yaml"
    tidy = file.read_text(encoding="utf-8")
    file.write_text(tidy.replace("kind: Server", "kind:   Server"), encoding="utf-8")
    shell.git("add", "--all", cwd=scratch)
    done = pre_commit(shell, scratch)

    assert done.returncode == 1, done.stdout + done.stderr
    assert tidy == file.read_text(encoding="utf-8")
    assert "version:   2\n" == (scratch / "models" / "schema.yml").read_text()
