"""``trnspec calibrate import``: excerpts of published logs and results; their sources are in tests/data/imports."""

import shutil

import pytest

from tests.support.programs import DATA, NVIDIA
from tests.support.tables import tables
from trnspec.errors import UsageError
from trnspec.loading.benchmark_logs.formats import FORMATS, imported
from trnspec.loading.benchmark_logs.log import Log, whole

SAMPLES = DATA / "imports"


def rows(name: str, file: str, warmup: int = 5) -> list[dict[str, str]]:
    return imported(name, Log(file, (SAMPLES / file).read_text(encoding="utf-8")), "x", {}, warmup)


def columns(found: list[dict[str, str]], *names: str) -> list[tuple[str, ...]]:
    return [tuple(row.get(name, "") for name in names) for row in found]


def message(name: str, text: str, warmup: int = 5) -> str:
    with pytest.raises(UsageError) as caught:
        imported(name, Log("f", text), "x", {}, warmup)
    return str(caught.value)


@pytest.mark.parametrize(("name", "file", "number", "names", "expected"), tables(__file__)["rows_of_a_log"])
def test_rows_of_a_log(name, file, number, names, expected) -> None:
    found = rows(name, file)

    assert number == len(found)
    assert {tuple(line.split("|")) for line in expected} <= set(columns(found, *names.split()))
    assert ("failed requests: 1" in found[0].get("note", "")) is (file == "vllm_bench_failed.json")


def test_nccl_tests_without_a_check_of_values() -> None:
    text = "# size count type time algbw busbw time algbw busbw\n 1024 256 float 30 0.03 0.06 31 0.03 0.06\n"
    found = imported("nccl-tests", Log("f", text), "x", {}, 0)

    assert [("30", ""), ("31", "")] == [(row["time_us"], row.get("note", "")) for row in found]


@pytest.mark.parametrize(("names", "model"), [('["a"]', "a"), ('["a", "b"]', "")])
def test_a_run_of_several_models_names_none(names, model) -> None:
    text = (SAMPLES / "aiperf.json").read_text(encoding="utf-8").replace('["Qwen/Qwen3-0.6B"]', names)
    (row,) = imported("aiperf", Log("f", text), "x", {}, 0)

    assert model == row.get("model", "")


def test_nccl_tests_twice_in_a_file() -> None:
    first = (SAMPLES / "nccl_all_reduce_h100.log").read_text(encoding="utf-8")
    text = first + "# Collective test starting: alltoall_perf\n" + first.replace("#  Rank  7", "#")
    found = imported("nccl-tests", Log("f", text), "x", {}, 0)

    assert columns(found, "id", "collective", "ranks")[::8] == [
        ("x-1024-out-of-place", "", "8"),
        ("x-1024-out-of-place-2", "all_to_all", "7"),
    ]


def test_nccl_wrong_values_in_place_and_ranks_in_any_order() -> None:
    lines = (SAMPLES / "nccl_all_reduce_h100.log").read_text(encoding="utf-8").splitlines()
    lines[3:5] = lines[4:2:-1]
    found = imported("nccl-tests", Log("f", "\n".join(lines).replace("467.85      0", "467.85      2")), "x", {}, 0)

    (wrong,) = (row for row in columns(found, "id", "ranks", "note") if "2 wrong values" in row[2])
    assert ("x-1073741824-in-place", "8") == wrong[:2]


def test_steps_after_the_warmup() -> None:
    assert columns(rows("megatron", "megatron.log", warmup=0), "step_time_s") == [("5.5338",)]
    assert columns(rows("megatron", "megatron.log", warmup=43), "step_time_s") == [("5.7186",)]
    # The lines of one step of three ranks are one step.
    assert columns(rows("torchtitan", "torchtitan_colors.log", warmup=0), "tokens_per_s_per_chip", "note") == [
        ("7865", "median of 1 printed steps")
    ]


@pytest.mark.parametrize(
    ("name", "before", "file", "expected"),
    [
        ("megatron", "megatron_arguments.log", "megatron.log", ("16", "8", "2", "1", "")),
        ("torchtitan", "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=2, ep=4, etp=1\n", "torchtitan_colors.log", ("16", "2", "1", "1", "")),
        ("torchtitan", "Building 2-D device mesh with ['dp', 'tp'], [4, 2]\n", "torchtitan_colors.log", ("8", "2", "", "", "")),
    ],
)  # fmt: skip
def test_degrees_of_a_log(name, before, file, expected) -> None:
    text = (SAMPLES / before).read_text(encoding="utf-8") if before.endswith(".log") else before
    text += (SAMPLES / file).read_text(encoding="utf-8")

    assert columns(imported(name, Log("f", text), "x", {}, 0), "n_chips", "tp", "pp", "cp", "ep") == [expected]


def test_nxd() -> None:
    """All states of the progress bar may be in one line."""
    text = (SAMPLES / "nxd.log").read_text(encoding="utf-8")

    for each in (text, text.replace("\n", "\r")):
        found = imported("nxd", Log("f", each), "x", {}, 0)
        assert columns(found, "step_time_s", "global_batch", "framework") == [("18", "128", "nxd")]


@pytest.mark.parametrize(("name", "text", "expected"), tables(__file__)["errors_name_file_and_line"])
def test_errors_name_file_and_line(name, text, expected) -> None:
    assert message(name, text)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("name", "file", "hint"),
    [
        ("genai-perf", "genai_perf_not_streamed.json", "only a run with --streaming measures it"),
        ("aiperf", "aiperf_failed.json", "requests failed; see error_summary"),
        ("nxd", "nxd.log", "--warmup N takes fewer"),
    ],
)
def test_hints(name, file, hint) -> None:
    assert message(name, (SAMPLES / file).read_text(encoding="utf-8")).rpartition("hint: ")[2] == hint


def test_missing_columns_are_listed(here) -> None:
    done = here("calibrate", "import", "nccom-test", SAMPLES / "nccom_all_gather.log")

    assert done.status == 0
    assert "not stated: hardware;" in done.err
    assert [row["hardware"] for row in done.rows] == [""]


@pytest.mark.parametrize(("args", "seconds"), [((), "5.5338"), (("--warmup", "43"), "5.7186")])
def test_the_warmup_of_the_command(here, args, seconds) -> None:
    done = here("calibrate", "import", "megatron", SAMPLES / "megatron.log", *args)

    assert [seconds] == [row["step_time_s"] for row in done.rows]


def test_a_file_is_not_overwritten(here) -> None:
    (here.folder / "mine.csv").write_text("kept")
    done = here("calibrate", "import", "nxd", SAMPLES / "nxd.log", "--warmup", "0", "--out", "mine.csv")

    assert (done.status, (here.folder / "mine.csv").read_text()) == (2, "kept")
    assert done.err.endswith("trnspec: mine.csv exists; remove it, or name another file\n")


SETTINGS = {
    "nccl-tests": ("nccl_all_reduce_h100.log", "hardware=p5.48xlarge collective=all_reduce"),
    "nccom-test": ("nccom_all_gather.log", "hardware=trn1.32xlarge"),
    "vllm-bench": (
        "vllm_bench.json",
        "model=llama-3.2-3b hardware=H100 precision=bf16 batch_conc=4 framework=vllm tp=1 n_chips=1",
    ),
    "genai-perf": (
        "genai_perf.json",
        "model=qwen3-0.6b hardware=H100 precision=bf16 framework=trtllm n_chips=1 batch_conc=1",
    ),
    "aiperf": ("aiperf.json", "model=qwen3-0.6b hardware=H100 precision=bf16 framework=vllm n_chips=1 isl=100 osl=200"),
    "megatron": (
        "megatron.log",
        "model=mixtral-8x7b hardware=DGX-H100 n_chips=16 seq=4096 precision=bf16 tp=4 ep=8 microbatch=1",
    ),
    "torchtitan": ("torchtitan.log", "model=llama-3.1-8b hardware=H200 precision=bf16"),
    "nxd": ("nxd.log", "model=llama-3.1-8b hardware=trn1.32xlarge n_chips=16 seq=8192 precision=bf16 tp=32"),
}
"""For each format a sample, and settings that it does not state; some of them are not those of the published run."""


@pytest.mark.slow
def test_the_rows_are_read_by_eval_accuracy(here) -> None:
    assert set(SETTINGS) == set(FORMATS)
    for name, (file, settings) in SETTINGS.items():
        shutil.copy(SAMPLES / file, here.folder / file)
        given = [part for setting in settings.split() for part in ("--set", setting)]
        warmup = ["--warmup", "0"] if FORMATS[name].steps else []
        done = here("calibrate", "import", name, file, *given, *warmup, "--out", f"{name}.csv")
        assert (done.status, done.err.partition(":")[0]) == (0, f"wrote {name}.csv")

    tables = ",".join(f"{name}.csv" for name in SETTINGS)
    done = here("eval", "accuracy", "--data", tables, "--catalog", NVIDIA, "--format", "csv")

    assert done.status == 0
    read = [row for row in done.rows if not row["skipped"]]
    assert {(row["set"], row["part"]) for row in read} >= {
        ("nccl-tests", "collective"), ("nccom-test", "collective"), ("vllm-bench", "tpot"), ("genai-perf", "tpot"),
        ("aiperf", "ttft"), ("megatron", "step"), ("megatron", "memory"), ("torchtitan", "step"), ("nxd", "step"),
    }  # fmt: skip
    measured = {(row["set"], row["part"]): float(row["measured"]) for row in read}
    assert measured["nxd", "step"] == 18.0
    assert measured["vllm-bench", "tpot"] == pytest.approx(0.013578)
    assert measured["torchtitan", "step"] == pytest.approx(8 * 8192 / 8 / 7074, rel=1e-3)


@pytest.mark.parametrize(("mean", "cell", "noted"), [(10.4, "10", 1), (10.6, "11", 1), (10.0, "10", 0)])
def test_means_of_tokens(mean, cell, noted):
    notes = []
    assert (cell, [f"isl is the mean {mean:.6g}, rounded"] * noted) == (whole("isl", mean, notes), notes)
