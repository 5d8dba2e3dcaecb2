"""The hook, as pre-commit itself runs it in the repository of somebody else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT

pytestmark = pytest.mark.slow

SERVER = "hardware/servers/trn1.32xlarge.yaml"

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
            # What pip has downloaded before, and no compiling of modules that are never imported: the option is off.
            "PIP_CACHE_DIR": str(Path("~/.cache/pip").expanduser()),
            "PIP_NO_COMPILE": "0",
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


@pytest.fixture
def shell(tmp_path) -> Shell:
    return Shell(tmp_path / "home")


@pytest.fixture
def hook(shell: Shell, tmp_path: Path) -> tuple[Path, str]:
    """This working tree as a repository with one commit, which is what pre-commit can fetch."""
    folder = tmp_path / "hook"
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
    """Somebody's repository: a catalog of their own, other YAML files, and the hook."""
    repo, rev = hook
    folder = tmp_path / "scratch"
    (folder / "models").mkdir(parents=True)
    (folder / SERVER).parent.mkdir(parents=True)
    shutil.copy(ROOT / "catalog" / "servers" / "trn1.32xlarge.yaml", folder / SERVER)
    (folder / "other.yaml").write_text("- this: is no document\n")
    (folder / "models" / "schema.yml").write_text("version:   2\n")
    (folder / ".pre-commit-config.yaml").write_text(
        CONFIG.format(repo=repo, rev=rev, plugin=ROOT / "plugins" / "trnspec-energy")
    )
    shell.git("init", "--quiet", cwd=folder)
    return folder


def checked(shell: Shell, folder: Path) -> tuple[int, list[str]]:
    """The status of ``pre-commit run``, and the lines that it prints."""
    shell.git("add", "--all", cwd=folder)
    done = shell(sys.executable, "-m", "pre_commit", "run", "--all-files", "--color", "never", cwd=folder)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_hooks_in_a_repository(shell, scratch) -> None:
    """One after the other, as pre-commit installs the hook once: sound, untidy, a wrong total, a document deleted."""
    file = scratch / SERVER
    tidy = file.read_text(encoding="utf-8")
    status, lines = checked(shell, scratch)
    assert (0, 2) == (status, sum(line.endswith("Passed") for line in lines)), lines

    # Formatted, and the file of the other program is not.
    file.write_text(tidy.replace("kind: Server", "kind:   Server"), encoding="utf-8")
    assert 1 == checked(shell, scratch)[0]
    assert (tidy, "version:   2\n") == (file.read_text("utf-8"), (scratch / "models" / "schema.yml").read_text())

    # The file as the repository names it, the line and the code, once.
    number = tidy.splitlines().index(next(line for line in tidy.splitlines() if "bf16: 3,040 TFLOPS" in line)) + 1
    file.write_text(tidy.replace("bf16: 3,040", "bf16: 3,360", 1), encoding="utf-8")
    status, lines = checked(shell, scratch)
    (finding,) = (line for line in lines if " error TRN402 aggregate-mismatch: " in line)
    assert (1, True) == (status, finding.startswith(f"{SERVER}:{number}:"))

    # With the hooks installed, as a user commits: the document that refers to the deleted one was not changed.
    (scratch / "hardware" / "chips").mkdir()
    chip = (ROOT / "catalog" / "chips" / "trainium1.yaml").read_text(encoding="utf-8")
    (scratch / "hardware" / "chips" / "acme.yaml").write_text(chip.replace("name: trainium1", "name: acme", 1))
    file.write_text(tidy.replace("chip: trainium1,", "chip: acme,"), encoding="utf-8")
    shell.git("add", "--all", cwd=scratch)
    shell.git("commit", "--quiet", "--message", "Hardware", cwd=scratch)
    shell(sys.executable, "-m", "pre_commit", "install", cwd=scratch)
    shell.git("rm", "--quiet", "hardware/chips/acme.yaml", cwd=scratch)
    done = shell("git", "commit", "--quiet", "--message", "Change", cwd=scratch)
    assert (1, True) == (done.returncode, " error TRN201 " in done.stdout + done.stderr)
