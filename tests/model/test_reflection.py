"""trnspec.model.reflection: what annotations say, what is at a path, and that every attribute is explained."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Optional

import attrs
import pytest
from attrs.exceptions import FrozenInstanceError
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.schema import KINDS, Part, Sampler, documents, unplaced
from tests.support.tables import tables
from trnspec.api import registry
from trnspec.loading.structure import structure
from trnspec.model import reflection
from trnspec.model.annotations import NAME_PATTERN, Count, Name, Text
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.document import Claim, Metadata, PathText, Waiver
from trnspec.model.fields import AnyFigure, Bandwidth, Capacity, DiskCapacity, Rates
from trnspec.model.figure import Figure
from trnspec.model.json_schema import document_schema, example_of
from trnspec.model.kinds import kind_of
from trnspec.model.link import Lanes, Link
from trnspec.model.parts import parts_fault
from trnspec.model.ref import Ref
from trnspec.model.renames import renames
from trnspec.model.source import Source
from trnspec.quantities.quantity import Quantity, parse
from trnspec.quantities.units import Dimension

BANDWIDTH = reflection.FigureShape(Dimension.BANDWIDTH)


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        (Figure, reflection.FigureShape(None)),
        (AnyFigure, reflection.FigureShape(None)),
        (Bandwidth, BANDWIDTH),
        (Bandwidth | None, BANDWIDTH),
        (Optional[Bandwidth], BANDWIDTH),  # noqa: UP045  # the old spelling is what is tested
        (Quantity, reflection.TextShape(is_quantity=True)),
        (str, reflection.TextShape()),
        (Name, reflection.TextShape(NAME_PATTERN)),
        (Text, reflection.TextShape(Text.__metadata__[0])),
        (bool, reflection.FlagShape()),
        (int, reflection.NumberShape(whole=True)),
        (float, reflection.NumberShape(whole=False)),
        (Count, reflection.NumberShape(whole=True, least=1)),
        (Count | None, reflection.NumberShape(whole=True, least=1)),
        (Ref[Source], reflection.RefShape(Source)),
        (Literal["a", "b"], reflection.ChoiceShape(("a", "b"))),
        (int | str, reflection.EitherShape((reflection.NumberShape(whole=True), reflection.TextShape()))),
        (int | str | None, reflection.EitherShape((reflection.NumberShape(whole=True), reflection.TextShape()))),
        (tuple[Count, ...], reflection.ListShape(reflection.NumberShape(whole=True, least=1))),
        (tuple[tuple[str, ...], ...], reflection.ListShape(reflection.ListShape(reflection.TextShape()))),
        (Mapping[str, Bandwidth], reflection.MapShape(BANDWIDTH)),
        (Annotated[int, "a mark of someone else"], reflection.NumberShape(whole=True)),
    ],
    ids=str,
)
def test_the_shape_of_an_annotation(annotation, shape):
    assert reflection.shape_of(annotation) == shape


def test_memory_is_binary_and_a_disk_decimal():
    assert (reflection.shape_of(Capacity).decimal, reflection.shape_of(DiskCapacity).decimal) == (False, True)


def test_examples_of_flags():
    assert [example_of(reflection.FlagShape(), text) for text in ("true", "false")] == [True, False]


@pytest.mark.parametrize(
    "annotation", [list[int], dict[str, int], set[str], tuple[int, int], complex, Literal[1, 2], Any, object, bytes]
)
def test_an_annotation_that_no_document_can_express_is_refused(annotation):
    with pytest.raises(TypeError, match="a document cannot hold"):
        reflection.shape_of(annotation)


@pytest.mark.parametrize(
    ("cls", "path", "shape"),
    [
        (Chip, "memory.bandwidth", BANDWIDTH), (Chip, "memory.bandwidth.value", reflection.TextShape(is_quantity=True)),
        (Chip, "memory.bandwidth.source", reflection.RefShape(Source)),
        (Chip, "memory.bandwidth.derived", reflection.shape_of(Text)),
        (Chip, "memory.bandwidth.value.value", None), (Chip, "memory.bandwidth.speed", None),
        (Chip, "memory.bandwidth.0", None), (Chip, "memory.stacks.count", reflection.shape_of(Count)),
        (Chip, "peak.dense.bf16", reflection.FigureShape(Dimension.FLOP_RATE)),
        (Chip, "peak.dense.int8", reflection.FigureShape(Dimension.OP_RATE)),
        (Chip, "cores.core", reflection.RefShape(Core)),
        (Chip, "cores.core.name", None), (Chip, "ratios.3.of", reflection.shape_of(PathText)),
        (Chip, "ratios.first", None),
        (Chip, "other.note", reflection.FigureShape(None)), (Chip, "other.note.note", reflection.shape_of(Text)),
        (Chip, "other.note.note.note", None), (Chip, "KIND", None), (Chip, "memory.", None),
        (Sampler, "figures.0.note", reflection.shape_of(Text)),
        (Sampler, "by_name.by_name.size", reflection.shape_of(Count)),
        (Sampler, "either", reflection.EitherShape((reflection.NumberShape(whole=True), reflection.TextShape()))),
        (Sampler, "either.0", None),
    ],
)  # fmt: skip
def test_the_shape_at_a_path(cls, path, shape):
    (steps,) = reflection.spread(path)
    assert reflection.shape_at(cls, steps) == shape


def test_the_shape_in_a_document():
    assert reflection.shape_in_document(Link, ("metadata", "source")) == reflection.RefShape(Source)
    assert reflection.shape_in_document(Link, ("metadata", "allow", 0, "reason")) == reflection.shape_of(Text)
    assert reflection.shape_in_document(Link, ("spec", "latency")) == reflection.FigureShape(Dimension.TIME)
    assert reflection.shape_in_document(Link, ("claims", 7, "source")) == reflection.RefShape(Source)
    claim = reflection.shape_in_document(Link, ("claims", 7))
    assert isinstance(claim, reflection.ObjectShape)
    assert claim.cls is Claim
    for path in ((), ("claims",), ("kind",), ("spec", "speed"), ("other",)):
        assert reflection.shape_in_document(Link, path) is None


@given(st.data())
def test_leaves_shapes_and_values_agree_by_path(data):
    """The walk over values, the shape at a path and the value at a path are three views of one thing."""
    document = data.draw(documents("Sampler"))
    spec = structure("Sampler", Sampler, unplaced(document), document).spec
    found = reflection.leaves(spec)
    assert ("figure",) in [path for path, _, _ in found]
    for path, shape, value in found:
        assert not isinstance(shape, (reflection.ObjectShape, reflection.ListShape, reflection.MapShape))
        assert reflection.shape_at(Sampler, path) == shape
        assert reflection.value_at(spec, path) is value
    assert len({path for path, _, _ in found}) == len(found)
    assert len(found) == _scalars(document["spec"], reflection.ObjectShape(Sampler)) + ("word" not in document["spec"])


def _scalars(data: Any, shape: reflection.Shape) -> int:
    if isinstance(shape, reflection.ObjectShape):
        return sum(_scalars(v, shape.fields[k].shape) for k, v in data.items())
    if isinstance(shape, reflection.ListShape):
        return sum(_scalars(item, shape.item) for item in data)
    if isinstance(shape, reflection.MapShape):
        return sum(_scalars(item, shape.value) for item in data.values())
    return 1


@pytest.mark.parametrize("path", tables(__file__)["nothing is where no document has a place"])
def test_nothing_is_where_no_document_has_a_place(path):
    rate = Figure(value=parse("5 GB/s"))
    link = Link(connects="chips", lanes=Lanes(count=3, rate=rate), version="v1")
    assert reflection.value_at(link, reflection.spread(path)[0]) is None


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("spec", ["spec"]),
        ("spec.memory.bandwidth", ["spec.memory.bandwidth"]),
        ("spec.peak.dense.{bf16,fp16}", ["spec.peak.dense.bf16", "spec.peak.dense.fp16"]),
        ("a.{b,c}.{d,e}", ["a.b.d", "a.b.e", "a.c.d", "a.c.e"]),
        ("{a}", ["a"]),
        ("ratios.{0,1}.says", ["ratios.0.says", "ratios.1.says"]),
    ],
)
def test_a_text_with_alternatives_names_several_paths(text, paths):
    assert [reflection.dotted(p) for p in reflection.spread(text)] == paths


@pytest.mark.parametrize("text", ["a.{b", "a.b}", "a.b{c,d}", "a.{b}c", "a.{b,{c,d}}", "a.}b{", "{a}.{b}{c}", "a.{b}}"])
def test_braces_that_do_not_match_are_refused(text):
    with pytest.raises(ValueError, match=r"the braces in .* do not match"):
        reflection.spread(text)


@given(
    st.lists(st.lists(st.from_regex(r"[a-z_]{1,4}", fullmatch=True), min_size=1, max_size=3), min_size=1, max_size=3)
)
def test_spread_makes_every_combination_in_order(steps):
    text = ".".join(words[0] if len(words) == 1 else "{" + ",".join(words) + "}" for words in steps)
    paths = [()]
    for words in steps:
        paths = [(*path, word) for path in paths for word in words]
    assert list(reflection.spread(text)) == paths
    assert [reflection.spread(reflection.dotted(path)) for path in paths] == [(path,) for path in paths]


SPECS = [Metadata, Claim, Sampler, *(kind.spec for kind in registry().kinds.values())]
CLASSES = sorted(
    {Figure, *(c for s in SPECS for c in reflection.classes_below(reflection.ObjectShape(s)))}, key=lambda c: c.__name__
)
EVERY = pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)


def test_the_walk_over_the_classes_finds_them():
    assert {Rates, Waiver, Figure, Lanes, Chip, Part, Source} < set(CLASSES)
    assert len(CLASSES) > 40


@EVERY
def test_every_attribute_is_explained_in_the_order_of_the_class(cls):
    """Each has one sentence at least, which ends as a sentence does, and nothing is explained that is not there."""
    docs = reflection.field_docs(cls)
    assert set(docs) == {a.name for a in attrs.fields(cls) if a.init}
    for name, (text, example) in docs.items():
        assert text.endswith("."), name
        assert text[0].isupper() or text.startswith(("bfloat16",)) or text[0].isdigit(), name
        assert example is None or (example == example.strip() and example), name


@EVERY
def test_every_class_has_a_summary_is_frozen_and_takes_only_keywords(cls):
    """A document has no positions, so that a class may get an attribute anywhere without breaking a program."""
    assert cls.__doc__
    assert cls.__doc__.strip().split("\n\n")[0].endswith(".")
    assert all(a.kw_only for a in attrs.fields(cls))
    with pytest.raises(FrozenInstanceError):
        setattr(object.__new__(cls), attrs.fields(cls)[0].name, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_is_valid(kind):
    """What the docstrings give as an example is accepted where it is."""
    schema = document_schema(kind, KINDS[kind])
    found = 0
    for name, definition in schema["$defs"].items():
        for key, member in definition.get("properties", {}).items():
            for example in member.get("examples", []):
                found += 1
                errors = list(Draft202012Validator({"$defs": schema["$defs"], **member}).iter_errors(example))
                assert not errors, (name, key, example)
    assert found > 10


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "Sampler"])
def test_every_figure_and_count_has_an_example(kind):
    """A bare number says little without one."""
    without = {
        (name, key)
        for name, definition in document_schema(kind, KINDS[kind])["$defs"].items()
        for key, member in definition.get("properties", {}).items()
        if ("Figure" in member.get("$ref", "") or member.get("else", member).get("type") == "integer")
        and "examples" not in member
        and not name.startswith("Sourced")
    }
    assert without <= {("CoreDma", "achieved_per_engine")}


def test_the_field_at_a_path():
    for path, name in {"memory": "memory", "memory.capacity": "capacity", "cores.core": "core"}.items():
        assert reflection.field_at(Chip, tuple(path.split("."))).name == name
    for path in ("x", "memory.x", "memory.capacity.value.x", "memory.x.capacity"):
        assert reflection.field_at(Chip, tuple(path.split("."))) is None


@pytest.mark.parametrize(
    ("part", "wrong"),
    [((2, Ref("a")), 0), ((None, Ref("a")), 0), ((True, Ref("a")), 1), ((2, "a"), 1), (("2", "a"), 1), ((2,), 1)],
)
def test_faults_of_parts(part, wrong):
    class Spec:
        def parts(self):
            return (part,)

    assert (parts_fault(Spec()).partition(".parts() ")[0] == "Spec") is bool(wrong)


def test_values_that_add_up() -> None:
    paths = ("memory.capacity", "peak.dense.bf16", "cores.count", "memory.nothing", "memory.technology", "launched")
    assert [True] * 3 + [False] * 3 == [reflection.is_extensive(Chip, tuple(path.split("."))) for path in paths]


def test_a_class_is_a_kind_of_its_module_only() -> None:
    assert ["Chip", None, None] == [kind_of(cls) for cls in (Chip, type("Chip", (), {}), type("Box", (), {}))]


def test_the_longest_former_path_is_first() -> None:
    cls = type("Box", (), {"RENAMED": {"a": "b.c.d", "a.x": "e"}})
    assert [("a", "x"), ("a",)] == [*renames(cls)]


@given(st.lists(st.integers(), min_size=2, max_size=4), st.integers(), st.data())
def test_one_value_of_a_list_or_mapping_is_replaced(values: list[int], leaf: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(values) - 1))
    changed = [*values[:at], leaf, *values[at + 1 :]]

    assert tuple(changed) == reflection.with_value(tuple(values), (at,), leaf)
    found = reflection.with_value({str(i): (v,) for i, v in enumerate(values)}, (str(at), 0), leaf)
    assert {str(i): (v,) for i, v in enumerate(changed)} == found
