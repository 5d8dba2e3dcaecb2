"""Published measurements as cases: which rows become one, why the others do not, and files that are none."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.engine import everything, shipped
from trnspec.errors import UsageError
from trnspec.loading.files import shipped as folder
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured import cells, tables
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.tables import records
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases
from trnspec.perf.work.validity import check

DATA = folder() / "measured"
MODEL = "the catalog has no model like {!r}, and the row lacks its dimensions"
FILES = {
    "training_a100_vtrain.csv": (774, {}),
    "training_h100.csv": (12, {}),
    "training_korthikanti.csv": (8, {}),
    "training_megatron_bridge.csv": (120, {
        "fine-tuning of adapters (LoRA), whose frozen weights have no gradients": 3,
        "dp x cp, which is 32, is not divisible by ep 64": 1,
    }),
    "training_megatron_sc21.csv": (22, {}),
    "training_mpt.csv": (102, {}),
    "training_torchtitan.csv": (17, {"the row states no global batch": 1}),
    "training_trn1.csv": (7, {
        **{MODEL.format(n): 1 for n in (
            "GPT3-23B pre-training", "GPT3-46B pre-training", "HuggingFace CLIP-Base fine-tuning",
            "HuggingFace Vision-Perveriver-Conv fine-tuning", "HuggingFace Language-Perveriver fine-tuning")},
        "the row states no seq": 3,
    }),
    "training_mlperf.csv": (23, {
        **{f"unknown hardware {name!r}": many for name, many in {
            "Intel(R) Gaudi(R) 2 AI Accelerator": 1, "TPU-trillium": 4, "TPU-v5p": 1, "AMD Instinct MI350X": 2,
            "AMD Instinct MI355X": 2}.items()},
        "the precision is one of two: FP8 or NVFP4 (both configs submitted)": 3,
        "the row states no precision": 7,
    }),
    "training_simumax.csv": (27, {}),
    **dict.fromkeys((
        "attention_decode_gpu.csv", "attention_prefill_gpu.csv", "collectives_gpu.csv", "collectives_nccl.csv",
        "collectives_nccom.csv", "collectives_neuron.csv", "device_profile_neuron.csv", "gemm_gpu.csv",
        "inference_h100_reference.csv", "inference_neuron.csv", "inference_neuron_2026.csv",
        "inference_neuron_failed.csv", "matmul.csv", "moe_gpu.csv", "ops_neuron.csv", "serving_gpu.csv"), (0, {})),
}  # fmt: skip


def test_every_file_is_known():
    assert {f.name for f in DATA.glob("*.csv")} == set(FILES)


def test_rows_excluded_from_every_fit():
    fitted = {each.table for n in everything().of(Calibration) for each in n.spec.tables}
    files = {name for name, (many, _) in FILES.items() if many}
    assert {"training_korthikanti.csv"} == files - fitted


@pytest.mark.parametrize("name", FILES)
def test_rows(name):
    rows = records(DATA / name)
    found = list(training_cases(everything(), rows))
    cases = [c for c in found if isinstance(c, TrainingCase)]
    assert FILES[name] == (len(cases), Counter(s.reason for s in found if isinstance(s, Skipped)))
    assert sum(row["kind"] == "train" for row in rows) == len(found)
    for case in cases[:: max(1, len(cases) // 40)]:
        check(case.layout, case.dims, int(case.system.ranks))
        assert 1e-3 < case.seconds < 1e3
        assert case.dtype in case.system.rates


def test_without_the_catalogs_of_plugins():
    """Each row says which document it would need."""
    found = list(training_cases(shipped().graph, records(DATA / "training_torchtitan.csv")))
    assert {True} == {isinstance(s, Skipped) and "grand-teton-h100" in s.reason for s in found}


ROW = {
    "kind": "train", "id": "a", "model": "Llama-3.1-8B pre-training", "layers": "32", "hidden": "4096", "ffn": "14336",
    "heads": "32", "kv_heads": "8", "vocab": "128256", "seq": "8192", "hardware": "trn1.32xlarge", "n_chips": "512",
    "tp": "32", "pp": "1", "dp": "32", "cp": "", "ep": "", "vp": "", "zero": "1", "microbatch": "1",
    "global_batch": "1024", "recompute": "", "precision": "bf16", "step_time_s": "21.4", "tokens_per_s_per_chip": "",
    "tflops_per_chip": "", "mem_gib": "12", "source": "somebody", "note": "",
}  # fmt: skip


def one(**changed: str) -> TrainingCase | Skipped:
    (found,) = training_cases(shipped().graph, [ROW | changed])
    return found


def test_a_row():
    case = one()
    assert isinstance(case, TrainingCase)
    assert ("a", "llama-3.1-8b", "bf16", 21.4, 12 * 2.0**30) == (
        case.id,
        case.model,
        case.dtype,
        case.seconds,
        case.memory,
    )
    assert ("trn1.32xlarge*32", 1024) == (case.system.name, case.system.ranks)
    layout = case.layout
    assert (32, 1, 32, 1, 1, 1) == (layout.tp, layout.pp, layout.dp, layout.cp, layout.ep, layout.zero)
    assert ("none", "1f1b", 1, 1024, 8192) == (
        layout.recompute, layout.schedule, layout.microbatch, layout.global_batch, layout.seq,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (True, False)),
        ({"sequence_parallel": "no", "overlap": "yes"}, (False, True)),
        ({"source": "arXiv 2104.04473", "note": "async"}, (False, True)),
        ({"source": "arXiv 2104.04473", "sequence_parallel": "yes", "overlap": "no", "note": "async"}, (True, False)),
        ({"tp": "1", "dp": "1024", "sequence_parallel": "yes"}, (False, False)),
    ],
)
def test_stated_columns_of_a_row(changed, expected):
    layout = one(**changed).layout
    assert expected == (layout.sequence_parallel, layout.overlap)


def test_recompute_of_a_row():
    words = {
        "": "none", "None": "none", "selective": "selective", "core attn (selective)": "selective", "full": "full",
        "full (selective layers)": "full", "selective(op)": "operators", "Selective op": "operators", "operators": "operators",
    }  # fmt: skip
    assert words == {said: one(recompute=said).layout.recompute for said in words}


def test_torchtitan_computes_its_loss_operator_by_operator():
    for stated in ({"source": "pytorch+torchtitan:benchmarks/x.md"}, {"software": "torchtitan 0.2"}):
        assert not one(**stated).layout.fused_loss
    assert one().layout.fused_loss
    found = {
        name: {
            c.layout.fused_loss
            for c in training_cases(everything(), records(DATA / name))
            if isinstance(c, TrainingCase)
        }
        for name in ("training_torchtitan.csv", "training_mpt.csv", "training_trn1.csv")
    }
    assert {"training_torchtitan.csv": {False}, "training_mpt.csv": {True}, "training_trn1.csv": {True}} == found


def test_tokens_a_second_give_the_time():
    case = one(step_time_s="", tokens_per_s_per_chip="1000")
    assert 8192 * 1024 / (1000 * 512) == case.seconds


def test_unset_columns_of_a_row_are_reported():
    assert ("recompute: none, the default of most frameworks",) == one().assumptions
    assert () == one(recompute="none").assumptions
    stated = one(zero="", microbatch="", vocab="", model="mine", hardware="trn1.32xlarge/trn1n.32xlarge").assumptions
    assert {"hardware", "vocabulary", "ZeRO", "microbatch", "recompute"} == {t.split(":")[0] for t in stated}


HARDWARE = {
    "trn1.32xlarge": "trn1.32xlarge*32",
    "Trn1.32xlarge/trn1n.32xlarge": "trn1.32xlarge*32",
    # Its network is twice as quick, and it has a document of its own.
    "trn1n.32xlarge": "trn1n.32xlarge*32",
    "trn2.48xlarge": "trn2.48xlarge*32",
    "trn2-ultraserver": "trn2-ultraserver*8",
    "trn3-gen1-ultraserver": "trn3-gen1-ultraserver*8",
}


@pytest.mark.parametrize("words", HARDWARE)
def test_hardware(words):
    found = one(hardware=words, tp="8", dp="")
    assert isinstance(found, TrainingCase), found
    assert HARDWARE[words] == found.system.name


def test_the_dimensions_of_a_row():
    """A gate where the width is not four times the hidden one, unless it is called GPT."""
    for words, width, matrices in (
        ("mine", "14336", 3.0),
        ("mine", "16384", 2.0),
        ("GPT mine", "14336", 2.0),
        ("mine", "", 2.0),
    ):
        dims = one(model=words, ffn=width).dims
        assert (32.0, 4096.0, 8.0, matrices) == (dims.layers, dims.hidden, dims.kv_heads, dims.matrices)
        assert float(width or 4 * 4096) == dims.width


REASONS = [
    ({"n_chips": ""}, "the row states no n_chips"),
    ({"n_chips": "0"}, "the row states no n_chips"),
    ({"n_chips": "17"}, "17 chips are not taken evenly"),
    ({"n_chips": "512.5"}, "n_chips is 512.5; expected an integer"),
    ({"n_chips": "-16"}, "n_chips is -16"),
    ({"n_chips": "1e99"}, "n_chips is 1e99"),
    ({"n_chips": "many"}, "n_chips is 'many'; expected a number"),
    ({"tp": "inf"}, "tp is inf"),
    ({"tp": "3", "dp": ""}, "1,024 ranks are not divisible by tp 3 x pp 1 x cp 1"),
    ({"model": ""}, "the row states no model"),
    ({"model": "mine", "layers": ""}, "no model like 'mine', and the row lacks its dimensions"),
    ({"model": "mine", "heads": "0"}, "no model like 'mine', and the row lacks its dimensions"),
    ({"model": "mine", "hidden": "wide"}, "hidden is 'wide'; expected a number"),
    ({"hardware": ""}, "the row states no hardware"),
    ({"hardware": "abacus"}, "unknown hardware 'abacus'"),
    ({"hardware": "trn9.32xlarge"}, "unknown hardware"),
    ({"hardware": "trn1.99xlarge"}, "the catalog has no document named trn1.99xlarge"),
    ({"precision": ""}, "the row states no precision"),
    ({"precision": "n/a"}, "the row states no precision"),
    ({"precision": "int9"}, "unknown precision 'int9'"),
    ({"precision": "nvfp4"}, "trainium1 has no published dense rate for fp4"),
    ({"zero": "4"}, "zero is 4"),
    ({"zero": "many"}, "zero is 'many'; expected a number"),
    ({"global_batch": ""}, "the row states no global batch"),
    ({"global_batch": "1000"}, "not divisible into microbatches of 1"),
    ({"seq": ""}, "the row states no seq"),
    ({"step_time_s": ""}, "states neither a step time nor tokens per second"),
    ({"step_time_s": "0"}, "states neither a step time nor tokens per second"),
    ({"step_time_s": "-1"}, "step_time_s is -1; expected 0, or a number between 1e-12 and 1e15"),
    ({"step_time_s": "inf"}, "step_time_s is inf; expected 0, or a number between 1e-12 and 1e15"),
    ({"step_time_s": "fast"}, "step_time_s is 'fast'; expected a number"),
    ({"sequence_parallel": "perhaps"}, "sequence_parallel is 'perhaps'; expected yes or no"),
    ({"overlap": "1"}, "overlap is '1'; expected yes or no"),
    ({"mem_gib": "much"}, "mem_gib is 'much'; expected a number"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "reason"), REASONS, ids=lambda x: str(x)[:40])
def test_a_row_that_is_no_case(changed, reason):
    found = one(**changed)
    assert isinstance(found, Skipped)
    assert "a" == found.id
    assert reason in found.reason


def test_sequence_longer_than_learned_positions():
    """The published model has 2,048 positions, and what was measured as many as its sequences have tokens."""
    row = {"model": "mpt-7b", "hardware": "trn1.32xlarge", "tp": "8", "dp": "", "microbatch": "1"}
    short, long = (one(**row, seq=seq) for seq in ("2048", "16384"))
    assert (2048.0, 16384.0) == (short.dims.context, long.dims.context)
    assert evolve(long.dims, context=2048.0) == short.dims
    assert {"context"} == {t.split(":")[0] for t in long.assumptions} - {t.split(":")[0] for t in short.assumptions}


def test_a_link_without_a_rate_is_no_reason_to_fit():
    """It would pass for a link that takes no time."""
    row = ROW | {"hardware": "B200", "n_chips": "16", "tp": "8", "dp": "2", "precision": "bf16", "global_batch": "64"}
    (known,) = training_cases(everything(), [row])
    assert isinstance(known, TrainingCase)
    renamed = [(p, ("hgx-b200",), "") if "b200" in p and "gb200" not in p else (p, s, t) for p, s, t in cells.HARDWARE]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "HARDWARE", tuple(renamed))
        patch.setattr(cells, "_hardware", cells._hardware.__wrapped__)
        (unknown,) = training_cases(everything(), [row])
    assert isinstance(unknown, Skipped)
    assert "a link of hgx-b200*2 whose rate is not published" in unknown.reason


CELLS = st.one_of(
    st.sampled_from(
        ["", "0", "-1", "1e309", "nan", "inf", "-inf", "1e-320", "1e300", "0x10", "1_0", "\u0661", "n/a", "*", "\x00"]
    ),
    st.text(max_size=8),
    st.floats().map(str),
    st.integers(-5, 5000).map(str),
)


@given(st.dictionaries(st.sampled_from(sorted(set(ROW) - {"kind", "id"})), CELLS, max_size=6))
@example({"n_chips": "1e15"})
@example({"tokens_per_s_per_chip": "1e-11", "step_time_s": ""})
@settings(deadline=None, max_examples=100)
def test_no_row_breaks_the_reader(changed):
    """A case with a time that is a number, or a reason in words."""
    found = one(**changed)
    if isinstance(found, Skipped):
        assert len(found.reason.split()) > 2
    else:
        assert 0.0 < found.seconds < math.inf


def written(tmp_path, text: str | bytes):
    file = tmp_path / "rows.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


HOSTILE = {
    "empty": (b"", "no measurements"),
    "only a header": ("kind,id\n", "no measurements"),
    "another table": ("a,b\n1,2\n", "a column named kind"),
    "binary": (bytes(range(256)) * 4, "cannot be read"),
    "utf-16": ("kind,id\ntrain,a\n".encode("utf-16"), "cannot be read"),
    "too many cells": ("kind,id\ntrain,a\ntrain,a,b\n", "rows.csv:3: more cells than columns"),
    "a cell without end": ('kind,id\n"' + "x" * 200_000 + "\n", "cannot be read"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_malformed_tables_are_rejected(tmp_path, case):
    text, stated = HOSTILE[case]
    with pytest.raises(UsageError, match=stated) as refused:
        records(written(tmp_path, text))
    assert "rows.csv" in str(refused.value)


def test_table_path_that_is_not_a_file(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere.csv"):
        with pytest.raises(UsageError, match="cannot be read"):
            records(place)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    assert [{"kind": "train", "id": "a"}] == records(written(tmp_path, "\ufeffkind,id\ntrain,a\n"))


def test_columns_and_cells_that_are_missing(tmp_path):
    rows = records(written(tmp_path, "kind,id,model\ntrain,a\ntrain\ninfer,b,m\n"))
    found = list(training_cases(shipped().graph, rows))
    assert [Skipped("a", "the row states no n_chips"), Skipped("line 3", "the row states no n_chips")] == found


@pytest.mark.parametrize(
    ("stated", "framework", "optimizer"),
    [
        ({}, "", "adam"),
        ({"source": "NVIDIA-NeMo+Megatron-Bridge:docs/x.md"}, "megatron", "adam-fp32-grads"),
        ({"note": "Megatron-LM 23e00ed, TE 2.11"}, "megatron", "adam-fp32-grads"),
        ({"source": "VIA-Research+vTrain:data (Megatron-DeepSpeed; 2022)"}, "megatron", "adam"),
        ({"source": "mlcommons/training_results_v4.0:NVIDIA/results"}, "megatron", "adam"),
        ({"software": "torchtitan 0.2"}, "torchtitan", "adam-fsdp"),
        ({"source": "mosaicml+llm-foundry:scripts/train/benchmarking/README.md"}, "llm-foundry", "adam"),
        ({"framework": "nxd", "source": "Megatron-LM"}, "nxd", "adam-fp32-grads"),
    ],
)
def test_the_framework_of_a_row(stated, framework, optimizer):
    case = one(**stated)
    assert (framework, optimizer, 0.0) == (case.runtime.framework, case.layout.optimizer, case.runtime.reserve)


def test_software_that_exchanges_gradients_after_the_last_backward_pass():
    assert one(source="VIA-Research+vTrain:data (Megatron-DeepSpeed; 2022)").blocking
    assert not one(source="mlcommons/training_results_v4.0:NVIDIA/results").blocking


def test_recompute_that_is_unstated_is_that_of_the_framework():
    case = one(framework="torchtitan", recompute="")
    assert "operators" == case.layout.recompute
    assert "recompute: operators, the default of torchtitan" in case.assumptions
    assert "none" == one(framework="torchtitan", recompute="none").layout.recompute
    assert "framework" in one(framework="jax").reason


def test_rejected_rows_and_cells_are_not_read() -> None:
    """Of the tables of the catalog, as their documents state."""
    file = DATA / "inference_neuron.csv"
    published, used = ({r["id"]: r for r in rows} for rows in (records(file), records(file, everything())))
    rejected = {i for i, row in published.items() if used[i] != row}

    assert 3 == len(rejected)
    assert {("", True)} == {(used[i]["out_tok_s"], bool(published[i]["out_tok_s"])) for i in rejected}
    table = DATA / "collectives_nccom.csv"
    assert ["nccom-591"] == sorted({r["id"] for r in records(table)} - {r["id"] for r in records(table, everything())})


def test_kind_and_name_of_a_table_without_them(tmp_path) -> None:
    """The kind is that of the columns, and a row is named by its line."""
    (tmp_path / "mine.csv").write_text(
        "model,hardware,n_chips,global_batch,seq,step_time_s\nllama-3.1-8b,trn1,16,8,4096,2\n"
    )
    (tmp_path / "either.csv").write_text("model,hardware,global_batch,isl,osl\na,b,1,2,3\n")

    (row,) = records(tmp_path / "mine.csv")

    assert ("train", "line 2", "2") == (row["kind"], row["id"], row["step_time_s"])
    with pytest.raises(UsageError, match="a column named kind"):
        records(tmp_path / "either.csv")


def test_the_kind_of_a_table_follows_from_columns_that_no_other_kind_has(tmp_path):
    for kind, needed in tables._KINDS:
        table = tmp_path / f"{kind}.csv"
        table.write_text(f"{','.join(sorted(needed))}\n{','.join('1' for _ in needed)}\n", "utf-8")
        assert [kind] == [row["kind"] for row in records(table)]
