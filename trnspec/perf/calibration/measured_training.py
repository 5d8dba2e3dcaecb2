"""Published measurements of training, read from CSV: each row a question with its answer, or a reason why it is none."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Literal

from attrs import evolve, field, frozen

from trnspec.errors import TrnspecError, UsageError
from trnspec.evaluation.result import RefusalError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.efficiency import IDEAL
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import System
from trnspec.perf.training.step import UNUSED, step
from trnspec.perf.work.flops import model_flops_per_token
from trnspec.perf.work.layout import Layout, Recompute, check, longest
from trnspec.perf.work.transformer import transformer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from trnspec.graph.graph import Graph

Record = dict[str, str]


@frozen(kw_only=True)
class Case:
    """One measurement of a training step that can be computed.

    Attributes:
        id: What the row is called.
        model: The name of the model, for grouping.
        dims: Its dimensions.
        system: What it ran on.
        layout: How it was laid out.
        dtype: What matrices were multiplied in.
        seconds: The measured time of a step, in s.
        memory: The measured memory of a rank in B; 0 where none was published.
        assumptions: What the row leaves open, and what was taken for it.
        source_text: Source and note of the row.
    """

    id: str
    model: str
    dims: Dimensions = field(repr=False)
    system: System = field(repr=False)
    layout: Layout
    dtype: str
    seconds: float
    memory: float = 0.0
    assumptions: tuple[str, ...] = ()
    source_text: str = ""


@frozen
class Skipped:
    """One row that cannot be computed, and why."""

    id: str
    reason: str


HARDWARE = (
    (r"8/node, 800", ("a100-800gbps",), ""),
    (r"selene|dgx[- ]?a100|a100.*80 ?gb|a100_80", ("dgx-a100-80gb",), ""),
    (r"a100.*40 ?gb|a100_40", ("dgx-a100-40gb",), ""),
    (r"p4de", ("p4de.24xlarge",), ""),
    (r"p4d", ("p4d.24xlarge",), ""),
    (r"a100", ("dgx-a100-80gb",), "an A100 of 80 GB in a DGX"),
    (r"96 ?gb.*hbm2e|grand teton", ("grand-teton-h100",), ""),
    (r"gb300", ("gb300-nvl72",), ""),
    (r"gb200", ("gb200-nvl72",), ""),
    (r"b300", ("dgx-b300", "p6-b300.48xlarge"), ""),
    (r"b200", ("dgx-b200", "p6-b200.48xlarge"), ""),
    (r"h200", ("dgx-h200", "p5en.48xlarge"), ""),
    (r"p5\.", ("p5.48xlarge",), ""),
    (r"h100", ("dgx-h100", "p5.48xlarge"), ""),
    (r"trn1\.32xlarge */ *trn1n", ("trn1.32xlarge",), "trn1.32xlarge, whose network is the slower of the two"),
    (r"trn[23][a-z0-9-]*-ultraserver", (), ""),
    (r"(?:trn[123]|inf[12])[a-z]*\.[0-9]*xlarge", (), ""),
)
"""What people call hardware, the servers that it means, and what is taken for granted; no server: the words are one."""

DTYPES = (
    (r"nvfp4|mxfp4|fp4", ("fp4", "mxfp4")),
    (r"mxfp8|fp8|float8", ("fp8", "mxfp8")),
    (r"bf16", ("bf16",)),
    (r"fp16", ("fp16", "bf16")),
    (r"fp32", ("fp32",)),
)
"""What people call a precision, and the types whose rate the chip may have for it."""


def records(path: Path) -> list[Record]:
    """The rows of a CSV file.

    Raises:
        UsageError: The file is not there, is not text, or has no rows of measurements.
    """
    try:
        # Spreadsheets begin a file with a byte order mark.
        with path.open(encoding="utf-8-sig", newline="") as stream:
            found = list(_rows(path, csv.DictReader(stream)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: it cannot be read: {_reason(error)}") from error
    if not found or "kind" not in found[0]:
        raise UsageError(f"{path}: no rows of measurements; expected a CSV table with a column named kind")
    return found


def _reason(error: OSError | UnicodeDecodeError | csv.Error) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "it is a folder; name a file in it"
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8"
    return str(getattr(error, "strerror", None) or error)


def _rows(path: Path, reader: csv.DictReader[str]) -> Iterator[Record]:
    for row in reader:
        if None in row:
            raise UsageError(f"{path}:{reader.line_num}: more cells than columns; is a comma not quoted?")
        yield {column: cell or "" for column, cell in row.items()}


def training_cases(graph: Graph, rows: list[Record]) -> Iterator[Case | Skipped]:
    """Every row of training as a case, or as one that is skipped."""
    for number, row in enumerate(rows, 2):
        if row.get("kind") == "train":
            name = row.get("id") or f"line {number}"
            try:
                yield _case(graph, row, name)
            except TrnspecError as error:
                yield Skipped(name, str(error.args[0] if error.args else error))


def _case(graph: Graph, row: Record, name: str) -> Case:
    told: list[str] = []
    chips = whole(row, "n_chips", needed=True)
    model, dims = model_of(graph, row, told)
    system = hardware(graph, cell(row, "hardware"), chips, told)
    layout = _layout(row, system, told)
    parts = layout.pp * layout.interleave
    if layout.pp > 1 and dims.layers % parts and (dims.layers + 2) % parts:
        told.append("stages: of different numbers of layers, of which the mean is taken")
        layout = evolve(layout, uneven=True)
    dtype = dtype_of(row.get("precision", ""), system)
    if layout.seq > longest(dims):
        told.append(f"context: {layout.seq:,} tokens, the row's; positions counted for {dims.context:,.0f}")
        dims = evolve(dims, context=float(layout.seq))
    check(layout, dims, int(system.ranks))
    seconds = _seconds(row, layout, chips, dims)
    _check_links(dims, layout, system, dtype)
    memory = number(row, "mem_gib") * 2**30
    said = " ".join(row.get(column) or "" for column in ("source", "note", "precision"))
    return Case(
        id=name, model=model, dims=dims, system=system, layout=layout, dtype=dtype, seconds=seconds, memory=memory,
        assumptions=tuple(told), source_text=said,
    )  # fmt: skip


def hardware(graph: Graph, words: str, chips: int, told: list[str]) -> System:
    """The system that some words and a count of chips mean.

    Raises:
        UsageError: The words mean no known hardware, or the catalog has no document of it.
        RefusalError: So many chips are not made up of whole servers.
    """
    low = words.lower()
    for pattern, servers, taken in HARDWARE:
        match = re.search(pattern, low)
        if match is None:
            continue
        names = servers or (match.group(0),)
        known = [n for n in names if n in graph]
        if not known:
            raise UsageError(f"the catalog has no document named {' or '.join(names)}, which {words!r} needs")
        if taken:
            told.append(f"hardware: {taken}")
        one = lower(graph, known[0])
        units = -(-chips // int(one.chips))
        return lower(graph, f"{known[0]}*{units}", chips=chips)
    raise UsageError(f"{words!r} is no hardware that is known here")


def model_of(graph: Graph, row: Record, told: list[str]) -> tuple[str, Dimensions]:
    """The dimensions of the catalog's model of that name, else those that the row gives."""
    words = cell(row, "model")
    named = _named(graph, words)
    if named is not None:
        return named
    layers, hidden, heads = (float(whole(row, n)) for n in ("layers", "hidden", "heads"))
    if not (layers and hidden and heads):
        raise UsageError(f"the catalog has no model like {words!r}, and the row lacks its dimensions")
    vocabulary, width = float(whole(row, "vocab")), float(whole(row, "ffn"))
    if not vocabulary:
        told.append("vocabulary: 51,200")
    gated = bool(width) and width != 4.0 * hidden and "gpt" not in words.lower()
    return words, plain(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=float(whole(row, "kv_heads")) or heads,
        width=width or 4.0 * hidden,
        vocabulary=vocabulary or 51200.0,
        context=float(whole(row, "seq", needed=True)),
        form="gated" if gated else "plain",
    )


def plain(
    *,
    layers: float,
    hidden: float,
    heads: float,
    kv_heads: float,
    width: float,
    vocabulary: float,
    context: float,
    form: Literal["gated", "plain"],
) -> Dimensions:
    """A decoder without experts: the Llama form with a gate, the GPT form without."""
    size = hidden / heads
    gated = form == "gated"
    matrices = 3.0 if gated else 2.0
    return Dimensions(
        layers=layers, hidden=hidden, vocabulary=vocabulary, context=context, heads=heads, kv_heads=kv_heads,
        qk_size=size, v_size=size, kv_elements=2.0 * kv_heads * size,
        attention_weights=2.0 * hidden * hidden + 2.0 * hidden * kv_heads * size,
        attention_small=2.0 * hidden if gated else 8.0 * hidden,
        matrices=matrices, width=width, mlp_weights=matrices * hidden * width,
        mlp_small=0.0 if gated else width + hidden,
        embedding=vocabulary * hidden, positions=0.0 if gated else context * hidden, head=vocabulary * hidden,
        tied=0.0 if gated else 1.0, outer_small=hidden if gated else 2.0 * hidden,
    )  # fmt: skip


def _named(graph: Graph, words: str) -> tuple[str, Dimensions] | None:
    """The model of the catalog whose name has the same letters and digits."""
    from trnspec.model.transformers.counting import dimensions
    from trnspec.model.transformers.model import Model

    without = re.sub(r"\(.*?\)|pre-?training|fine-?tuning|huggingface|instruct|-hf\b|ph[12]\b", "", words.lower())
    wanted = re.sub(r"[^a-z0-9.]", "", without)
    for node in graph.of(Model):
        for name in (node.name, *node.metadata.aliases):
            if re.sub(r"[^a-z0-9.]", "", name) == wanted:
                return node.name, dimensions(node.spec)
    return None


def _layout(row: Record, system: System, told: list[str]) -> Layout:
    ranks = int(system.ranks)
    tp, pp, cp, ep = (whole(row, name) or 1 for name in ("tp", "pp", "cp", "ep"))
    dp = whole(row, "dp") or max(1, ranks // (tp * pp * cp))
    interleave = whole(row, "vp") or 1
    if ep > 1 and (dp * cp) % ep and ep % tp == 0:
        told.append(f"experts: {ep} ranks that hold whole ones taken as {ep // tp} groups of {tp} that split them")
        ep //= tp
    zero = row.get("zero", "").lower()
    stage = 3 if "fsdp" in zero else whole(row, "zero") if zero.strip() not in _UNSTATED else None
    if stage is not None and stage > 3:
        raise UsageError(f"zero is {stage}; there are the stages 0 to 3")
    if stage is None:
        # Megatron and its kin shard the optimizer's states; the others say what they do.
        stage = 1 if "megatron" in (row.get("source") or "").lower() and "bridge" in (row["source"]).lower() else 0
        told.append(f"ZeRO: {stage}")
    microbatch = whole(row, "microbatch") or 1
    if not row.get("microbatch") or "microbatch size inside PP not stated" in (row.get("note") or ""):
        told.append("microbatch: 1")
        microbatch = 1
    if not whole(row, "global_batch"):
        raise RefusalError("unstated", "the row states no global batch")
    said = f"{row.get('precision', '')} {row.get('note', '')}".lower()
    # Sequence parallelism came after both (Korthikanti et al. 2022); what is newer has it on by default.
    source = (row.get("source") or "").lower()
    software = source + (row.get("software") or "").lower()
    return Layout(
        tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, seq=whole(row, "seq", needed=True),
        global_batch=whole(row, "global_batch", needed=True), microbatch=microbatch,
        schedule="interleaved" if interleave > 1 else "1f1b", interleave=interleave, zero=stage,
        recompute=_recompute((row.get("recompute") or "none").lower()),
        sequence_parallel=tp > 1 and flag(row, "sequence_parallel", not re.search("2104.04473|megatron-deepspeed", source)),
        overlap=flag(row, "overlap", "async" in said), flash=True,
        # It computes the loss with PyTorch's own operators.
        fused_loss="torchtitan" not in software,
    )  # fmt: skip


def _recompute(words: str) -> Recompute:
    """What some words, in small letters, say is computed again; torchtitan's option "op" is of operators."""
    if "full" in words:
        return "full"
    if re.search(r"operator|selective *\(? *op\b", words):
        return "operators"
    return "selective" if "selective" in words else "none"


def dtype_of(words: str, system: System) -> str:
    """The type of a system that has a rate and that people call so.

    Raises:
        UsageError: There are no words, or they are no known precision.
        RefusalError: ``unknown-figure``: the chip has no rate for it.
    """
    if words.strip().lower() in _UNSTATED:
        raise UsageError("the row states no precision")
    for pattern, names in DTYPES:
        if re.search(pattern, words.lower()):
            for name in names:
                if name in system.rates:
                    return name
            system.rate(names[0])
    raise UsageError(f"{words!r} is no precision that is known here")


def _seconds(row: Record, layout: Layout, chips: int, dims: Dimensions) -> float:
    seconds, rate, flops = (number(row, n) for n in ("step_time_s", "tokens_per_s_per_chip", "tflops_per_chip"))
    if seconds:
        return seconds
    if rate:
        return layout.tokens / (rate * chips)
    if flops and "2104.04473" in (row.get("source") or ""):
        # The paper's own count of work, by which it came to its rates.
        work = model_flops_per_token(dims, float(layout.seq), "sc21") * layout.tokens
        return float(work) / (flops * 1e12 * chips)
    raise UsageError("the row states neither the time of a step nor tokens a second")


def whole(row: Mapping[str, str], name: str, *, needed: bool = False) -> int:
    """The whole number in a cell; 0 where it says nothing.

    Raises:
        UsageError: It is none, or it says nothing and is needed.
    """
    value = number(row, name)
    if needed and not value:
        raise UsageError(f"the row states no {name}")
    if value != int(value):
        raise UsageError(f"{name} is {row[name]}, not a whole number")
    return int(value)


_UNSTATED = ("", "n/a", "nan", "-")


def number(row: Mapping[str, str], name: str) -> float:
    """What a cell says; 0 where it says nothing."""
    text = row.get(name, "").strip()
    if text.lower() in _UNSTATED:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r}, not a number") from None
    if not (value == 0.0 or 1e-12 < value < 1e15):
        raise UsageError(f"{name} is {text}, which no measurement is")
    return value


def flag(row: Mapping[str, str], name: str, unstated: object) -> bool:
    """Whether a cell says yes; ``unstated`` where it says nothing.

    Raises:
        UsageError: It says something else.
    """
    words = row.get(name, "").strip().lower()
    if words in _UNSTATED:
        return bool(unstated)
    if words not in ("yes", "no"):
        raise UsageError(f"{name} is {row[name]!r}, neither yes nor no")
    return words == "yes"


def cell(row: Mapping[str, str], name: str) -> str:
    """The words in a cell.

    Raises:
        UsageError: There are none.
    """
    words = row.get(name, "")
    if not words.strip():
        raise UsageError(f"the row states no {name}")
    return words


def _check_links(dims: Dimensions, layout: Layout, system: System, dtype: str) -> None:
    """Nothing is fitted through a link whose rate is not published: it would pass for one that takes no time."""
    if step(transformer(dims), layout.plan(), machine(system, IDEAL, dtype)).unknown > UNUSED:
        raise RefusalError("unknown-figure", f"the layout needs a link of {system.name} whose rate is not published")
