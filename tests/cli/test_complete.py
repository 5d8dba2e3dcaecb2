"""Shell completion by click: the scripts, and what they are answered."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import ROOT, Here, command, environment, written
from trnspec.api import graph
from trnspec.plugins.builtin_commands import COMMANDS

SOURCES = {n.name for n in graph() if n.kind == "Source"}
NAMES = set(graph().nodes)


@pytest.fixture
def completed(monkeypatch, capsys) -> Callable[..., list[str]]:
    """What bash is offered after some words, the last of which is not finished."""
    here = Here(ROOT, monkeypatch, capsys)

    def offered(*words: str) -> list[str]:
        monkeypatch.setenv("_TRNSPEC_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["trnspec", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        done = here()
        assert (0, "") == (done.status, done.err)
        return [line.partition(",")[2] for line in done.out.splitlines() if line]

    return offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script(here, monkeypatch, shell) -> None:
    monkeypatch.setenv("_TRNSPEC_COMPLETE", f"{shell}_source")
    text = here().out

    assert f"_TRNSPEC_COMPLETE={shell}_complete" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True, capture_output=True)


def test_former_command(monkeypatch, capsys) -> None:
    done = Here(ROOT, monkeypatch, capsys)("completion", "bash")

    assert (0, True) == (done.status, "_TRNSPEC_COMPLETE=bash_complete" in done.out)
    assert done.err == "trnspec completion is now _TRNSPEC_COMPLETE=bash_source trnspec\n"


def test_commands(completed) -> None:
    assert set(completed("")) == set(COMMANDS)
    assert completed("sho") == ["show"]


@pytest.mark.parametrize("given", ["show", "compare", "tree"])
def test_names(completed, given) -> None:
    assert set(completed(given, "trn")) == {n for n in NAMES if n.startswith("trn")}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("eval", "training", "--model", "llama-3.1-8"), ["llama-3.1-8b"]),
        (("eval", "training", "--on", "trn1.3"), ["trn1.32xlarge"]),
        (("eval", "training", "--on", "trn1.32xlarge,trn2.48"), ["trn1.32xlarge,trn2.48xlarge"]),
        (("eval", "training", "--calibration", "trainium1-n"), ["trainium1-neuron"]),
        (("eval", "training", "--calibration", "no"), ["none"]),
        (("explain", "TRN40"), ["TRN402", "TRN403", "TRN404", "TRN405", "TRN406", "TRN407", "TRN408", "TRN409"]),
        (("explain", "chip.memory.ba"), ["chip.memory.bandwidth"]), (("explain", "ultra"), ["ultraserver"]),
        (("audit", "trainium1", "memory.ba"), ["memory.bandwidth"]),
        (("query", "chip", "--columns", "name,memory.ba"), ["name,memory.bandwidth"]),
        (("audit", "--verdict", "rej"), ["rejected"]), (("diff", "--name", "trainium1"), ["trainium1"]),
        (("calibrate", "--chip", "trainium2"), ["trainium2"]),
    ],
)  # fmt: skip
def test_completions_of_common_inputs(completed, words, found) -> None:
    assert set(found) <= set(completed(*words))
    assert [c for c in completed(*words) if not c.startswith(words[-1])] == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("sho",), ["show"]),
        (("compare", "trainium1", "trn2.48"), sorted(n for n in NAMES if n.startswith("trn2.48"))),
        (("source", "semi"), sorted(n for n in SOURCES if n.startswith("semi"))),
        (("source", "trainium"), []),
        (("query", "server", "--columns", "fabric.s"), []),  # only the paths of values
        (("list", "s"), ["servers", "software", "scenarios", "sources"]),
        (("show", "--format", "m"), ["markdown"]),
        # The name of a document first, then the paths of its kind.
        (("eval", "training", "--vary", "trn2.48"), ["trn2.48xlarge"]),
        (("eval", "training", "--vary", "trainium2.memory.b"), ["trainium2.memory.bandwidth"]),
        (
            ("eval", "inference", "--assume", "trainium1-neuron.achieved.mat"),
            [f"trainium1-neuron.achieved.matmul{end}" for end in ("", "_fp4", "_fp8", "_passes")],
        ),
    ],
)
def test_all_completions(completed, words, found) -> None:
    assert found == completed(*words)


def completed_beside_acme(folder: Path, *words: str) -> tuple[str, str]:
    """What bash is offered, and what is printed as an error, where the distribution acme lies in a folder."""
    info = folder / "acme-1.0.dist-info"
    written(info / "METADATA", "Name: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trnspec.plugins]\nacme = acme:plugin\n")
    done = subprocess.run(
        command(),
        cwd=ROOT,
        env=environment(
            _TRNSPEC_COMPLETE="bash_complete", COMP_WORDS=" ".join(["trnspec", *words]), COMP_CWORD=str(len(words)),
            PYTHONPATH=f"{folder}{os.pathsep}{ROOT}",
        ),
        capture_output=True,
        check=True,
        text=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_documents_of_plugins(tmp_path) -> None:
    package = tmp_path / "acme"
    written(package / "catalog" / "chips" / "acme-9.yaml", "")
    (package / "__init__.py").write_text("print('imported'); raise RuntimeError")

    assert ("plain,acme-9\n", "") == completed_beside_acme(tmp_path, "show", "acme")


def test_codes_of_plugins(tmp_path) -> None:
    (tmp_path / "acme.py").write_text(
        "import sys, warnings\n"
        "from trnspec.diagnostics import Code, Severity\n"
        "from trnspec.plugins.api import API, Plugin\n"
        "print('imported'); print('imported', file=sys.stderr); warnings.warn('imported')\n"
        "plugin = Plugin(name='acme', api=API, codes=(Code('ACM001', 'acme-rule', Severity.WARNING, 'A rule.'),))\n"
    )

    assert ("plain,ACM001\n", "") == completed_beside_acme(tmp_path, "explain", "ACM")
