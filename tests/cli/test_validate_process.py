"""``trnspec validate`` as a process: its terminal, its streams, and what it may not read."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.programs import SOUND, WRONG, at_a_terminal, command, environment, forked


@pytest.fixture
def here(here_bad):
    return here_bad


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
        assert "光→Straße" in json.loads(done.out)["diagnostics"][0]["text"]


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
