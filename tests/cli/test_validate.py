"""``trnspec validate``: what is checked, formats, options, settings, exit status."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.programs import MARKS, ROOT, SOUND, WRONG, Site, at_a_terminal, command, environment, forked, marks
from trnspec.api import validate


@pytest.fixture
def here(here_bad):
    return here_bad


def test_default_target_is_the_shipped_catalog(here) -> None:
    result = here("validate", "--format", "json")
    files = len(list((ROOT / "catalog").rglob("*.yaml")))

    assert (0, files) == (result.status, result.data["summary"]["files"])


@pytest.mark.parametrize(("text", "status"), [(SOUND, 0), (WRONG, 1), ("", 1), ("\0", 1)])
def test_standard_input(here, monkeypatch, text, status) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    result = here("validate", "-", "--format", "json")

    assert (status, "") == (result.status, result.err)
    assert ({"<stdin>"} if status else set()) == {d["file"] for d in result.data["diagnostics"]}


def test_endless_standard_input(tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            command("validate", "-", "--format", "json"), cwd=tmp_path, stdin=endless, capture_output=True, check=False
        )

    assert {("TRN012", None)} == marks(done.stdout.decode())


def test_junit(here) -> None:
    (here.folder / "bad" / "wire.yaml").write_text(SOUND.replace("chips", "Straße"), encoding="utf-8")
    text = here("validate", "bad", "--format", "junit").out

    assert text.isascii()
    assert "Straße" in "".join(ET.fromstring(text).itertext())


@pytest.mark.parametrize("kind", ["text", "json", "sarif", "github", "junit"])
@pytest.mark.parametrize(("path", "status"), [("wire.yaml", 0), ("bad", 1)])
def test_status_is_the_same_in_every_format(here, kind, path, status) -> None:
    assert status == here("validate", path, "--format", kind).status


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["--select", "trn4,TRN102"], {"TRN102"}),
        (["--select", "TRN4", "--select", "TRN101"], {"TRN101"}),
        (["--ignore", "TRN1"], set()),
        (["--select", "TRN1", "--ignore", "TRN102"], {"TRN101"}),
    ],
)
def test_select_and_ignore(here, args, codes) -> None:
    result = here("validate", "bad", "--format", "json", *args)

    assert (codes, bool(codes)) == ({c for c, _ in marks(result.out)}, bool(result.status))


@pytest.mark.parametrize(("level", "status"), [("info", 0), ("warning", 1), ("ERROR", 1)])
def test_severity(here, level, status) -> None:
    result = here("validate", "bad", "--format", "json", "--severity", f"TRN1={level}")

    assert (status, {level.lower()}) == (result.status, {d["severity"] for d in result.data["diagnostics"]})


def test_catalog(here) -> None:
    (here.folder / "mine" / "links").mkdir(parents=True)
    (here.folder / "mine" / "links" / "wire.yaml").write_text(SOUND)
    chip = (ROOT / "catalog" / "chips" / "trainium1.yaml").read_text(encoding="utf-8")
    (here.folder / "bad" / "wire.yaml").unlink()
    (here.folder / "bad" / "trainium1.yaml").write_text(chip.replace("neuronlink-v2", "wire"), encoding="utf-8")
    args = ("validate", "bad/trainium1.yaml", "--select", "TRN201", "--format", "json")

    assert {"TRN201"} == {c for c, _ in marks(here(*args).out)}
    assert set() == marks(here(*args, "--catalog", "mine").out)


def test_table(here) -> None:
    result = here("validate", "--table")
    rows = {line.split()[0]: line for line in result.out.splitlines() if line}

    assert result.status == 0
    assert "16 x trainium1" in rows["trn1.32xlarge"]
    assert ["3.04", "512", "13.12"] == rows["trn1.32xlarge"].split()[-3:]
    assert "no findings" in result.out.splitlines()[-1]


SHIPPED = sum(validate().report.checked.values())
"""The documents of the shipped catalog; those of a list are several in one file."""


def catalog_of(folder: Path, text: str) -> Path:
    """A catalog with one document in it."""
    (folder / "links").mkdir(parents=True)
    (folder / "links" / "wire.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("how", ["named", "configured", "both"])
def test_without_files_every_catalog_is_checked(here, how) -> None:
    catalog_of(here.folder / "mine", SOUND)
    if how != "named":
        (here.folder / "trnspec.toml").write_text('catalogs = ["mine"]')
    options = [] if how == "configured" else ["--catalog", "mine"]
    more = here("validate", "--table", *options)

    assert (0, f"{SHIPPED + 1} documents checked, no findings.") == (more.status, more.out.splitlines()[-1])

    (here.folder / "mine" / "links" / "wire.yaml").write_text(WRONG)
    result = here("validate", "--format", "json", *options)

    assert (1, MARKS) == (result.status, marks(result.out))


def test_with_files_they_alone_are_checked(here) -> None:
    """What pre-commit does: a catalog beside them is there for names, and its findings are not theirs."""
    catalog_of(here.folder / "mine", WRONG)
    (here.folder / "trnspec.toml").write_text('catalogs = ["mine"]')
    result = here("validate", "wire.yaml", "--catalog", "mine")

    assert (0, "1 document checked, no findings.\n", "") == (result.status, result.out, result.err)


def test_a_catalog_replaces_the_shipped_one(here) -> None:
    text = (ROOT / "catalog" / "links" / "efa.yaml").read_text()
    folder = catalog_of(here.folder / "mine", SOUND)
    (folder / "links" / "efa.yaml").write_text(text)

    assert set() == marks(here("validate", "--catalog", "mine", "--format", "json").out)

    (folder / "links" / "again.yaml").write_text(text)
    found = here("validate", "--catalog", "mine", "--format", "json").data["diagnostics"]

    assert [("mine/links/again.yaml", "TRN205")] == [(d["file"], d["code"]) for d in found]


def test_catalogs_of_plugins_are_checked(tmp_path) -> None:
    site = Site(tmp_path / "site")
    folder = site.catalog("acme", {"links/wire.yaml": SOUND})

    assert f"{SHIPPED + 1} documents checked, no findings.\n" == site.run("validate").out
    assert f"{SHIPPED} documents checked, no findings.\n" == site.run("--no-plugins", "validate").out

    (folder / "links" / "wire.yaml").write_text(WRONG)
    result = site.run("validate", "--format", "json")

    assert (1, MARKS) == (result.status, marks(result.out))


def test_colour_at_a_terminal(here) -> None:
    assert "\x1b[1;31merror\x1b[0m" in at_a_terminal("validate", "bad", cwd=here.folder).out


@pytest.mark.parametrize(
    ("args", "env"),
    [([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--format", "json"], {}), (["--format", "sarif"], {})],
)
def test_no_colour_at_a_terminal(here, args, env) -> None:
    written = at_a_terminal("validate", "bad", *args, cwd=here.folder, **env).out

    assert "TRN101" in written
    assert "\x1b" not in written


def test_no_colour_in_a_pipe(here) -> None:
    assert "\x1b" not in forked("validate", "bad", cwd=here.folder, path=here.folder, TERM="xterm").out


@pytest.mark.parametrize(
    ("kind", "encoding"), [("text", "latin-1"), *((f, "ascii") for f in ("text", "json", "sarif", "github", "junit"))]
)
def test_narrow_encodings(here, encoding, kind) -> None:
    (here.folder / "bad" / "wire.yaml").write_text(SOUND.replace("chips", "光→Straße"), encoding="utf-8")
    done = forked("validate", "bad", "--format", kind, cwd=here.folder, path=here.folder, PYTHONIOENCODING=encoding)

    assert (done.status, done.err) == (1, "")
    if kind == "json":
        assert "光→Straße" in done.data["diagnostics"][0]["text"]


def test_closed_pipe_of_the_reader(here) -> None:
    """As in ``trnspec validate | head -1``, also with more to write than a pipe holds."""
    for number in range(600):
        (here.folder / "bad" / f"n{number}.yaml").write_text(WRONG)
    process = subprocess.Popen(
        command("validate", "bad"), cwd=here.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.read(1)
    process.stdout.close()

    assert process.stderr.read() == b""

    process.stderr.close()

    assert process.wait(60) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_disk(here, unbuffered) -> None:
    env = environment(PYTHONUNBUFFERED=unbuffered)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("validate", "bad"), cwd=here.folder, env=env, stdout=full, stderr=subprocess.PIPE, check=False
        )

    assert done.returncode == 2
    assert done.stderr == b"trnspec: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize(("redirection", "status"), [(">&-", 2), ("2>&-", 1), ("<&-", 1), ("- <&-", 2)])
def test_closed_streams(here, redirection, status) -> None:
    line = f'"{sys.executable}" -m trnspec validate bad {redirection}'
    done = subprocess.run(line, shell=True, cwd=here.folder, env=environment(), capture_output=True, check=False)

    assert status == done.returncode
    assert b"Traceback" not in done.stderr


def test_interrupted(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("validate", "-"),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A job in the background of a script ignores the signal, and what it starts inherits that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads are running
    )
    # It is asleep in the read of a pipe when it waits; before that there is nothing to interrupt.
    deadline = time.monotonic() + 30
    while "pipe" not in waits_in(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)

    assert (process.returncode, error) == (130, b"trnspec: interrupted\n")


def waits_in(pid: int) -> str:
    """The name of what a process sleeps in; where the system does not tell, a moment is waited."""
    try:
        found = Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        found = "0"
    if found in ("", "0"):
        time.sleep(2)
        return "pipe"
    return found


def test_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'rmdir "{gone}"; "{sys.executable}" -m trnspec validate'
    done = subprocess.run(line, shell=True, cwd=gone, env=environment(), capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (2, b"trnspec: the current folder does not exist\n")


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("pipe.yaml", 1, "pipe.yaml: error TRN001"),
        ("folder.yaml", 2, "folder.yaml holds no .yaml files"),
        ("link.yaml", 2, "link.yaml is a broken link"),
        ("inside", 1, "inside/link.yaml: error TRN001"),
    ],
)
def test_refuses_special_files(here, path, status, message) -> None:
    os.mkfifo("pipe.yaml")
    Path("folder.yaml").mkdir()
    Path("link.yaml").symlink_to("nowhere")
    Path("inside").mkdir()
    Path("inside/link.yaml").symlink_to("nowhere")
    result = here("validate", path)

    assert status == result.status
    assert (result.out + result.err).count(message) == 1
    assert (result.out + result.err).count("trnspec: ") + result.out.count("error TRN") == 1


def unprivileged() -> list[str]:
    """What makes a command obey permissions; root does not, unless it gives up the right to ignore them."""
    if os.geteuid() != 0:
        return []
    tool = shutil.which("setpriv")
    if tool is None:
        pytest.skip("root ignores permissions, and there is no setpriv")
    rights = "-dac_override,-dac_read_search"
    return [tool, f"--bounding-set={rights}", f"--inh-caps={rights}"]


LOCKED = [
    ("bad", 0o000, "bad", 2, "the folder bad cannot be read: Permission denied"),
    ("bad", 0o000, "bad/wire.yaml", 2, "bad/wire.yaml cannot be read: Permission denied"),
    ("bad", 0o000, ".", 2, "bad cannot be read: Permission denied"),
    ("bad", 0o111, "bad/wire.yaml", 1, "bad/wire.yaml:4:1: error TRN101"),
    ("wire.yaml", 0o000, "wire.yaml", 1, "wire.yaml: error TRN001"),
    ("trnspec.toml", 0o000, "wire.yaml", 2, "trnspec.toml"),
]
IN_TURN = """
import contextlib, io, json, pathlib, sys
from trnspec.__main__ import main
for locked, mode, path, *_ in json.loads(sys.stdin.read()):
    if locked == "trnspec.toml":
        pathlib.Path(locked).write_text("")
    pathlib.Path(locked).chmod(mode)
    sys.argv[1:] = ["validate", path]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            status = end.code
    pathlib.Path(locked).chmod(0o755)
    print(json.dumps([status, said.getvalue()]))
"""


def test_without_permission(here) -> None:
    program = [*unprivileged(), sys.executable, "-c", IN_TURN]
    given = json.dumps(LOCKED)
    done = subprocess.run(program, cwd=here.folder, env=environment(), input=given, capture_output=True, text=True)  # noqa: PLW1510
    found = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.stderr == ""
    for (*case, status, message), (ended, said) in zip(LOCKED, found, strict=True):
        assert (status, True) == (ended, message in said and "Traceback" not in said), (case, said)
