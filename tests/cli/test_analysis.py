"""Options that every evaluator has: --assume, --use-claims, --sensitivity, --target with --vary, --trace."""

import json

import pytest

import trnspec

CATALOG = trnspec.load()
TRAINING = ("eval", "training", "--model", "llama-3.1-8b", "--on", "trn2.48xlarge*2", "--seq", "4096", "--global-batch",
            "64", "--tp", "8", "--pp", "2", "--calibration", "none", "--no-must-fit")  # fmt: skip
INPUTS = {"model": "llama-3.1-8b", "on": "trn2.48xlarge*2", "seq": 4096, "global_batch": 64, "tp": 8, "pp": 2,
          "calibration": "none", "must_fit": False}  # fmt: skip
NETWORK = "trn2.48xlarge.network.bandwidth"


def test_sensitivity(here) -> None:
    expected = trnspec.sensitivity("training", CATALOG, **INPUTS)
    text = here(*TRAINING, "--sensitivity", "--full")
    rows = here(*TRAINING, "--format", "csv", "--sensitivity").rows
    (table,) = here(*TRAINING, "--sensitivity", "--format", "json").data["tables"]

    assert (0, "") == (text.status, text.err)
    assert [str(r["figure"]) for r in expected.records()] == [r["figure"] for r in rows]
    assert [r["elasticity"] for r in expected.records()] == [float(r["elasticity"]) for r in rows]
    assert expected.title == table["title"]
    assert [list(r) for r in expected.rows] == table["rows"]
    assert "Sensitivity of step_time" in text.out.splitlines()
    assert [r["figure"] for r in rows] == [w for line in text.out.splitlines() if (w := line.partition(" ")[0]) in
                                           {r["figure"] for r in rows}]  # fmt: skip


def test_sensitivity_of_a_sweep(here) -> None:
    """In CSV each row of the table has the combination before it; as text it is refused."""
    text = here(*TRAINING, "--zero", "0,1", "--sensitivity")
    rows = here(*TRAINING, "--zero", "0,1", "--sensitivity", "--format", "csv").rows

    assert 2 == text.status
    assert {"0", "1"} == {r["zero"] for r in rows}
    assert {"figure", "elasticity", "refused"} <= set(rows[0])


def test_target(here) -> None:
    expected = trnspec.solve("training", CATALOG, "step_time=2 s", "trainium2.tensor_peak.dense.bf16", **INPUTS)
    found = here(
        *TRAINING, "--target", "step_time=2 s", "--vary", "trainium2.tensor_peak.dense.bf16", "--format", "json"
    )
    brief = here(*TRAINING, "--target", "step_time=2 s", "--vary", "trainium2.tensor_peak.dense.bf16").out
    answers = {a["name"]: a["value"] for a in found.data["answers"]}

    assert {"needed", "present", "ratio", "step_time"} <= set(answers)
    assert expected["needed"] == answers["needed"]
    assert 2.0 == pytest.approx(answers["step_time"])
    assert expected.answer("needed").note.rpartition(": ")[2] in " ".join(brief.split())


def test_target_out_of_reach(here) -> None:
    text = here(*TRAINING, "--target", "step_time=1 ms", "--vary", NETWORK)
    data = here(*TRAINING, "--target", "step_time=1 ms", "--vary", NETWORK, "--format", "json")

    assert (1, "") == (text.status, text.out)
    assert "out-of-reach" in text.err
    assert (1, NETWORK) == (data.status, data.data["refusal"]["place"])


def test_assume(here) -> None:
    assume = (f"{NETWORK}=6,400 Gbps", "trainium2.memory.bandwidth=3 TB/s")
    expected = trnspec.evaluate("training", CATALOG, assume=dict(a.split("=") for a in assume), **INPUTS)
    found = here(*TRAINING, "--assume", assume[0], "--assume", assume[1], "--format", "json")
    data = found.data

    assert expected["step_time"] == data["answers"][0]["value"]
    assert [NETWORK, "trainium2.memory.bandwidth"] == [a["name"] for a in data["assumptions"][:2]]


def test_suggested_commands_repeat_assumptions(here) -> None:
    options = [o for o in TRAINING if o != "--no-must-fit"]
    found = here(*options, "--assume", "trainium2.memory.capacity=2 GiB")

    assert 1 == found.status
    assert "--assume 'trainium2.memory.capacity=2 GiB'" in found.err


def test_trace(here) -> None:
    found = here(*TRAINING, "--trace", "out.json")
    again = here(*TRAINING, "--trace", "again.json")
    written = (here.folder / "out.json").read_text(encoding="utf-8")

    assert (0, 0) == (found.status, again.status)
    assert trnspec.trace("training", CATALOG, **INPUTS) == json.loads(written)
    assert written == (here.folder / "again.json").read_text(encoding="utf-8")
    assert [".git", "again.json", "out.json"] == sorted(f.name for f in here.folder.iterdir())


def test_execution_traces(here) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    smaller = {"trn2.48xlarge*2": "trn1.32xlarge", "64": "4"}
    options = (smaller.get(option, option) for option in TRAINING)
    done = here(*options, "--trace", "out.et")
    written = {file.name.removeprefix("out.") for file in here.folder.iterdir()}

    assert 0 == done.status
    assert {"0.et", "groups.json", "network.yml", "system.json"} <= written


def test_no_trace_without_an_answer(here) -> None:
    found = here(*TRAINING, "--dp", "3", "--trace", "out.json")

    assert 1 == found.status
    assert [".git"] == [file.name for file in here.folder.iterdir()]


def test_only_evaluators_with_a_timeline_have_the_option(here) -> None:
    assert "--trace" in here("eval", "training", "--help").out
    assert "--trace" not in here("eval", "inference", "--help").out
    for name in ("inference", "collective", "roofline", "search"):
        help_ = here("eval", name, "--help").out
        assert all(o in help_ for o in ("--assume", "--use-claims", "--sensitivity", "--target", "--vary"))


def test_ranges_and_varied_figures(here) -> None:
    """The rows are those of the sweep in Python; figures are in base units in CSV and as written elsewhere."""
    options = [o for o in TRAINING if o not in ("--tp", "8")]
    options = [*options, "--tp", "4..16:x2", "--vary", f"{NETWORK}=1.6..3.2Tbps:x2,6.4Tbps"]
    axes = {"tp": [4, 8, 16], "vary": {NETWORK: ["1.6 Tbps", "3.2 Tbps", "6.4 Tbps"]}}
    expected = trnspec.sweep("training", CATALOG, **{**INPUTS, **axes})
    table = here(*options, "--format", "csv").rows
    data = here(*options, "--format", "json").data
    records = expected.records()

    assert [(r["tp"], r[NETWORK], r["step_time"]) for r in records] == [
        (int(r["tp"]), float(r[f"{NETWORK} [B/s]"]), float(r["step_time [s]"])) for r in table
    ]
    assert [dict(c) for c, _ in expected] == [row["combination"] for row in data["rows"]]
    assert ["tp", NETWORK] == data["swept"]
    by_figure = here(*options, "--format", "markdown", "--sort", f"-{NETWORK}").out.splitlines()
    assert ["6.4 Tbps"] * 3 == [line.split(" | ")[1] for line in by_figure if line.startswith("| ")][2:5]


def test_a_trace_that_cannot_be_written(here) -> None:
    (here.folder / "folder").mkdir()
    found = here(*TRAINING, "--trace", "folder")

    assert 2 == found.status
    assert "--trace: folder" in found.err
