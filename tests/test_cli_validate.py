"""``trnspec validate``: options, settings, exit status, and what the world does to a program."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from distributions import Site
from running import ROOT, Here, apart, command, environment

SOUND = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: A wire}\nspec: {connects: chips}\n"
WRONG = SOUND.replace("spec:", "spce:")
MARKS = {("TRN101", 4), ("TRN102", 1)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch, capsys) -> Here:
    """The command line in a folder with a sound file and a wrong one; settings are not looked for above it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "wire.yaml").write_text(SOUND)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "wire.yaml").write_text(WRONG)
    return Here(tmp_path, monkeypatch, capsys)


def marks(text: str) -> set[tuple[str, int]]:
    """The (code, line) of a report in JSON."""
    return {(d["code"], d["line"]) for d in json.loads(text)["diagnostics"]}


# What is checked.


def test_sound_file(here) -> None:
    result = here("validate", "wire.yaml")

    assert (result.status, result.out, result.err) == (0, "1 document checked, no findings.\n", "")


def test_wrong_file(here) -> None:
    """Findings go to standard output, with the path as it was given."""
    result = here("validate", "bad/wire.yaml")

    assert (result.status, result.err) == (1, "")
    assert "bad/wire.yaml:4:1: error TRN101 unknown-key: " in result.out


def test_folder(here) -> None:
    result = here("validate", "--format", "json", "bad")

    assert (result.status, marks(result.out)) == (1, MARKS)


def test_nothing_means_the_shipped_catalog(here) -> None:
    result = here("validate", "--format", "json")
    files = len(list((ROOT / "catalog").rglob("*.yaml")))

    assert (0, files) == (result.status, json.loads(result.out)["summary"]["files"])


def test_many_paths(here) -> None:
    """All of them are checked, each file once."""
    result = here("validate", "--format", "json", "wire.yaml", "./wire.yaml", here.folder / "wire.yaml", "bad")

    assert json.loads(result.out)["summary"]["files"] == 2


@pytest.mark.parametrize(("text", "status"), [(SOUND, 0), (WRONG, 1), ("", 1), ("\0", 1)])
def test_standard_input(tmp_path: Path, text, status) -> None:
    result = apart("validate", "-", "--format", "json", cwd=tmp_path, stdin=text.encode())

    assert (status, "") == (result.status, result.err)
    assert ({"<stdin>"} if status else set()) == {d["file"] for d in json.loads(result.out)["diagnostics"]}


def test_standard_input_and_files(here) -> None:
    result = apart("validate", "-", "bad/wire.yaml", "--format", "json", cwd=here.folder, stdin=SOUND.encode())

    assert marks(result.out) == MARKS
    assert json.loads(result.out)["summary"]["files"] == 2


def test_endless_standard_input(tmp_path: Path) -> None:
    """No more is read than a document may have."""
    with Path("/dev/zero").open("rb") as endless:
        done = subprocess.run(
            command("validate", "-", "--format", "json"), cwd=tmp_path, stdin=endless, capture_output=True, check=False
        )

    assert {("TRN012", None)} == marks(done.stdout.decode())


# Formats.


def test_json(here) -> None:
    assert marks(here("validate", "bad", "--format", "json").out) == MARKS


def test_sarif(here) -> None:
    (run,) = json.loads(here("validate", "bad", "--format", "sarif").out)["runs"]

    assert {code for code, _ in MARKS} == {r["ruleId"] for r in run["results"]}


def test_github(here) -> None:
    lines = here("validate", "bad", "--format", "github").out.splitlines()

    assert sum(line.startswith("::error file=bad/wire.yaml,line=4,") for line in lines) == 1
    assert sum(line.startswith("::error ") for line in lines) == len(MARKS)


def test_junit(here) -> None:
    """It names its encoding, so it is written in a way that holds in every pipe."""
    (here.folder / "bad" / "wire.yaml").write_text(SOUND.replace("chips", "Straße"), encoding="utf-8")
    text = here("validate", "bad", "--format", "junit").out

    assert text.isascii()
    assert "Straße" in "".join(ET.fromstring(text).itertext())


@pytest.mark.parametrize("kind", ["text", "json", "sarif", "github", "junit"])
@pytest.mark.parametrize(("path", "status"), [("wire.yaml", 0), ("bad", 1)])
def test_status_is_the_same_in_every_format(here, kind, path, status) -> None:
    assert status == here("validate", path, "--format", kind).status


# Options.


@pytest.mark.parametrize(
    ("args", "codes"),
    [
        (["--select", "TRN101"], {"TRN101"}),
        (["--select", "trn1"], {"TRN101", "TRN102"}),
        (["--select", "TRN4,TRN102"], {"TRN102"}),
        (["--select", "TRN4", "--select", "TRN101"], {"TRN101"}),
        (["--ignore", "TRN101"], {"TRN102"}),
        (["--ignore", "TRN1"], set()),
        (["--select", "TRN1", "--ignore", "TRN102"], {"TRN101"}),
    ],
)
def test_select_and_ignore(here, args, codes) -> None:
    result = here("validate", "bad", "--format", "json", *args)

    assert (codes, bool(codes)) == ({c for c, _ in marks(result.out)}, bool(result.status))


@pytest.mark.parametrize(("level", "status"), [("info", 0), ("warning", 1), ("ERROR", 1)])
def test_severity(here, level, status) -> None:
    """Information leaves the run clean."""
    result = here("validate", "bad", "--format", "json", "--severity", f"TRN1={level}")

    assert (status, {level.lower()}) == (
        result.status,
        {d["severity"] for d in json.loads(result.out)["diagnostics"]},
    )


def test_catalog(here) -> None:
    """A name that only the other catalog has."""
    (here.folder / "mine" / "links").mkdir(parents=True)
    (here.folder / "mine" / "links" / "wire.yaml").write_text(SOUND)
    chip = (ROOT / "catalog" / "chips" / "trainium1.yaml").read_text(encoding="utf-8")
    (here.folder / "bad" / "wire.yaml").unlink()
    (here.folder / "bad" / "trainium1.yaml").write_text(chip.replace("neuronlink-v2", "wire"), encoding="utf-8")
    args = ("validate", "bad/trainium1.yaml", "--select", "TRN201", "--format", "json")

    assert {"TRN201"} == {c for c, _ in marks(here(*args).out)}
    assert set() == marks(here(*args, "--catalog", "mine").out)


def catalog_of(folder: Path, text: str) -> Path:
    """A catalog with one document in it."""
    (folder / "links").mkdir(parents=True)
    (folder / "links" / "wire.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("how", ["named", "configured", "both"])
def test_without_files_every_catalog_is_checked(here, how) -> None:
    """The shipped one, and those that are named or configured; each file once."""
    catalog_of(here.folder / "mine", SOUND)
    if how != "named":
        (here.folder / "trnspec.toml").write_text('catalogs = ["mine"]')
    options = [] if how == "configured" else ["--catalog", "mine"]
    alone, more = here("validate", "--catalog", here.folder / "mine", "--format", "json"), here("validate", *options)
    shipped = len(list((ROOT / "catalog").rglob("*.yaml")))

    assert (0, f"{shipped + 1} documents checked, no findings.\n") == (more.status, more.out)
    assert shipped + 1 == json.loads(alone.out)["summary"]["files"]
    assert f"{shipped + 1} documents checked" in here("validate", "--table", *options).out

    (here.folder / "mine" / "links" / "wire.yaml").write_text(WRONG)
    result = here("validate", "--format", "json", *options)

    assert (1, MARKS) == (result.status, marks(result.out))


def test_with_files_they_alone_are_checked(here) -> None:
    """What pre-commit does: a catalog beside them is there for names, and its findings are not theirs."""
    catalog_of(here.folder / "mine", WRONG)
    (here.folder / "trnspec.toml").write_text('catalogs = ["mine"]')
    result = here("validate", "wire.yaml", "--catalog", "mine")

    assert (0, "1 document checked, no findings.\n", "") == (result.status, result.out, result.err)


def test_a_catalog_stands_in_for_the_shipped_one(here) -> None:
    """A document of its own under a shipped name is not a second one; two in one catalog are."""
    text = (ROOT / "catalog" / "links" / "efa.yaml").read_text()
    folder = catalog_of(here.folder / "mine", SOUND)
    (folder / "links" / "efa.yaml").write_text(text)

    assert set() == marks(here("validate", "--catalog", "mine", "--format", "json").out)

    (folder / "links" / "again.yaml").write_text(text)
    found = json.loads(here("validate", "--catalog", "mine", "--format", "json").out)["diagnostics"]

    assert {("mine/links/efa.yaml", "TRN204"), ("mine/links/again.yaml", "TRN205")} == {
        (d["file"], d["code"]) for d in found
    }


def test_a_broken_document_is_one_finding(here) -> None:
    """Those that refer to it have the shipped one."""
    folder = catalog_of(here.folder / "mine", SOUND)
    (folder / "links" / "efa.yaml").write_text("kind: [")
    found = json.loads(here("validate", "--catalog", "mine", "--format", "json").out)["diagnostics"]

    assert {("mine/links/efa.yaml", "TRN004"), ("mine/links/efa.yaml", "TRN053")} == {
        (d["file"], d["code"]) for d in found
    }


def test_catalogs_of_plugins_are_checked(tmp_path) -> None:
    site = Site(tmp_path / "site")
    folder = site.catalog("acme", {"links/wire.yaml": SOUND})
    shipped = len(list((ROOT / "catalog").rglob("*.yaml")))

    assert f"{shipped + 1} documents checked, no findings.\n" == site.run("validate").out
    assert f"{shipped} documents checked, no findings.\n" == site.run("--no-plugins", "validate").out

    (folder / "links" / "wire.yaml").write_text(WRONG)
    result = site.run("validate", "--format", "json")

    assert (1, MARKS) == (result.status, marks(result.out))


def test_table(here) -> None:
    result = here("validate", "--table")
    rows = {line.split()[0]: line for line in result.out.splitlines() if line}

    assert result.status == 0
    assert "16 x trainium1" in rows["trn1.32xlarge"]
    assert "3,040 TFLOPS" in rows["trn1.32xlarge"]
    assert "no findings" in result.out.splitlines()[-1]


# Misuse.


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nope.yaml"], "nope.yaml does not exist"),
        (["--select", "TRN999"], "no code is or begins with 'TRN999'; did you mean 'TRN9"),
        (["--ignore", "TRM101"], "no code is or begins with 'TRM101'; did you mean 'TRN1"),
        (["--severity", "TRN40Z=info"], "no code is or begins with 'TRN40Z'; did you mean 'TRN40"),
        (["--severity", "TRN402"], "write CODE=LEVEL, for instance TRN402=warning"),
        (["--severity", "TRN402=fatal"], "'fatal' is not a severity; write one of info, warning, error"),
        (["--catalog", "nope"], "nope does not exist"),
        (["--catalog", "wire.yaml"], "the catalog wire.yaml is not a folder"),
        (["--catalog", ".git"], ".git holds no .yaml files"),
        (["--table", "--format", "json"], "--table"),
        (["--format", "xml"], "'xml' is not one of"),
        (["--nope"], "No such option"),
    ],
)
def test_misuse(here, args, message) -> None:
    """Exit status 2, one message on standard error, nothing on standard output."""
    result = here("validate", *args)

    assert (result.status, result.out) == (2, "")
    assert message in result.err


# Settings.


def test_settings_of_a_project_hold_below_it(here) -> None:
    (here.folder / "pyproject.toml").write_text('[tool.trnspec]\nignore = ["TRN101"]\n')
    below = here.folder / "bad"

    assert {"TRN102"} == {c for c, _ in marks(apart("validate", "wire.yaml", "--format", "json", cwd=below).out)}


@pytest.mark.parametrize(
    ("settings", "args", "codes"),
    [
        ('select = ["TRN101"]', ["--select", "TRN102"], {"TRN102"}),
        ('ignore = ["TRN101"]', ["--select", "TRN101"], {"TRN101"}),
        ('ignore = ["TRN101"]', ["--ignore", "TRN102"], set()),
        ('select = ["TRN101"]', ["--ignore", "TRN101"], set()),
    ],
)
def test_command_line_wins(here, settings, args, codes) -> None:
    (here.folder / "trnspec.toml").write_text(settings)

    assert codes == {c for c, _ in marks(here("validate", "bad", "--format", "json", *args).out)}


def test_severity_on_the_command_line_wins(here) -> None:
    (here.folder / "trnspec.toml").write_text("severity = {TRN101 = 'error', TRN102 = 'error'}")

    assert (here("validate", "bad").status, here("validate", "bad", "--severity", "TRN1=info").status) == (1, 0)


@pytest.mark.parametrize("text", ['selct = ["TRN1"]', 'select = ["TRN999"]'])
def test_wrong_settings_are_misuse(here, text) -> None:
    (here.folder / "trnspec.toml").write_text(text)
    result = here("validate", "wire.yaml")

    assert (result.status, result.out) == (2, "")
    assert "did you mean" in result.err


# Colour.


def at_a_terminal(*args: str, cwd: Path, **env: str) -> str:
    """What the command line writes when a terminal listens."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command(*args), cwd=cwd, stdin=slave, stdout=slave, stderr=slave, env=environment(**{"TERM": "xterm"} | env)
    )
    os.close(slave)
    written = b""
    try:
        while part := os.read(master, 65_536):
            written += part
    except OSError:
        pass  # this is how a terminal of Linux says that the other side has gone
    os.close(master)
    process.wait(60)
    return written.decode()


def test_colour_at_a_terminal(here) -> None:
    assert "\x1b[1;31merror\x1b[0m" in at_a_terminal("validate", "bad", cwd=here.folder)


@pytest.mark.parametrize(
    ("args", "env"),
    [([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--format", "json"], {}), (["--format", "sarif"], {})],
)
def test_no_colour_at_a_terminal(here, args, env) -> None:
    written = at_a_terminal("validate", "bad", *args, cwd=here.folder, **env)

    assert "TRN101" in written
    assert "\x1b" not in written


def test_no_colour_in_a_pipe(here) -> None:
    assert "\x1b" not in apart("validate", "bad", cwd=here.folder, TERM="xterm").out


# The world.


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [("text", "latin-1"), *((f, "ascii") for f in ("text", "json", "sarif", "github", "junit"))],
)
def test_narrow_encodings(here, encoding, kind) -> None:
    """A character that the output cannot hold is no reason to fail."""
    (here.folder / "bad" / "wire.yaml").write_text(SOUND.replace("chips", "光→Straße"), encoding="utf-8")
    done = subprocess.run(
        command("validate", "bad", "--format", kind),
        cwd=here.folder,
        env=environment(PYTHONIOENCODING=encoding),
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, b"")
    if kind == "json":
        assert "光→Straße" in json.loads(done.stdout)["diagnostics"][0]["text"]


def test_name_that_is_not_utf8(here) -> None:
    name = os.fsdecode(b"w\xff.yaml")
    try:
        (here.folder / name).write_text(WRONG)
    except OSError:
        pytest.skip("this file system knows no such names")
    for kind in ("text", "json", "sarif", "github", "junit"):
        result = here("validate", name, "--format", kind)

        assert (result.status, result.err) == (1, "")
        assert result.out.encode()


def test_reader_that_goes(here) -> None:
    """As in ``trnspec validate | head -1``, also with more to write than a pipe holds."""
    for number in range(600):
        (here.folder / "bad" / f"n{number}.yaml").write_text(WRONG)
    process = subprocess.Popen(
        command("validate", "bad"),
        cwd=here.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
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


@pytest.mark.parametrize(("redirection", "status"), [(">&-", 1), ("2>&-", 1), ("<&-", 1), ("- <&-", 2)])
def test_closed_streams(here, redirection, status) -> None:
    line = f'"{sys.executable}" -m trnspec validate bad {redirection}'
    done = subprocess.run(line, shell=True, cwd=here.folder, env=environment(), capture_output=True, check=False)

    assert status == done.returncode
    assert b"Traceback" not in done.stderr


def test_interrupted(tmp_path: Path) -> None:
    """``Ctrl-C`` while it waits for its input."""
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
    """The current folder was deleted: one message."""
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
        ("link.yaml", 2, "link.yaml is a link to nothing"),
        ("inside", 1, "inside/link.yaml: error TRN001"),
    ],
)
def test_what_is_no_file(here, path, status, message) -> None:
    """One clear message each."""
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


@pytest.mark.parametrize(
    ("locked", "mode", "path", "status", "message"),
    [
        ("bad", 0o000, "bad", 2, "the folder bad cannot be read: Permission denied"),
        ("bad", 0o000, "bad/wire.yaml", 2, "bad/wire.yaml cannot be read: Permission denied"),
        ("bad", 0o000, ".", 2, "bad cannot be read: Permission denied"),
        ("bad", 0o111, "bad/wire.yaml", 1, "bad/wire.yaml:4:1: error TRN101"),
        ("wire.yaml", 0o000, "wire.yaml", 1, "wire.yaml: error TRN001"),
        ("trnspec.toml", 0o000, "wire.yaml", 2, "trnspec.toml"),
    ],
)
def test_without_permission(here, locked, mode, path, status, message) -> None:  # a table of cases
    """A file or a folder that may not be read is named, and what may be read is."""
    if locked == "trnspec.toml":
        Path(locked).write_text("")
    Path(locked).chmod(mode)
    try:
        done = subprocess.run(
            [*unprivileged(), *command("validate", path)],
            cwd=here.folder,
            env=environment(),
            capture_output=True,
            check=False,
            text=True,
        )
    finally:
        Path(locked).chmod(0o755)

    assert status == done.returncode
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


# Start-up.

PROBE = """
import json, sys
from trnspec.cli import main
sys.argv = ["trnspec", "validate", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    heavy = ("numpy", "jsonschema", "rich", "networkx", "trnspec.schema", "trnspec.testing", "trnspec.cli.tables")
    print(json.dumps([end.code, sorted(h for h in heavy if h in sys.modules)]))
"""


@pytest.mark.parametrize(("path", "found"), [("wire.yaml", [0, []]), ("bad", [1, ["jsonschema", "trnspec.schema"]])])
def test_sound_file_imports_nothing_heavy(here, path, found) -> None:
    """An unsound file shows that the probe sees what is imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, path], cwd=here.folder, env=environment(), capture_output=True, check=True
    )

    assert found == json.loads(done.stdout.splitlines()[-1])
