"""The command line of a call, without a server."""

import sys

import pytest

from tests.support.programs import ROOT, Here
from trnspec.errors import UsageError
from trnspec.mcp.arguments import declared, described, options
from trnspec.mcp.commands import TIME_LIMIT, answer


@pytest.fixture(scope="module")
def known() -> tuple:  # type: ignore[type-arg]
    return declared("training")[1]


def test_options(known: tuple) -> None:  # type: ignore[type-arg]
    given = {
        "model": "llama-3.1-8b", "tp": [8, 16], "flash": False, "uneven": True, "global-batch": 64, "dp": None, "imbalance": 1.5,
        "set": ["a.b=1 TB/s", "c.d=2"], "use_claims": False,
    }  # fmt: skip
    assert [*options(known, given)] == [
        "--model=llama-3.1-8b", "--tp=8,16", "--no-flash", "--uneven", "--global-batch=64", "--imbalance=1.5",
        "--set=a.b=1 TB/s", "--set=c.d=2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given", [{"trace": "out.json"}, {"plot": "a.svg"}, {"catalog": "x"}, {"model": {"a": 1}}, {"tp": [[1]]}]
)
def test_refuses_unknown_inputs(known: tuple, given: dict[str, object]) -> None:  # type: ignore[type-arg]
    with pytest.raises(UsageError, match=repr(next(iter(given)))):
        [*options(known, given)]


def test_unknown_names(known: tuple) -> None:  # type: ignore[type-arg]
    with pytest.raises(UsageError, match="training"):
        declared("trainig")
    with pytest.raises(UsageError, match=r"^'modl' is not an input; did you mean 'model'"):
        [*options(known, {"modl": 1})]


def test_described(known: tuple) -> None:  # type: ignore[type-arg]
    inputs = {one.name: described(one) for one in known}
    assert inputs["schedule"] == {
        "name": "schedule",
        "type": "string",
        "help": inputs["schedule"]["help"],
        "required": False,
        "choices": ["1f1b", "interleaved", "gpipe", "zb1p", "zb2p", "zbv", "v-half", "v-min"],
        "default": "1f1b",
    }
    assert inputs["seq"]["unit"] == "TOKENS"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        # Refused before a process is started.
        (["audit", "a\0b"], "audit: an argument is not a text"), (["audit", "\ud800"], "audit: an argument is not a text"),
        (["show", "trainium9"], "^no document is named 'trainium9'"), (["no", "x"], "^No such command 'no'"),
    ],
)  # fmt: skip
def test_commands_without_an_answer(command: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        answer(command[:1], command[1:])


def test_a_value_that_differs_is_an_answer() -> None:
    assert answer(["check"], ["trn2.48xlarge", "memory.bandwidth", "4 TB/s"])["outcome"] == "differs"


def test_without_the_extra(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    done = here("mcp")
    assert (2, True) == (done.status, "pydantic cannot be imported" in done.err or "'trnspec[mcp]'" in done.err)


def test_the_time_limit_is_that_of_the_manual() -> None:
    page = (ROOT / "docs" / "how-to" / "connect-an-agent.md").read_text("utf-8")
    assert (300, True) == (TIME_LIMIT, "A call is limited to five minutes." in page)
