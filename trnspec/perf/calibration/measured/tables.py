"""Reading tables of published measurements: cells, hardware, models and precisions of a row, and rows as cases."""

from __future__ import annotations

import hashlib
import re
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trnspec.errors import UsageError
from trnspec.loading.measured import DTYPES, UNSTATED, is_stated, read_table, used_rows
from trnspec.model.measurements import Measurements
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.lower import lower

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.lowering.system import System

Record = dict[str, str]

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
    (r"trn3[a-z0-9-]*\.3xlarge", ("trainium3",), ""),
    (r"trn3[a-z-]*[0-9]*[a-z-]*\.48xlarge", ("trn3-gen2-ultraserver",), "chips of a Trn3 Gen2 UltraServer"),
    (r"trn3.*gen ?1|trn3e", ("trn3-gen1-ultraserver",), ""),
    (r"trn3[a-z0-9-]*-ultraserver", (), ""),
    (r"trn3.*ultra|trn3.*gen ?2|trn3p", ("trn3-gen2-ultraserver",), ""),
    (r"trn3|trainium ?3", ("trainium3",), ""),
    (r"trn2[a-z0-9-]*-ultraserver", (), ""),
    (r"(?:trn[123]|inf[12])[a-z]*\.[0-9]*xlarge", (), ""),
)
"""Hardware as tables name it: a pattern, the servers it names (the matched text if none), and what is assumed."""


def records(path: Path, graph: Graph | None = None) -> list[Record]:
    """The rows of a table.

    Args:
        path: A CSV file.
        graph: The catalog; rows and cells that the document of the table rejects are left out.

    Raises:
        UsageError: The file cannot be read, is not a table, or has no measurements.
    """
    table = read_table(path)
    kind = "" if "kind" in table.columns else _kind_of(table.columns)
    if not table.rows or kind is None:
        raise UsageError(f"{path}: no measurements; expected a CSV table with a column named kind")
    rows = table.rows
    for node in () if graph is None else graph.of(Measurements):
        if realpath(path) == realpath(Path(node.document.file).parent / node.spec.data):
            rows = used_rows(node.spec, table)
    found = [dict(row.cells) for row in rows]
    for line, cells in enumerate(found, 2):
        cells["kind"] = kind or cells["kind"]
        cells["id"] = cells.get("id") or f"line {line}"
    return found


_KINDS = (
    ("train", {"global_batch"}),
    ("infer", {"isl", "osl"}),
    ("collective", {"collective", "size_bytes"}),
    ("attention", {"kv_len"}),
    ("moe", {"topk", "experts"}),
    ("matmul", {"m", "n", "k"}),
    ("op", {"op"}),
)
"""Kinds of rows with the columns that no other kind has."""


def _kind_of(columns: Iterable[str]) -> str | None:
    """The kind of all rows of a table without a column ``kind``; ``None`` where its columns do not determine one."""
    kinds = [kind for kind, needed in _KINDS if needed <= {*columns}]
    return kinds[0] if len(kinds) == 1 else None


MEASURED = (
    ("step_time_s", "tokens_per_s_per_chip", "time_us", "exec_s_printed", "tflops_per_chip", "busbw_GBps", "achieved"),
    ("tpot_ms",),
    ("ttft_ms",),
)
"""Columns whose cells were measured; of each group the first that is stated identifies a row."""

CONDITIONS = frozenset(
    {
        *("kind", "model", "n_chips", "tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "isl", "osl", "batch_conc"),
        *("m", "n", "k", "batch", "q_len", "kv_len", "heads", "tokens", "experts", "collective", "size_bytes", "ranks"),
    }
)
"""Columns of the conditions of a measurement."""


def row_hashes(row: Mapping[str, str]) -> tuple[str, ...]:
    """The hashes of the content of a row, one for each quantity that was measured, with its conditions.

    Two rows with a hash in common are of the same run.  Neither the name of the row nor that of its file counts, nor do
    columns such as source and note, their order, or how a number is written.
    """
    conditions = [
        f"{name}={_normalized(row[name])}" for name in sorted(CONDITIONS & row.keys()) if is_stated(row[name])
    ]
    stated = (next((name for name in names if is_stated(row.get(name) or "")), None) for names in MEASURED)
    texts = ("\n".join([*conditions, f"{name}={_normalized(row[name])}"]) for name in stated if name is not None)
    return tuple(hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts)


def _normalized(text: str) -> str:
    """A number to six digits; the letters and digits of a text."""
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return re.sub(r"[^a-z0-9.]", "", text.lower())


def document_name(
    graph: Graph, table: Sequence[tuple[str, tuple[str, ...], str]], text: str, assumptions: list[str]
) -> str | None:
    """The document that a description of hardware names; ``None`` if no pattern matches.

    Args:
        graph: The catalog.
        table: Patterns, the documents that each names, and what is assumed, as in :data:`HARDWARE`.
        text: The description.
        assumptions: What is assumed is appended here.

    Raises:
        UsageError: The catalog has none of the documents.
    """
    for pattern, documents, assumed in table:
        match = re.search(pattern, text.lower())
        if match is None:
            continue
        names = documents or (match.group(0),)
        known = next((n for n in names if n in graph), None)
        if known is None:
            raise UsageError(f"the catalog has no document named {' or '.join(names)}, which {text!r} needs")
        if assumed:
            assumptions.append(f"hardware: {assumed}")
        return known
    return None


def stated_name(graph: Graph, text: str, of: str) -> str:
    """The document that the tables of a kind of rows name by a description of hardware; empty if they name none.

    Args:
        graph: The catalog.
        text: The description.
        of: What a row measures.
    """
    stated = (node.spec.hardware.get(text, "") for node in graph.of(Measurements) if node.spec.of == of)
    return next((name for name in stated if name in graph), "")


def hardware(
    graph: Graph, text: str, chips: int, assumptions: list[str], *, lnc: int | None = None, of: str = ""
) -> System:
    """The system that a description of hardware and a number of chips name.

    Args:
        graph: The catalog.
        text: The description.
        chips: Number of chips.
        assumptions: What is assumed is appended here.
        of: The kind of rows whose tables name the hardware; empty to read the description alone.
        lnc: Physical cores of a logical core; the chip's default if not stated.

    Raises:
        UsageError: Unknown hardware, or the catalog has no document of it.
        RefusalError: The chips cannot be taken evenly from whole servers.
    """
    name = stated_name(graph, text, of) or document_name(graph, HARDWARE, text, assumptions)
    if name is None and text in graph:
        name = text
    if name is None:
        raise UsageError(f"unknown hardware {text!r}")
    unit = lower(graph, name)
    lnc = lnc if unit.ranks_per_chip >= 4.0 else None
    size = int(unit.chips)
    # Racks may be used in part, the same part of each: 64 of 72 chips.
    part = next((n for n in range(size, size // 2, -1) if chips % n == 0), size) if chips > size else size
    return lower(graph, f"{name}*{-(-chips // part)}", lnc=lnc, chips=chips)


def model_of(graph: Graph, row: Record, assumptions: list[str]) -> tuple[str, Dimensions]:
    """The name and dimensions of the catalog's model that a row names, or else the dimensions that the row states.

    Raises:
        UsageError: The catalog has no such model, and the row lacks dimensions.
    """
    text = cell(row, "model")
    named = _named(graph, text)
    if named is not None:
        return named
    layers, hidden, heads = (float(integer(row, n)) for n in ("layers", "hidden", "heads"))
    if not (layers and hidden and heads):
        raise UsageError(f"the catalog has no model like {text!r}, and the row lacks its dimensions")
    vocabulary, width = float(integer(row, "vocab")), float(integer(row, "ffn"))
    if not vocabulary:
        assumptions.append("vocabulary: 51,200")
    gated = bool(width) and width != 4.0 * hidden and "gpt" not in text.lower()
    return text, decoder(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=float(integer(row, "kv_heads")) or heads,
        width=width or 4.0 * hidden,
        vocabulary=vocabulary or 51200.0,
        context=float(integer(row, "seq", needed=True)),
        form="gated" if gated else "plain",
    )


def decoder(
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
    """Dimensions of a dense decoder: the Llama form with a gate, the GPT form without."""
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


def _named(graph: Graph, text: str) -> tuple[str, Dimensions] | None:
    """The model of the catalog that a table names."""
    from trnspec.model.transformers.counting import dimensions
    from trnspec.model.transformers.model import Model
    from trnspec.model.transformers.names import name_key

    key = name_key(text)
    for node in graph.of(Model):
        if key in {name_key(name) for name in (node.name, *node.metadata.aliases)}:
            return node.name, dimensions(node.spec)
    return None


def dtype_of(text: str, system: System) -> str:
    """The dtype of a precision for which a system has a peak rate.

    Raises:
        UsageError: The precision is not stated or unknown.
        RefusalError: ``unknown-figure``: the chip has no peak rate for it.
    """
    if text.strip().lower() in UNSTATED:
        raise UsageError("the row states no precision")
    for pattern, names in DTYPES:
        if re.search(pattern, text.lower()):
            for name in names:
                if name in system.rates:
                    return name
            system.rate(names[0])
    raise UsageError(f"unknown precision {text!r}")


def integer(row: Mapping[str, str], name: str, *, needed: bool = False) -> int:
    """The integer in a cell; 0 where none is stated.

    Raises:
        UsageError: It is not an integer, or it is needed and not stated.
    """
    value = number(row, name)
    if needed and not value:
        raise UsageError(f"the row states no {name}")
    if value != int(value):
        raise UsageError(f"{name} is {row[name]}; expected an integer")
    return int(value)


def number(row: Mapping[str, str], name: str) -> float:
    """The number in a cell; 0 where none is stated.

    Raises:
        UsageError: It is not a number, or not a plausible measurement.
    """
    text = row.get(name, "").strip()
    if text.lower() in UNSTATED:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r}; expected a number") from None
    if not (value == 0.0 or 1e-12 < value < 1e15):
        raise UsageError(f"{name} is {text}; expected 0, or a number between 1e-12 and 1e15")
    return value


def flag(row: Mapping[str, str], name: str, default: object) -> bool:
    """The yes or no in a cell; ``default`` where none is stated.

    Raises:
        UsageError: It is neither yes nor no.
    """
    text = row.get(name, "").strip().lower()
    if text in UNSTATED:
        return bool(default)
    if text not in ("yes", "no"):
        raise UsageError(f"{name} is {row[name]!r}; expected yes or no")
    return text == "yes"


def cell(row: Mapping[str, str], name: str) -> str:
    """The text in a cell.

    Raises:
        UsageError: It is empty.
    """
    text = row.get(name, "")
    if not text.strip():
        raise UsageError(f"the row states no {name}")
    return text
