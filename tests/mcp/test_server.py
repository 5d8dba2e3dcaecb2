"""The MCP server as an agent sees it: a process of its own, and the client of the official library."""

import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from tests.support.programs import ROOT, completed, environment, forked
from tests.support.tables import tables

pytestmark = pytest.mark.slow  # each call runs a program


def session(work: Callable[[ClientSession], Coroutine[Any, Any, Any]]) -> Any:
    """What ``work`` returns, given a session with a server of its own."""

    async def talk() -> Any:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "trnspec", "mcp"], env=environment(), cwd=ROOT
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            return await work(client)

    return completed(talk())


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What each tool answers, by the name of the call."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "find": ("find", {"query": "chip where memory.capacity > 90 GiB", "columns": ["memory.capacity", "dies"]}),
        "show": ("show", {"name": "trainium2"}),
        "compare": ("compare", {"names": ["trainium2", "trainium1"]}),
        "check": ("check", {"name": "trn2.48xlarge", "figure": "memory.bandwidth", "value": "46 TB/s"}),
        "audit": ("audit", {"name": "trainium1", "figure": "memory.capacity"}),
        "evaluators": ("evaluators", {}),
        "inputs": ("evaluators", {"name": "collective"}),
        "evaluate": (
            "evaluate",
            {"evaluator": "collective", "inputs": {"kind": "all-reduce", "size": "1 MiB", "on": "trn2.48xlarge"}},
        ),
        "plan": (
            "plan",
            {"phase": "train", "inputs": {"model": "llama-3.1-8b", "tokens": "1T", "on": "trn1.32xlarge", "count": 8}},
        ),
        "unknown": ("show", {"name": "trainium9"}),
        "file": ("evaluate", {"evaluator": "training", "inputs": {"plot": "chart.svg"}}),
        "option": ("show", {"name": "--help"}),
    }

    async def work(client: ClientSession) -> dict[str, Any]:
        results: dict[str, Any] = {"tools": await client.list_tools()}
        for key, (tool, arguments) in calls.items():
            results[key] = await client.call_tool(tool, arguments)
        return results

    found: dict[str, Any] = session(work)
    return found


def test_tools(answers: dict[str, Any]) -> None:
    tools = {t.name: t for t in answers["tools"].tools}
    assert set(tools) == {"find", "show", "compare", "check", "audit", "evaluators", "evaluate", "plan"}
    for tool in tools.values():
        assert tool.description
        assert (True, False) == (tool.annotations.read_only_hint, tool.annotations.open_world_hint)
        assert all(p.get("description") for p in tool.input_schema["properties"].values())


def test_evaluators_and_their_inputs(answers: dict[str, Any]) -> None:
    evaluators = {e["name"] for e in answers["evaluators"].structured_content["evaluators"]}
    inputs = {i["name"] for i in answers["inputs"].structured_content["inputs"]}

    assert evaluators >= {"training", "inference", "collective", "plan-train", "plan-serve"}
    assert inputs >= {"kind", "size", "on"}


@pytest.mark.parametrize(("call", "command"), tables(__file__)["tool_answer_equals_command_output"])
def test_tool_answer_equals_command_output(answers: dict[str, Any], call: str, command: list[str]) -> None:
    assert answers[call].structured_content == forked(*command, "--format", "json", cwd=ROOT, path=ROOT).data


def test_every_number_of_a_result_has_unit_interval_source_and_date(answers: dict[str, Any]) -> None:
    found = answers["find"].structured_content["figures"]
    assert {(f["name"], f["unit"], f["source"], f["date"]) for f in found} >= {
        ("trainium2", "B", "neuron-trainium2-2026-08", "2026-08-21")
    }
    assert all(f["low"] <= f["high"] for f in found)
    compared = [r for r in answers["compare"].structured_content["rows"] if r["at"] == "memory.bandwidth"]
    assert [(r["document"], r["unit"], bool(r["source"]), bool(r["date"]), r["low"] < r["high"]) for r in compared] == [
        ("trainium2", "B/s", True, True, True),
        ("trainium1", "B/s", True, True, True),
    ]
    evaluated = answers["evaluate"].structured_content
    assert all({"value", "low", "high", "unit", "kind"} <= set(a) for a in evaluated["answers"])
    assert all(f["source"] for f in evaluated["figures_used"])


@pytest.mark.parametrize(("call", "part"), [("unknown", "'trainium3'"), ("file", "'plot'"), ("option", "'--help'")])
def test_error_messages_name_the_cause(answers: dict[str, Any], call: str, part: str) -> None:
    assert answers[call].is_error
    assert part in answers[call].content[0].text
