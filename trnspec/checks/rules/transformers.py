"""Transformers: dimensions that contradict each other, and parameter counts compared with the dimensions."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from attrs import evolve

from trnspec.checks.reconcile.hints import MOST_SHOWN
from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph, at
from trnspec.model.document import Node
from trnspec.model.reflection import ChoiceShape, NumberShape, dotted, leaves, value_at, with_value
from trnspec.model.rounded import RoundedCount, rounded
from trnspec.model.transformers.contradictions import contradictions
from trnspec.model.transformers.counting import active_parameters, parameters, sizes
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.model.transformers.model import Model
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Interval, significant
from trnspec.yaml import Path

NAMED = {1: (1.2, 1.35), 2: (1.08, 1.08)}
"""Tolerance of a count below and above the size in a name, by its digits: 2.65 billion are called 3b, 1.32 billion 1b,
and 64.9 billion 70b."""

NAMED_WELL = (1.03, 1.03)
"""The same for three digits and more: 356 million are called 350m."""
_SIZE = re.compile(
    r"(?<![a-z0-9.])(?P<active>a)?(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[mbt])(?P<experts>-[0-9]+e)?(?![a-z0-9.])"
)
"""A size in a name; ``a22b`` and ``17b-16e`` are active parameters, and 8x7b is neither."""

MOST_PADDING = 1024
"""The most rows of padding of a vocabulary that a hint suggests; multiples of 8 to 512 are in use."""


@rule("TRN405", "parameter-count", over=Model, local=True)
def parameter_count(model: Node[Model], graph: Graph) -> Iterator[Finding]:
    """A parameter count that contradicts the dimensions.

    Why:
        The dimensions of a transformer determine its number of parameters exactly. If a printed count differs, a dimension
        is wrong, or the count has another scope: it counts a tied output matrix, or leaves out the positions. Memory and
        time are computed from the dimensions, so they would be wrong as well. If another value of one dimension gives the
        count exactly, the finding is reported at that dimension.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Model
        metadata: {name: example, title: Example}
        spec:
          layers: 12
          hidden: 768
          vocabulary: 50257
          context: 1024
          positions: learned
          embeddings: tied
          norm: layer
          attention: {heads: 12, kv_heads: 12, head_size: 64, bias: all}
          feed_forward: {width: 3072, form: plain, bias: all}
          base: {model: gpt2}
          parameters:
            total: 163037184  #! TRN405
        ```

    Instead:
        ```diff
        -    total: 163037184
        +    total: 124439808
        ```

    Source:
        Narayanan and others: Efficient Large-Scale Language Model Training on GPU Clusters (2021), equation 2.
    """
    yield from _wrong_counts(model)


def _is_damaged(model: Node[Model]) -> bool:
    """Whether a value of the dimensions was reported, so that what they give says nothing."""
    return model.document.damages(("spec",))


def _wrong_counts(model: Node[Model]) -> Iterator[Finding]:
    spec = model.spec
    if spec.parameters is None or _is_damaged(model) or any(contradictions(spec)):
        return
    for name, formula in _FORMULAS.items():
        stated = getattr(spec.parameters, name)

        def count(other: Model, formula: Callable[[Dimensions], float] = formula) -> int:
            return int(formula(sizes(other)))

        if stated is None or isinstance(stated, RoundedCount) or stated == count(spec):
            continue
        message = f"{name} is {stated:,}, but the dimensions give {count(spec):,}, {stated - count(spec):+,}"
        causes = dict.fromkeys(words for words, other in _others(spec, count) if other == stated)
        slips = sorted(_slips(spec, count, stated), key=lambda slip: _unlikely(spec, *slip))
        swaps = list(_swaps(spec, count, stated))
        words = list(_words(spec, count, stated))
        # That another word gives the exact count is hardly chance; some number does for many dimensions.
        hints = [*causes, *(f"{word!r} for {dotted(path)} gives this number" for path, word in words)]
        hints += [_correction(spec, path, value) for path, value in slips]
        hints += [f"{dotted(one)} and {dotted(two)} are swapped" for one, two in swaps]
        places = dict.fromkeys([path for path, _ in (*words, *slips)] + [path for pair in swaps for path in pair])
        # Reported at the dimension to correct, unless the count has another scope.
        where: Path = ("parameters", name) if causes or not places else next(iter(places))
        see = tuple(at(model, ("spec", *path)) for path in [("parameters", name), *places] if path != where)
        hint = (
            f"{'likely cause' if len(hints) == 1 else 'likely causes'}: {'; or '.join(hints[:MOST_SHOWN])}"
            if hints
            else ""
        )
        yield Finding(("spec", *where), message, hint, see)
    if _is_exact(spec):
        yield from _coarse(model)


def _unlikely(spec: Model, path: Path, value: int) -> tuple[bool, bool, int]:
    """A key that is the least for the likeliest correction of a dimension.

    A vocabulary is seldom wrong but by its padding. A dimension is often twice or half of the right one, or one more or less; otherwise it is
    a small multiple of a power of two.
    """
    present = value_at(spec, path)
    is_near = isinstance(present, int) and (present in (2 * value, value + 1, value - 1) or value == 2 * present)
    is_vocabulary = path == ("vocabulary",) and abs(value - spec.vocabulary) > MOST_PADDING
    return is_vocabulary, not is_near, value // (value & -value)


def _but_embedding(d: Dimensions) -> float:
    return parameters(d) - d.embedding - (0 if d.tied else d.head)


_FORMULAS = {"total": parameters, "active": active_parameters, "non_embedding": _but_embedding}


def _differing(spec: Model) -> Iterator[tuple[str, RoundedCount, int]]:
    """The rounded counts of a model that its dimensions contradict: name, printed, and counted."""
    if spec.parameters is None:
        return
    for name, formula in _FORMULAS.items():
        stated = getattr(spec.parameters, name)
        if not isinstance(stated, RoundedCount):
            continue
        counted = int(formula(sizes(spec)))
        # Publishers round active parameters with the embedding, of which a token reads one row, or without it.
        scopes = {counted, counted - spec.vocabulary * spec.hidden} if name == "active" else {counted}
        if not any(stated.interval.overlaps(Interval.point(Fraction(n))) for n in scopes):
            yield name, stated, counted


def _is_exact(spec: Model) -> bool:
    """Whether the dimensions give the parameter counts that are stated to the last digit."""
    assert spec.parameters is not None
    stated = ((getattr(spec.parameters, name), formula) for name, formula in _FORMULAS.items())
    return all(n is None or isinstance(n, RoundedCount) or n == int(formula(sizes(spec))) for n, formula in stated)


def _coarse(model: Node[Model]) -> Iterator[Finding]:
    """The finding for rounded counts; reported at a dimension if a round number for that one alone gives them all."""
    spec = model.spec
    differing = list(_differing(spec))
    if not differing:
        return
    name, stated, counted = differing[0]
    fitting = [
        (path, value)
        for path, present in _counts(spec).items()
        for value in _round_numbers(present)
        if not any(contradictions(other := with_value(spec, path, value)))
        and not any(_differing(other))
        and _is_exact(other)
    ]
    fitting.sort(key=lambda each: _unlikely(spec, *each))
    times = significant(counted / stated, 3)
    message = f"{name} is {stated}, but the dimensions give {counted:,}"
    message += "" if times == "1" else f", {times} times as many"
    texts = dict.fromkeys(_misprints(stated.text))
    meant = [] if fitting else [text for text in texts if _is_meant(spec, name, text)]
    hint = " or ".join(f"{value:,} for {dotted(path)}" for path, value in fitting[:3])
    hint = f"likely cause: a wrong dimension: {hint}" if hint else ""
    if meant:
        hint = f"likely cause: a wrong digit or decimal point: {' or '.join(meant)} was meant"
    where: Path = fitting[0][0] if len(fitting) == 1 else ("parameters", name)
    counts = [("parameters", n) for n, _, _ in differing]
    places: dict[Path, None] = dict.fromkeys(
        [*(path for path, _ in fitting), *counts, *([] if fitting else _most_influential(spec))]
    )
    see = tuple(at(model, ("spec", *path)) for path in places if path != where)
    yield Finding(("spec", *where), message, hint or "check the count, and the dimensions below", see)


def _misprints(text: str) -> Iterator[str]:
    """A rounded count with two neighbouring digits swapped, or with its decimal point moved by one place."""
    match = re.fullmatch(r"(~? ?)([0-9,]+)(\.[0-9]+)?( ?[A-Za-z]+)", text)
    if match is None:
        return
    whole, fraction = match[2].replace(",", ""), (match[3] or ".")[1:]
    digits, point = whole + fraction, len(whole)
    numbers = [
        (digits[:i] + digits[i + 1] + digits[i] + digits[i + 2 :], point)
        for i in range(len(digits) - 1)
        if digits[i] != digits[i + 1]
    ]
    numbers += [(f"0{digits}", point), (f"{digits}0", point + 1)]
    for number, places in numbers:
        whole, fraction = number[:places].lstrip("0") or "0", number[places:].rstrip("0")
        yield f"{match[1]}{whole}{'.' if fraction else ''}{fraction}{match[4]}"


def _is_meant(spec: Model, name: str, text: str) -> bool:
    """Whether the dimensions give a count that is printed so."""
    assert spec.parameters is not None
    other = evolve(spec, parameters=evolve(spec.parameters, **{name: rounded(text)}))
    return all(differing != name for differing, _, _ in _differing(other))


def _round_numbers(present: int) -> list[int]:
    """Half of a dimension and twice of it, and the numbers k x 2^n with a small k within a factor of 4, the nearest first."""
    numbers = {
        k << n for k in (1, 3, 5, 7) for n in range(present.bit_length() + 2) if present <= 4 * (k << n) <= 16 * present
    }
    numbers |= {2 * present} | ({present // 2} if present % 2 == 0 else set())
    return sorted(numbers - {present}, key=lambda n: max(n / present, present / n))


@rule("TRN406", "impossible-dimensions", over=Model, local=True)
def impossible_dimensions(model: Node[Model], graph: Graph) -> Iterator[Finding]:
    """Dimensions of a model that contradict each other, or a missing dimension.

    Why:
        The number of query heads is a multiple of the number of key-value heads; a token cannot be routed to more experts
        than exist; a dense layer needs a width. Otherwise neither parameters nor work can be computed.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Model
        metadata: {name: example, title: Example}
        spec:
          layers: 32
          hidden: 4096
          vocabulary: 100352
          context: 4096
          positions: rotary
          embeddings: untied
          norm: rms
          attention:
            heads: 32
            kv_heads: 12  #! TRN406
            head_size: 128
          feed_forward: {width: 14336, form: gated}
        ```

    Instead:
        ```diff
        -    kv_heads: 12
        +    kv_heads: 8
        ```

    Source:
        Ainslie and others: GQA, Training Generalized Multi-Query Transformer Models (2023), section 2.2, for the heads.
    """
    for problem in () if _is_damaged(model) else contradictions(model.spec):
        see = tuple(at(model, ("spec", *path)) for path in problem.others)
        yield Finding(("spec", *problem.path), problem.message, problem.hint, see)


@rule("TRN407", "name-size-mismatch", over=Model, severity=Severity.WARNING, local=True)
def name_size_mismatch(model: Node[Model], graph: Graph) -> Iterator[Finding]:
    """A model whose name has another size than its dimensions give.

    Why:
        Most models have their parameters in their name, such as 70b, or 235b-a22b with the active ones, the embedding
        left out or not. The figure is coarse: 3b is printed for 2.7 to 3.2 billion, and 70b for 65. A count that lies
        further away has a wrong dimension.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Model
        metadata: {name: example-8b, title: Example 8B}
        spec:
          layers: 64  #! TRN407
          hidden: 4096
          vocabulary: 100352
          context: 4096
          positions: rotary
          embeddings: untied
          norm: rms
          attention: {heads: 32, kv_heads: 8, head_size: 128}
          feed_forward: {width: 14336, form: gated}
        ```

    Instead:
        ```diff
        -  layers: 64
        +  layers: 32
        ```

    Source:
        The names and parameter counts of the models in this catalog.
    """
    # Where a stated count differs from the dimensions, TRN405 names the likely one.
    if _is_damaged(model) or any(contradictions(model.spec)) or any(True for _ in _wrong_counts(model)):
        return
    counted = sizes(model.spec)
    for name in (model.name, *model.metadata.aliases):
        found = [*_SIZE.finditer(name)]
        for match in found:
            # The tokens of a context, as in llama-3.1-8b-1m.
            if match["unit"] == "m" and any(other["unit"] != "m" for other in found):
                continue
            active = bool(match["active"] or match["experts"])
            count = int(active_parameters(counted) if active else parameters(counted))
            printed = float(match["number"]) * {"m": 1e6, "b": 1e9, "t": 1e12}[match["unit"]]
            below, above = NAMED.get(len(match["number"].replace(".", "")), NAMED_WELL)
            embedding = model.spec.vocabulary * model.spec.hidden if active else 0
            if printed / below <= count and count - embedding <= printed * above:
                continue
            what = "active parameters" if active else "parameters"
            message = (
                f"the dimensions give {count:,} {what}, {count / printed:.2g} times the {match[0]} in the name {name}"
            )
            see = tuple(at(model, ("spec", *path)) for path in _most_influential(model.spec) if path != ("layers",))
            yield Finding(("spec", "layers"), message, "a dimension is likely wrong", see)
            return


def _most_influential(spec: Model) -> list[Path]:
    """The dimensions whose half changes the number of parameters most, the first three of them."""
    counted = parameters(sizes(spec))
    halves = {
        path: other
        for path, present in _counts(spec).items()
        if present > 1 and not any(contradictions(other := with_value(spec, path, present // 2)))
    }
    changes = {path: abs(counted - parameters(sizes(other))) for path, other in halves.items()}
    return sorted(changes, key=lambda path: -changes[path])[:3]


def _others(spec: Model, count: Callable[[Model], int]) -> Iterator[tuple[str, int]]:
    """Other scopes of a parameter count, each with its description and the count."""
    attention, embedding = spec.attention, spec.vocabulary * spec.hidden
    tied = spec.embeddings == "tied"
    words = (
        "the output matrix is counted although it is tied to the embedding" if tied else "the output matrix is left out"
    )
    yield words, count(evolve(spec, embeddings="untied" if tied else "tied"))
    yield "the embedding is left out", count(spec) - embedding
    yield "the embedding and the output matrix are left out", count(spec) - embedding - (0 if tied else embedding)
    if spec.positions == "learned":
        yield "the positions are left out", count(evolve(spec, positions="none"))
    if spec.positions == "rotary":
        turned = (attention.latent.rope_size if attention.latent else attention.head_size) // 2
        yield "the rotary frequencies stored with each layer are counted", count(spec) + spec.layers * turned
    if attention.bias != "none":
        yield "the biases of attention are left out", count(evolve(spec, attention=evolve(attention, bias="none")))
    else:
        for words, biased in (
            ("biases of queries, keys and values are counted", evolve(attention, bias="qkv")),
            ("biases of attention are counted", evolve(attention, bias="all")),
        ):
            yield words, count(evolve(spec, attention=biased))
    yield "every bias is left out", count(_unbiased(spec))
    if attention.latent is None and attention.norm == "head":
        words = "the norms of queries and keys are left out"
        yield words, count(evolve(spec, attention=evolve(attention, norm="none")))
    if attention.latent is None and attention.kv_heads != attention.heads:
        words = "keys and values are counted for every query head"
        yield words, count(evolve(spec, attention=evolve(attention, kv_heads=attention.heads)))
    if spec.final_norm == "one":
        yield "the final norm is left out", count(evolve(spec, final_norm="none"))
    if spec.head == "bert":
        bare = count(evolve(spec, head="none"))
        yield "the layers after the last transformer layer are left out", bare
        yield "the heads of pretraining are left out", bare + spec.hidden * (spec.hidden + 1)  # the pooler is not


def _unbiased(spec: Model) -> Model:
    dense, experts = spec.feed_forward, spec.experts
    return evolve(
        spec,
        attention=evolve(spec.attention, bias="none"),
        feed_forward=None if dense is None else evolve(dense, bias="none"),
        experts=None if experts is None else evolve(experts, bias="none", router_bias="none"),
    )


def _slips(spec: Model, count: Callable[[Model], int], stated: int) -> Iterator[tuple[Path, int]]:
    """The dimensions for which another value gives the stated count, each with that value."""
    for path in _counts(spec):

        def counted(value: int, path: Path = path) -> int:
            return count(with_value(spec, path, value))

        value = _solved(counted, stated, rising=path[-1] != "dense_layers")
        if value is not None and not any(contradictions(with_value(spec, path, value))):
            yield path, value


def _words(spec: Model, count: Callable[[Model], int], stated: int) -> Iterator[tuple[Path, str]]:
    """The words of which another gives the stated count, such as ``plain`` for ``gated``, each with that word."""
    for path, shape, present in leaves(spec):
        for word in shape.words if isinstance(shape, ChoiceShape) else ():
            if word == str(present):
                continue
            other = with_value(spec, path, word)
            if not any(contradictions(other)) and count(other) == stated:
                yield path, word


def _swaps(spec: Model, count: Callable[[Model], int], stated: int) -> Iterator[tuple[Path, Path]]:
    """The pairs of dimensions that give the stated count when their values are swapped."""
    for (one, first), (two, second) in itertools.combinations(_counts(spec).items(), 2):
        other = with_value(with_value(spec, one, second), two, first)
        if first != second and count(other) == stated and not any(contradictions(other)):
            yield one, two


def _counts(spec: Model) -> dict[Path, int]:
    values = leaves(spec)
    return {path: v for path, shape, v in values if isinstance(shape, NumberShape) and path[0] != "parameters"}


def _solved(count: Callable[[int], int], stated: int, *, rising: bool) -> int | None:
    """The value of one dimension that gives a count; the count increases with every dimension except dense layers."""
    if not rising:
        return next((v for v in range(1, 1000) if count(v) == stated), None)
    high = 1
    while count(high) < stated and high < stated:
        high *= 2
    value = bisect.bisect_left(range(1, high + 1), stated, key=count) + 1
    return value if count(value) == stated else None


def _correction(spec: Model, path: Path, value: int) -> str:
    rows = value - spec.vocabulary
    if path == ("vocabulary",) and abs(rows) <= MOST_PADDING:
        how = "padding is counted" if rows > 0 else "padding is left out"
        return f"{how}; a vocabulary of {value:,} rows gives this number"
    return f"a wrong dimension: {value:,} for {dotted(path)} gives this number"
