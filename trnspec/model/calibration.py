"""The kind Calibration: what was achieved of the published rates of a chip, fitted to published measurements."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from attrs import Attribute, fields_dict, frozen

from trnspec.model.annotations import Count, Date, Least, Name, Pattern, Precision, Text, Unsourced
from trnspec.model.chip import Chip
from trnspec.model.fields import Duration, Ratio
from trnspec.model.measurements import FileName
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.short_repr import ShortRepr

SHARES = frozenset(
    (
        *("matmul", "matmul_fp8", "matmul_fp4", "attention", "memory", "chip", "server", "ultraserver", "network"),
        *("overlap", "exposed", "tensor_overlap", "pipeline_overlap", "exchange", "expert_overlap"),
    )
)
"""The parameters of :class:`Achieved` that are shares of training, none above 1."""

SERVING_SHARES = frozenset({"weights", "cache", "single_core", "link", "additive", "padding", "queue"})
"""Those that only serving has."""

Framework = Annotated[str, Pattern(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", "the name of a framework, such as megatron")]

Measured = Literal["training", "inference", "collectives", "kernels"]
"""Measured quantities."""

Collective = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"]

Models = Literal["dense", "experts"]
"""Models without experts, and models with them."""

Scale = Literal["server", "cluster", "large"]
"""Scale at which a model runs: those connected without the network, up to 512, or more."""

RowHashes = Annotated[
    str, Pattern(r"^[0-9a-f]{8}( [0-9a-f]{8})*$", "hashes of 8 hexadecimal digits each, separated by spaces")
]

TableHash = Annotated[str, Pattern(r"^[0-9a-f]{12}$", "12 hexadecimal digits")]

Lines = Annotated[
    str, Pattern(r"^[0-9]+(-[0-9]+)?( [0-9]+(-[0-9]+)?)*$", "lines and ranges of lines, such as 2-67 70 72-80")
]


@frozen(kw_only=True, repr=False)
class FittedTable(Unsourced):
    """The rows of a fit in one table of the catalog.

    Attributes:
        table: The table. Example: training_mpt.csv
        hash: The first digits of the SHA-256 of its text when it was fitted. Example: 0a1b2c3d4e5f
        lines: The lines of the rows. Example: 2-67 70
    """

    table: FileName
    hash: TableHash
    lines: Lines

    @property
    def numbers(self) -> frozenset[int]:
        """The lines that fitted rows end on."""
        ends = [part.split("-") for part in self.lines.split()]
        return frozenset(line for low, *high in ends for line in range(int(low), int(*(high or [low])) + 1))


@frozen(kw_only=True, repr=False)
class Achieved(ShortRepr):
    """Achieved efficiencies; an absent one is ideal: a share of 1, no passes, no time.

    A pass is one time that a tensor is read or written in device memory, beyond what hides behind computation.

    Attributes:
        matmul: Share of the peak rate that large matrix multiplications of 16 and 32 bit reach. Example: 0.85x
        matmul_fp8: The same of 8 bit, by default as ``matmul``. Example: 0.7x
        matmul_fp4: The same of 4 bit, by default as ``matmul_fp8``. Example: 0.5x
        attention: Share of the peak rate that attention's products reach. Example: 0.5x
        matmul_passes: Passes over operands and results of each matrix multiplication. Example: 1.5x
        hidden_passes: Passes over the residual stream in a layer's forward computation. Example: 13x
        score_passes: Passes over the matrix of attention scores, where it is written at all. Example: 4x
        head_passes: Passes over the logits, forward and backward together. Example: 46x
        optimizer_passes: Passes over what the optimizer reads and writes in a step, beyond the first. Example: 2x
        memory: Share of the peak rate of device memory. Example: 0.8x
        forward: Least time of a layer's forward computation: the host launches it no faster. Example: 1.1 ms
        backward: Least time of a layer's backward computation. Example: 0.75 ms
        chip: Share of the rate between the ranks of a chip that collectives reach. Example: 0.5x
        server: Share of the rate of the links within a server. Example: 0.9x
        ultraserver: Share of the rate of the links between the servers of an UltraServer. Example: 0.9x
        network: Share of the rate of the network. Example: 0.75x
        call: Time of a collective that does not depend on its size. Example: 20 us
        hop: Time of one step of a collective within a server or an UltraServer. Example: 10 us
        network_hop: Time of one step over the network, where no latency is published. Example: 30 us
        send: Time of a message between pipeline stages that does not depend on its size. Example: 13 us
        overlap: Share of the computation that collectives over gradients and weights hide behind. Example: 0.7x
        exposed: Share of those collectives that is exposed in any case. Example: 0.2x
        tensor_overlap: Share of a layer's computation that its own collectives can hide behind. Example: 0.5x
        pipeline_overlap: Share of the messages between pipeline stages that the interleaved schedule hides. Example: 0.8x
        exchange: Share of the rate of other collectives that an all-to-all between experts reaches. Example: 0.5x
        dispatch: Time of an all-to-all between experts that does not depend on its size. Example: 100 us
        expert_overlap: Share of the rest of a layer that the all-to-all can hide behind. Example: 0.3x
        step: Time of a step that depends on nothing. Example: 0.5 ms
        causal: 1x where attention computes only the half that causality leaves, 0x where it computes all. Example: 1x
        weights: Serving: share of the peak rate of device memory that reading weights reaches. Example: 0.6x
        cache: Serving: share of the peak rate of device memory that reading the cache reaches. Example: 0.5x
        single_core: Serving: part of it that a rank of one physical core reaches, where two are the default. Example: 0.6x
        link: Serving: share of the peak rate of links that collectives reach. Example: 0.5x
        additive: Serving: share of the shorter of computing and reading that the longer does not hide. Example: 0.1x
        launch: Serving: time of a layer that depends on nothing. Example: 20 us
        sample: Serving: time to pick a token, for each sequence. Example: 1 ms
        request: Serving: time of a prefill that depends on nothing. Example: 15 ms
        padding: Serving: share of the cache's unused capacity that is read as well. Example: 0.9x
        queue: Serving: share of the other requests in flight whose prompts are ahead of a new one. Example: 0.1x
        response: Serving: time of a first token that takes no device time. Example: 20 ms
        host: Collectives: least time of a call that the host launches. Example: 20 us
        wait: Collectives: time by which a call takes longer that the host waits for. Example: 20 us
        copies: Collectives: passes over the buffer of an eager call, beyond those of a graph. Example: 2x
    """

    matmul: Ratio | None = None
    matmul_fp8: Ratio | None = None
    matmul_fp4: Ratio | None = None
    attention: Ratio | None = None
    matmul_passes: Ratio | None = None
    hidden_passes: Ratio | None = None
    score_passes: Ratio | None = None
    head_passes: Ratio | None = None
    optimizer_passes: Ratio | None = None
    memory: Ratio | None = None
    forward: Duration | None = None
    backward: Duration | None = None
    chip: Ratio | None = None
    server: Ratio | None = None
    ultraserver: Ratio | None = None
    network: Ratio | None = None
    call: Duration | None = None
    hop: Duration | None = None
    network_hop: Duration | None = None
    send: Duration | None = None
    overlap: Ratio | None = None
    exposed: Ratio | None = None
    tensor_overlap: Ratio | None = None
    pipeline_overlap: Ratio | None = None
    exchange: Ratio | None = None
    dispatch: Duration | None = None
    expert_overlap: Ratio | None = None
    step: Duration | None = None
    causal: Ratio | None = None
    weights: Ratio | None = None
    cache: Ratio | None = None
    single_core: Ratio | None = None
    link: Ratio | None = None
    additive: Ratio | None = None
    launch: Duration | None = None
    sample: Duration | None = None
    request: Duration | None = None
    padding: Ratio | None = None
    queue: Ratio | None = None
    response: Duration | None = None
    host: Duration | None = None
    wait: Duration | None = None
    copies: Ratio | None = None


@frozen(kw_only=True, repr=False)
class Protocol(Unsourced):
    """One way of a library to run collectives; the fastest is used.

    Attributes:
        name: Its name in the library. Example: LL128
        algorithm: How it moves the data. Example: ring
        kinds: The collectives that it runs.
        call: Time that depends on neither size nor ranks. Example: 5 us
        hop: Time of a step within a server or an UltraServer. Example: 0.8 us
        network_hop: Time of a step over the network. Example: 30 us
        link: Share of the rate of links within them, and of device memory between ranks of a chip. Example: 0.8x
        network: Share of the rate of the network. Example: 0.65x
        own: How often a rank's own part of the buffer passes its links in addition. Example: 0.5x
    """

    name: Text
    algorithm: Literal["ring", "recursive", "direct", "one-shot", "in-network"]
    kinds: tuple[Collective, ...]
    call: Duration
    hop: Duration
    network_hop: Duration
    link: Ratio
    network: Ratio
    own: Ratio | None = None


@frozen(kw_only=True, repr=False)
class Range(Unsourced):
    """The least and the largest value of an input in the rows of a fit.

    Attributes:
        low: The least. Example: 2048
        high: The largest. Example: 8192
    """

    low: Count
    high: Count


@frozen(kw_only=True, repr=False)
class FittedOn(ShortRepr):
    """The rows of a fit: what they have in common, and the range of each input.

    Attributes:
        chips: The chips that were measured. Example: trainium1
        versions: The versions of the software, as far as the rows state them. Example: 2.24.0
        dtypes: The compute dtypes. Example: bf16
        parameters: Parameters of the models.
        seq: Tokens of a sequence; in serving prompt and output.
        prompt: Serving: tokens of a prompt.
        tokens_per_rank: Training: tokens of a microbatch on a rank.
        tp: Tensor-parallel degrees.
        pp: Pipeline-parallel degrees.
        cp: Context-parallel degrees.
        ep: Expert-parallel degrees.
        batch: Serving: sequences decoded together.
        ranks: Ranks; in serving those of a replica.
        global_batch: Training: sequences of a step.
        collectives: The collectives that were measured.
        size: Collectives: bytes of the buffer.
        servers: Collectives: servers, or UltraServers, that the ranks are on.
    """

    chips: tuple[Text, ...]
    versions: Annotated[tuple[Text, ...], Least(1)] = ()
    dtypes: Annotated[tuple[Text, ...], Least(1)] = ()
    parameters: Range | None = None
    seq: Range | None = None
    prompt: Range | None = None
    tokens_per_rank: Range | None = None
    tp: Range | None = None
    pp: Range | None = None
    cp: Range | None = None
    ep: Range | None = None
    batch: Range | None = None
    ranks: Range | None = None
    global_batch: Range | None = None
    collectives: Annotated[tuple[Collective, ...], Least(1)] = ()
    size: Range | None = None
    servers: Range | None = None


@frozen(kw_only=True, repr=False)
class Transfer(Unsourced):
    """Errors of the fitted model on other chips, or with other software.

    Attributes:
        rows: How many rows, none of which was fitted. Example: 310
        groups: How many pairs of chip and software; each has the same weight. Example: 12
        low: Measured over computed at the lower end of the interval with the coverage of the spread. Example: 0.55x
        high: Measured over computed at its upper end. Example: 1.4x
    """

    rows: Count
    groups: Count
    low: Ratio
    high: Ratio


@frozen(kw_only=True, repr=False)
class Spread(Unsourced):
    """Errors of the fitted model on held-out rows.

    Attributes:
        rows: Rows it was fitted on. Example: 774
        mean: Mean absolute error of rows left out of the fit in turn. Example: 0.061x
        median: Median of the same. Example: 0.037x
        worst: The worst of them. Example: 0.51x
        coverage: Share of the measurements that the interval is to contain. Example: 0.8x
        low: Measured over computed at the lower end of that interval. Example: 0.91x
        high: Measured over computed at its upper end. Example: 1.08x
        extrapolation: Exponent by which the interval widens outside the range of the fit. Example: 0.08x
        transfer: The same for other chips and other software.
        other_chips: The same for other chips with this software; ``transfer`` when left out.
    """

    rows: Count
    mean: Ratio
    median: Ratio
    worst: Ratio
    coverage: Ratio
    low: Ratio
    high: Ratio
    extrapolation: Ratio | None = None
    transfer: Transfer | None = None
    other_chips: Transfer | None = None


@frozen(kw_only=True, repr=False)
class ErrorGroup(Unsourced):
    """The errors of held-out rows of one group, and the interval for questions of that group.

    Attributes:
        phase: What was computed: step, tpot, ttft, or the kind of a kernel or collective. Example: tpot
        scale: How many chips the model ran on; any number when left out.
        models: Dense models, or those with experts; both when left out.
        rows: Rows of the group. Example: 54
        clusters: Distinct configurations among them: rows of the same model, layout and hardware are one. Example: 41
        mean: Mean absolute error. Example: 0.09x
        median: Median of the same. Example: 0.053x
        low: Measured over computed at the lower end of the interval with the coverage of the spread. Example: 0.91x
        high: Measured over computed at its upper end. Example: 1.08x
        size: Collectives: bytes of the buffers of the group; any size when left out.
    """

    phase: Text
    scale: Scale | None = None
    models: Models | None = None
    rows: Count
    clusters: Count
    mean: Ratio
    median: Ratio
    low: Ratio
    high: Ratio
    size: Range | None = None


@frozen(kw_only=True, repr=False)
class KernelRoof(ShortRepr):
    """Achieved rates of one kernel in one precision; see :mod:`trnspec.perf.kernels.times` for the formulas.

    Attributes:
        kernel: Which kernel.
        precision: Its precision: arithmetic and stored operands. Example: fp8_block
        rows: Rows of this kernel and precision on the chip; without any it is what the other rows of the fit give. Example: 12
        compute: Share of the peak rate. Example: 0.75x
        memory: Share of the rate of device memory. Example: 0.85x
        fixed: Time that depends on nothing. Example: 3 us
        inner: Time per 1,000 elements of the inner dimension. Example: 0.5 us
        token: Time per 1,000 tokens, of quantizing or routing them. Example: 0.7 us
        quantize: Fixed time of quantizing activations. Example: 2 us
        waves: Share of a last wave of tiles that is not filled and takes time nevertheless. Example: 0.2x
        split: Power of the share of the cores that too few tiles leave idle. Example: 0.7x
        sharpness: Exponent of the sum of compute and memory time. Example: 3x
        epilogue: Start and end of a tile of a multiplication over the time of 1,000 elements of its inner dimension. Example: 0.1x
    """

    kernel: Literal["gemm", "attention_prefill", "attention_decode", "moe"]
    precision: Precision
    rows: Count
    compute: Ratio
    memory: Ratio
    fixed: Duration
    inner: Duration
    token: Duration
    quantize: Duration
    waves: Ratio
    split: Ratio
    sharpness: Ratio
    epilogue: Ratio | None = None


@frozen(kw_only=True, repr=False)
class Learned(Unsourced):
    """Reduction of the uncertainty of a parameter by the rows of a fit.

    Attributes:
        name: The parameter. Example: matmul
        share: 0x where the value is that of the prior, 1x where the rows determine it completely. Example: 0.7x
    """

    name: Text
    share: Ratio


@frozen(kw_only=True, repr=False)
class Prior(Unsourced):
    """Prior of a fit.

    Attributes:
        calibration: The calibration it started from; typical values when left out. Example: trainium1-neuron
        values: The values before the rows; fits of a list may leave them to the list.
        learned: What the rows add to each parameter; nothing to one that is left out.
    """

    calibration: Text | None = None
    values: Achieved | None = None
    learned: Annotated[tuple[Learned, ...], Least(1)] = ()


def _ordered(cls: type, fields: list[Attribute[Any]]) -> list[Attribute[Any]]:
    """The fields of a class: its own, then those of every fit in their order, then lists of fits."""
    order = list(fields_dict(cls.__mro__[1]))
    return sorted(fields, key=lambda f: order.index(f.name) if f.name in order else len(order) * (f.name == "fits") - 1)


@frozen(kw_only=True, repr=False)
class FitValues(Unsourced):
    """The values of a fit.

    Attributes:
        of: What was measured.
        software: What ran on it. Example: Megatron-DeepSpeed
        framework: The framework, as ``--framework`` names it. Example: megatron
        era: The years or the release of the software; of two eras the later in alphabetical order is newer. Example: 2026
        models: Only dense models, or only those with experts; both when left out.
        fitted: When it was fitted. Example: 2026-11-21
        tables: The rows it was fitted on, of tables of the catalog.
        data: The tables that the catalog does not have. Example: training_a100_vtrain.csv
        fitted_on: What those rows have in common, and the range of each input.
        achieved: What is achieved of the published figures.
        protocols: Collectives: the protocols of the library.
        spread: How far measurements lie from it: of inference, the time per output token.
        first: The same of the time to the first token.
        groups: The same by scale, models and phase, for groups with enough rows.
        roofs: Of kernels: what each achieves.
        prior: What the fit assumed before its rows, and what they add.
        rows: Hashes of the fitted rows of these, by their content. Example: 0a1b2c3d 4e5f6071
    """

    of: Measured | None = None
    software: Text | None = None
    framework: Framework | None = None
    era: Text | None = None
    models: Models | None = None
    fitted: Date | None = None
    tables: Annotated[tuple[FittedTable, ...], Least(1)] = ()
    data: Text | None = None
    fitted_on: FittedOn | None = None
    achieved: Achieved | None = None
    protocols: Annotated[tuple[Protocol, ...], Least(1)] = ()
    spread: Spread | None = None
    first: Spread | None = None
    groups: Annotated[tuple[ErrorGroup, ...], Least(1)] = ()
    roofs: Annotated[tuple[KernelRoof, ...], Least(1)] = ()
    prior: Prior | None = None
    rows: RowHashes | None = None


@frozen(kw_only=True, repr=False, field_transformer=_ordered)
class Calibration(FitValues):
    """Efficiencies achieved on a chip with some software.

    Attributes:
        chip: Which chip. Example: a100-80gb
    """

    chip: Ref[Chip]
    of: Measured
    software: Text
    fitted: Date
    achieved: Achieved
    spread: Spread


@frozen(kw_only=True, repr=False, field_transformer=_ordered)
class Fit(FitValues):
    """One fit of a list, without the values that the list states for all of its fits.

    Attributes:
        name: The name of the calibration. Example: h100-sxm-vllm-2026-kernels
        source: The source of the measurements, if not that of the list.
        note: A remark for readers.
    """

    name: Name
    source: Ref[Source] | None = None
    note: Text | None = None


@frozen(kw_only=True, repr=False, field_transformer=_ordered)
class CalibrationList(FitValues):
    """The fits of a chip and a framework, and what all of them have. The catalog has a document of the kind Calibration for each.

    Attributes:
        chip: Which chip. Example: h100-sxm
        fits: The fits. A fit has the values of the list, and of its prior, that it does not state itself.
    """

    chip: Ref[Chip]
    fits: tuple[Fit, ...]
