"""trnspec.__main__: an interrupt while the command line is imported."""

import pytest

import trnspec.cli
from trnspec.__main__ import main


def test_interrupted(monkeypatch, capsys) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gc.set_threshold", lambda _: None)
    monkeypatch.setattr(trnspec.cli, "main", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()

    # The status that shells use for a process that SIGINT ended.
    assert (ended.value.code, capsys.readouterr().err) == (130, "trnspec: interrupted\n")
