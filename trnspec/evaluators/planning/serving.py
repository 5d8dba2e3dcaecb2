"""Plans of a serving fleet: which system, how many, at what cost, within limits of TTFT and TPOT under load."""

from __future__ import annotations

import csv
import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.evidence import Evidence
from trnspec.evaluation.questions import (
    CalibratedSystem,
    Confidence,
    FrameworkName,
    Listed,
    Parallelism,
    Precision,
    Prices,
    ServingSchedule,
    System,
    Workload,
    axis,
    like,
)
from trnspec.evaluation.result import Answer, Assumption, Evaluation, RefusalError, Suggestion, Table, UsedFigure
from trnspec.evaluators.deployment import InferenceQuestion, Setup, max_batch, prepare
from trnspec.evaluators.planning.amounts import duration
from trnspec.evaluators.planning.system_cost import Rent, rent
from trnspec.model.price import PriceType
from trnspec.perf import frameworks
from trnspec.perf.calibration.fit_range import scale_of, serving_inputs
from trnspec.perf.calibration.nearest import nearest_row
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, serving_of, with_nearest
from trnspec.perf.lowering.lookup import model_named
from trnspec.perf.lowering.lower import lower
from trnspec.perf.serving.decode import decode_time
from trnspec.perf.serving.frameworks import FRAMEWORKS
from trnspec.perf.serving.in_flight import in_flight
from trnspec.perf.serving.load import MOST_UTILIZED, Loaded, Replica, highest_rate, loaded
from trnspec.perf.serving.prefill import prefill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Value

MOST_RUNNING = 256
"""The most requests that a replica runs where none is given: max_num_seqs of vLLM."""
HOUR = 3600.0
_MOST_LENGTHS = 100_000
_NORMAL_90 = NormalDist().inv_cdf(0.9)

COLUMNS = {
    "system": "",
    "tp": "",
    "dtype": "",
    "replicas": "",
    "chips": "",
    "ttft": "s",
    "tpot": "s",
    "million_tokens": "USD",
    "probability": "%",
    "kind": "",
    "hourly": "USD",
    "rate_per_replica": "",
    "saturation": "",
    "utilization": "%",
    "running": "",
    "price": "",
}
"""The columns of the table, with their units."""


@frozen(kw_only=True, slots=False)
class PlanServingQuestion(Confidence, Listed):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    model: str = field(metadata=like(Workload, "model"))
    rate: float = field(metadata=axis("Requests per second of the fleet.", "REQUESTS/S", group="Workload", minimum=0))
    isl: int = field(
        default=1024,
        metadata=axis("Mean prompt length (input sequence length).", "TOKENS", group="Workload", minimum=1),
    )
    osl: int = field(
        default=1024,
        metadata=axis("Mean output length (output sequence length).", "TOKENS", group="Workload", minimum=2),
    )
    lengths: str | None = field(
        default=None,
        metadata=axis(
            "CSV file with the columns isl and osl, one request per line, instead of means.",
            "FILE",
            group="Workload",
            unset="none",
        ),
    )
    prefix_hit: float = field(default=0.0, metadata=like(InferenceQuestion, "prefix_hit"))
    ttft: str = field(default="1s", metadata=axis("Limit of the time to first token.", "TIME", group="Goal"))
    tpot: str = field(default="50ms", metadata=axis("Limit of the time per output token.", "TIME", group="Goal"))
    percentile: float = field(
        default=95.0,
        metadata=axis(
            "Percentile of requests that both limits are for.", "PERCENT", group="Goal", minimum=1, maximum=99.9
        ),
    )
    on: tuple[str, ...] = field(metadata=like(System, "on"))
    lnc: int | None = field(default=None, metadata=like(System, "lnc"))
    price: str | None = field(default=None, metadata=like(Prices, "price"))
    region: str | None = field(default=None, metadata=like(Prices, "region"))
    price_type: PriceType | None = field(
        default=None, metadata=like(Prices, "price_type", unset="the first known of on-demand, capacity-block, spot")
    )
    calibration: str = field(default="auto", metadata=like(CalibratedSystem, "calibration"))
    era: str | None = field(default=None, metadata=like(CalibratedSystem, "era"))
    framework: FrameworkName | None = field(default=None, metadata=like(ServingSchedule, "framework"))
    tp: tuple[int, ...] | None = field(
        default=None, metadata=like(Parallelism, "tp", unset="powers of two within a system")
    )
    running: int | None = field(
        default=None,
        metadata=axis(
            "Most requests that a replica runs at the same time.",
            "REQUESTS",
            group="Schedule",
            unset=f"those that fit, up to {MOST_RUNNING}",
            minimum=1,
        ),
    )
    dtype: tuple[str, ...] = field(default=("bf16",), metadata=like(Precision, "dtype"))
    kv_dtype: str | None = field(default=None, metadata=like(InferenceQuestion, "kv_dtype"))
    reserve: str | None = field(default=None, metadata=like(InferenceQuestion, "reserve"))


@frozen(kw_only=True)
class Limits:
    """What requests must meet.

    Attributes:
        ttft: Limit of the time to first token [s].
        tpot: Limit of the time per output token [s].
        percentile: Of both, from 0 to 100.
    """

    ttft: float
    tpot: float
    percentile: float

    def met(self, state: Loaded | None) -> bool:
        """Whether a replica at some load meets the limits."""
        if state is None:
            return False
        return state.ttft(self.percentile) <= self.ttft and state.tpot(self.percentile) <= self.tpot


@frozen(kw_only=True)
class Lengths:
    """Prompt and output lengths of requests.

    Attributes:
        isl: Mean prompt length [tokens].
        osl: Mean output length [tokens].
        prompts: Prompt lengths, each that of an equal share of the requests [tokens].
        longest: The longest prompt with its output [tokens].
    """

    isl: int
    osl: int
    prompts: tuple[int, ...]
    longest: int


@frozen(kw_only=True)
class Fleet:
    """A number of replicas on systems of one kind.

    Attributes:
        on: The system of which there are some.
        systems: How many.
        chips: Chips of all systems.
        replicas: Replicas that serve.
        setup: The deployment of one replica.
        replica: Its times.
        state: A replica at its share of the load.
        times: Factors between which 80 % of measured times are: of prompts, of steps; ``None`` for a bound.
        evidence: What the times are based on.
        rent: The price of all systems; ``None`` if none is known.
        probability: Probability that the limits are met, from the factors; ``None`` for a bound.
    """

    on: str
    systems: int
    chips: float
    replicas: int
    setup: Setup = field(repr=False)
    replica: Replica = field(repr=False)
    state: Loaded = field(repr=False)
    times: tuple[tuple[float, float], tuple[float, float]] | None
    evidence: Evidence
    rent: Rent | None
    probability: float | None

    def million_tokens(self, rate: float, output: int) -> float | None:
        """The price of a million output tokens [USD]; ``None`` without a price."""
        return None if self.rent is None else self.rent.hourly / (rate * output * HOUR) * 1e6


def run(catalog: Catalog, question: PlanServingQuestion) -> Evaluation:
    """Plan a serving fleet: the systems and their number that serve a request rate within limits of TTFT and TPOT.

    For each system, tensor-parallel degree and dtype, a queueing model gives the percentiles of TTFT and TPOT of a replica
    against its request rate (Poisson arrivals, continuous batching, prompts first). The highest rate within the limits
    gives the number of replicas. A replica is loaded up to 80 % of saturation.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        UsageError: An input is not a duration, or a file has no lengths.
        RefusalError: ``no-plan``: no deployment meets the limits, with the best that each system has.

    Examples:
        20 requests per second with TTFT below 1 s and TPOT below 30 ms:

            trnspec plan serve --model llama-3.1-70b --rate 20 --isl 4096 --osl 512 --ttft 1s
            --tpot 30ms --on trn2.48xlarge
    """
    q = question
    if q.framework is not None:
        frameworks.known(q.framework, "inference")
    if q.rate <= 0:
        raise UsageError(f"rate: more than 0 requests per second are expected, not {q.rate:g}")
    limits = Limits(ttft=duration(q.ttft, "ttft"), tpot=duration(q.tpot, "tpot"), percentile=q.percentile)
    lengths = _lengths(q)
    fleets: list[Fleet] = []
    refused: list[tuple[str, str]] = []
    for on in q.on:
        try:
            found, reasons = _fleets(catalog, q, on, limits, lengths)
        except RefusalError as error:
            refused.append((on, str(error)))
            continue
        fleets += found
        if not found:
            refused.append((on, "; ".join(dict.fromkeys(reasons))))
    if not fleets:
        raise RefusalError(
            "no-plan",
            f"no deployment meets the limits: {'; '.join(f'{on}: {why}' for on, why in refused)}",
            place="on",
            hint="a higher ttft or tpot, a lower percentile, a narrower dtype, or a larger system",
        )
    ranked = sorted(fleets, key=lambda f: _rank(f, q, lengths))
    best = ranked[0]
    rows = tuple(tuple(_row(f, q, limits, lengths).values()) for f in ranked[: q.top])
    return Evaluation(
        evaluator="plan-serve",
        title=f"{q.model} at {q.rate:g} requests/s on {best.on}*{best.systems}: the best of {len(fleets)} plans",
        inputs=q.values(),
        answers=tuple(_answers(best, q, limits, lengths)),
        assumptions=tuple(_assumptions(best, q, lengths, refused)),
        figures_used=_figures_used(best),
        tables=(
            Table("Plans", tuple(COLUMNS), rows, tuple(COLUMNS.values())),
            _curve(best, limits),
        ),
        suggestions=(Suggestion("inference", _inference_inputs(best), "one replica at its mean batch, without load"),),
        evidence=best.evidence,
        edition=catalog.edition or "",
    )


def _lengths(q: PlanServingQuestion) -> Lengths:
    """The lengths of requests: of the file, else those given.

    Raises:
        UsageError: The file cannot be read or has a line without lengths.
    """
    if q.lengths is None:
        return Lengths(isl=q.isl, osl=q.osl, prompts=(q.isl,), longest=q.isl + q.osl)
    pairs: list[tuple[int, int]] = []
    try:
        with open(q.lengths, encoding="utf-8", newline="") as file:  # noqa: PTH123  # a path given by the user
            for number, row in enumerate(csv.DictReader(file), 2):
                try:
                    isl, osl = int(row["isl"]), int(row["osl"])
                except (KeyError, TypeError, ValueError):
                    raise UsageError(f"lengths: {q.lengths}:{number}: whole numbers isl and osl are expected") from None
                if isl < 1 or osl < 1:
                    raise UsageError(f"lengths: {q.lengths}:{number}: lengths of at least 1 are expected")
                pairs.append((isl, osl))
                if len(pairs) > _MOST_LENGTHS:
                    raise UsageError(f"lengths: {q.lengths} has more than {_MOST_LENGTHS:,} lines")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"lengths: {q.lengths} cannot be read: {error}") from None
    if not pairs:
        raise UsageError(f"lengths: {q.lengths} has no lines")
    prompts = sorted(isl for isl, _ in pairs)
    shares = [prompts[int((i + 0.5) / 16 * len(prompts))] for i in range(16)]
    return Lengths(
        isl=max(1, round(sum(prompts) / len(pairs))),
        osl=max(2, round(sum(osl for _, osl in pairs) / len(pairs))),
        prompts=tuple(shares),
        longest=max(isl + osl for isl, osl in pairs),
    )


# Fleets of one system.


def _fleets(
    catalog: Catalog, q: PlanServingQuestion, on: str, limits: Limits, lengths: Lengths
) -> tuple[list[Fleet], list[str]]:
    """The fleets on one kind of system that meet the limits, and why others do not."""
    graph = catalog.graph
    experts = model_named(graph, q.model).spec.experts is not None
    system = lower(graph, on, lnc=q.lnc)
    known = calibrated(graph, system.chip, "inference", q.calibration, q.framework or "", q.era or "", experts=experts)
    degrees = q.tp or [1 << i for i in range(int(system.ranks).bit_length()) if int(system.ranks) % (1 << i) == 0]
    fleets, reasons = [], []
    for dtype in q.dtype:
        for tp in degrees:
            inputs = InferenceQuestion(
                model=q.model, on=on, lnc=q.lnc, tp=tp, dp=1, dtype=dtype, kv_dtype=q.kv_dtype, prompt=lengths.isl,
                output=lengths.osl, calibration=q.calibration, era=q.era, framework=q.framework,
                reserve=q.reserve, prefix_hit=q.prefix_hit,
            )  # fmt: skip
            try:
                found = _fleet(catalog, q, inputs, known, limits, lengths)
            except RefusalError as error:
                reasons.append(f"tp {tp}: {error}")
                continue
            if isinstance(found, str):
                reasons.append(f"tp {tp} {dtype}: {found}")
            else:
                fleets.append(found)
    return fleets, reasons


def _fleet(
    catalog: Catalog,
    q: PlanServingQuestion,
    inputs: InferenceQuestion,
    known: Calibrated,
    limits: Limits,
    lengths: Lengths,
) -> Fleet | str:
    """The fleet with one deployment, or why it does not meet the limits.

    Raises:
        RefusalError: The deployment is invalid, or a figure is not published.
    """
    setup = prepare(catalog.graph, inputs, known)
    most = max_batch(setup, setup.pool.capacity)
    if not most:
        return "does not fit in memory"
    most = min(most, q.running or MOST_RUNNING)
    system = setup.pool.system
    known = known.at(
        serving_inputs(setup.dims, setup.pool.plan), inputs.dtype, scale=scale_of(system, setup.pool.ranks),
        experts=setup.dims.experts > 0,
    )  # fmt: skip
    known = with_nearest(
        known, nearest_row(catalog.graph, known.name, serving_inputs(setup.dims, setup.pool.plan), setup.name)
    )
    replica = _replica(setup, known, most, lengths)
    times = None
    if known.coverage:
        times = (known.ttft_interval or (known.low, known.high), (known.low, known.high))
    # The limits are met with some probability where they are with times that are longer by that quantile of the errors; and
    # by the computed times in any case.
    factor = 1.0 if times is None else max(1.0, math.exp(_spread(times).inv_cdf(q.confidence)))
    careful = replica.slower(factor, factor)
    highest = highest_rate(careful, ttft=limits.ttft, tpot=limits.tpot, percentile=limits.percentile)
    if not highest:
        state = loaded(careful, 1e-3 * careful.saturation)
        assert state is not None
        return f"without load TTFT is {state.ttft(limits.percentile):.3g} s and TPOT {1e3 * state.tpot(limits.percentile):.3g} ms"
    per_system = int(system.ranks // setup.pool.ranks)
    systems = math.ceil(math.ceil(q.rate / highest) / per_system)
    # All replicas of the rented systems serve.
    replicas = systems * per_system
    state = loaded(replica, q.rate / replicas)
    assert state is not None
    fleet = Fleet(
        on=inputs.on,
        systems=systems,
        chips=system.chips * systems,
        replicas=replicas,
        setup=setup,
        replica=replica,
        state=state,
        times=times,
        evidence=known.evidence,
        rent=rent(catalog, f"{inputs.on}*{systems}", type=q.price_type, region=q.region, price=q.price),
        probability=None,
    )
    return evolve(fleet, probability=None if times is None else _probability(fleet, limits, q.rate / replicas))


def _replica(setup: Setup, known: Calibrated, most: int, lengths: Lengths) -> Replica:
    """The times of one replica: of prompts by themselves, and of decode steps with 1 to ``most`` requests."""
    serving, numbers = serving_of(known), setup.pool.numbers
    sizes = sorted({*range(1, min(most, 8) + 1), *(1 << i for i in range(most.bit_length())), most})
    first = float(serving.response)
    if setup.in_flight:
        assert setup.question.framework is not None
        mixed = float(FRAMEWORKS[setup.question.framework].mixed)
        flights = [
            in_flight(setup.model, setup.pool.plan, numbers, serving, requests=float(n), most=float(most), mixed=mixed)
            for n in sizes
        ]
        steps = [float(f.step) for f in flights]
        first += mixed * steps[len(steps) // 2]
    else:
        batches = [setup.with_batch(n) for n in sizes]
        steps = [float(decode_time(s.model, s.pool.plan, numbers, serving)) for s in batches]
    prompts = [_prompt(setup, prompt, numbers, serving) for prompt in lengths.prompts]
    return Replica.of(prompts, dict(zip(sizes, steps, strict=True)), first=first, output=float(lengths.osl))


def _prompt(setup: Setup, prompt: int, numbers: Any, serving: Any) -> float:
    """The time for which one prompt keeps a replica busy [s]."""
    one = evolve(setup, question=evolve(setup.question, prompt=prompt))
    one = evolve(one, pool=evolve(one.pool, plan=evolve(one.pool.plan, prompt=float(prompt))))
    one = one.with_batch(1)
    if setup.in_flight:
        assert setup.question.framework is not None
        mixed = float(FRAMEWORKS[setup.question.framework].mixed)
        return float(in_flight(one.model, one.pool.plan, numbers, serving, requests=2.0, most=2.0, mixed=mixed).prompt)
    return float(prefill(one.model, one.pool.plan, numbers, serving).total)


def _spread(times: tuple[tuple[float, float], tuple[float, float]]) -> NormalDist:
    """The distribution of the logarithm of measured over computed times: of prompts or of steps, the wider one."""
    low, high = max(times, key=lambda ends: math.log(ends[1] / ends[0]))
    return NormalDist(0.5 * math.log(low * high), math.log(high / low) / (2.0 * _NORMAL_90))


def _probability(fleet: Fleet, limits: Limits, rate: float) -> float:
    """The probability that the limits are met, if all times are longer or shorter by one factor; see :func:`_spread`."""
    assert fleet.times is not None

    def met(factor: float) -> bool:
        return limits.met(loaded(fleet.replica.slower(factor, factor), rate))

    below, above = 0.05, 20.0
    for _ in range(20):
        factor = math.sqrt(below * above)
        below, above = (factor, above) if met(factor) else (below, factor)
    return _spread(fleet.times).cdf(math.log(below))


# What is shown.


def _rank(fleet: Fleet, q: PlanServingQuestion, lengths: Lengths) -> tuple[Any, ...]:
    """Evidence before bounds, a known cost before an unknown one, the lowest cost, the fewest chips."""
    cost = fleet.million_tokens(q.rate, lengths.osl)
    return (fleet.evidence.kind == "ideal", cost is None, cost or 0.0, fleet.chips, -(fleet.probability or 0.0))


def _row(fleet: Fleet, q: PlanServingQuestion, limits: Limits, lengths: Lengths) -> dict[str, Value | None]:
    state, inputs = fleet.state, fleet.setup.question
    row: dict[str, Value | None] = {
        "system": f"{fleet.on}*{fleet.systems}",
        "tp": inputs.tp,
        "dtype": inputs.dtype,
        "replicas": fleet.replicas,
        "chips": int(fleet.chips),
        "ttft": state.ttft(limits.percentile),
        "tpot": state.tpot(limits.percentile),
        "million_tokens": fleet.million_tokens(q.rate, lengths.osl),
        "probability": None if fleet.probability is None else 100.0 * fleet.probability,
        "kind": fleet.evidence.kind,
        "hourly": None if fleet.rent is None else fleet.rent.hourly,
        "rate_per_replica": state.rate,
        "saturation": fleet.replica.saturation,
        "utilization": 100.0 * state.utilization,
        "running": state.running,
        "price": "" if fleet.rent is None else str(fleet.rent),
    }
    return {name: row[name] for name in COLUMNS}


def _answers(best: Fleet, q: PlanServingQuestion, limits: Limits, lengths: Lengths) -> Iterator[Answer]:
    state, kind = best.state, best.evidence.kind
    slow, fast = _ends(best)
    which = f"{limits.percentile:g}th percentile under load"

    def timed(name: str, percentile: float, note: str) -> Answer:
        method = "ttft" if name.startswith("time_to") else "tpot"
        value = getattr(state, method)(percentile)
        low = None if fast is None else min(value, getattr(fast, method)(percentile))
        high = None if slow is None else max(value, getattr(slow, method)(percentile))
        if best.times is None:
            low = value
        return Answer(name, value, "s", low, high, note, kind)

    yield timed("time_to_first_token", limits.percentile, f"TTFT, {which}")
    yield timed("time_per_output_token", limits.percentile, f"TPOT, {which}")
    cost = best.million_tokens(q.rate, lengths.osl)
    if cost is not None and best.rent is not None:
        yield Answer("million_tokens", cost, "USD", note=f"per million output tokens; {best.rent}")
        yield Answer("hourly", best.rent.hourly, "USD", note="all systems, per hour")
    yield Answer("systems", best.systems, note=best.on)
    yield Answer("chips", int(best.chips))
    yield Answer("replicas", best.replicas, note=f"tp {best.setup.question.tp}, {best.setup.question.dtype}")
    yield Answer("requests_in_flight", state.running, note="running per replica, mean")
    yield Answer("utilization", 100.0 * state.utilization, "%", note="of the rate at saturation")
    yield Answer("saturation", best.replica.saturation * best.replicas, note="requests/s of the fleet")
    yield Answer("median_ttft", state.ttft(50.0), "s", kind=kind)
    yield Answer("median_tpot", state.tpot(50.0), "s", kind=kind)
    if best.probability is not None:
        yield Answer("probability", 100.0 * best.probability, "%", note="that both limits are met, from the intervals")
    yield Answer("launch", _launch(best, lengths))


def _ends(fleet: Fleet) -> tuple[Loaded | None, Loaded | None]:
    """The replica at the slow and at the fast end; ``None`` where it is saturated or a bound."""
    if fleet.times is None:
        return None, None
    prompts, steps = fleet.times
    return tuple(  # type: ignore[return-value]  # two
        loaded(fleet.replica.slower(prompts[end], steps[end]), fleet.state.rate) for end in (1, 0)
    )


def _launch(fleet: Fleet, lengths: Lengths) -> str:
    """The command that starts one replica; MODEL is the name of the weights."""
    q = fleet.setup.question
    most = fleet.replica.most
    text = f"vllm serve MODEL --tensor-parallel-size {q.tp} --max-model-len {lengths.longest} --max-num-seqs {most}"
    return f"{text} --kv-cache-dtype {q.kv_dtype}" if q.kv_dtype else text


def _curve(fleet: Fleet, limits: Limits) -> Table:
    """Percentiles against the request rate of the fleet, up to the highest that is used."""
    rows: list[tuple[Value | None, ...]] = []
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, MOST_UTILIZED):
        state = loaded(fleet.replica, share * fleet.replica.saturation)
        if state is None:
            continue
        times = [f(p) for p in (50.0, limits.percentile) for f in (state.ttft, state.tpot)]
        rows.append(
            (state.rate * fleet.replicas, 100.0 * share, times[0], times[2], times[1], times[3], limits.met(state))
        )
    names = ("rate", "utilization", "median_ttft", "ttft", "median_tpot", "tpot", "within_limits")
    return Table("Percentiles by request rate of the fleet", names, tuple(rows), ("", "%", "s", "s", "s", "s", ""))


def _assumptions(
    best: Fleet, q: PlanServingQuestion, lengths: Lengths, refused: list[tuple[str, str]]
) -> Iterator[Assumption]:
    yield Assumption("arrivals", "Poisson", "independent requests at a constant mean rate, spread evenly over replicas")
    what = f"{lengths.isl:,} and {lengths.osl:,} tokens"
    yield Assumption(
        "lengths", what, "means of the file lengths" if q.lengths else "prompt and output; prompts of equal length"
    )
    yield Assumption("schedule", "prompts first", "continuous batching; prompts one after another, else decode steps")
    yield Assumption(
        "utilization",
        f"at most {MOST_UTILIZED:.0%}",
        "of the rate at saturation: percentiles grow without limit near it",
    )
    yield Assumption("calibration", best.evidence.calibration or "none", best.evidence.reason)
    if best.rent is None:
        yield Assumption("cost", "unknown", "the catalog has no price of this server; give price")
    yield Assumption("excluded", "not counted", "load balancers, idle time, start-up, data transfer, taxes, failures")
    for on, why in refused:
        yield Assumption("no_plan", on, why)


def _figures_used(fleet: Fleet) -> tuple[UsedFigure, ...]:
    wanted = f".{fleet.setup.question.dtype}"
    read = [b for b in fleet.setup.pool.system.figures_used if ".dense." not in b.at or b.at.endswith(wanted)]
    return tuple(dict.fromkeys((*read, *(fleet.rent.figures_used if fleet.rent else ()))))


def _inference_inputs(fleet: Fleet) -> dict[str, Any]:
    """One replica with its mean number of running requests."""
    q = fleet.setup.question
    given = evolve(q, batch=max(1, round(fleet.state.running)), on=fleet.on, dp=1)
    names = (
        "model",
        "on",
        "tp",
        "dp",
        "batch",
        "prompt",
        "output",
        "dtype",
        "framework",
        "kv_dtype",
        "lnc",
        "prefix_hit",
    )
    return {name: value for name, value in given.given(always=("tp", "dp")).items() if name in names}
