"""trnspec.model.samples: a value of every shape."""

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from trnspec.model.annotations import Count, Name
from trnspec.model.chip import Chip
from trnspec.model.fields import AnyFigure, Bandwidth
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import ObjectShape
from trnspec.model.samples import sample_of
from trnspec.quantities.quantity import parse


@frozen(kw_only=True)
class Tray:
    chips: Count
    slots: int
    share: float
    cooled: bool
    side: Literal["left", "right"]
    link: Bandwidth
    other: AnyFigure
    chip: Ref[Chip]
    names: tuple[Name, ...]
    lanes: Mapping[str, int | str]
    note: str | None = None
    inner: "Tray | None" = None


def test_a_value_of_every_shape() -> None:
    required = Tray(
        chips=1, slots=1, share=1, cooled=True, side="left", link=Figure(value=parse("1 GB/s")), other=Figure(value=parse("1 W")),
        chip=Ref("name", Chip), names=("text",), lanes={"name": 1},
    )  # fmt: skip

    assert required == sample_of(ObjectShape(Tray), complete=False)
    assert [("text", None)] == [(s.note, s.inner) for s in [sample_of(ObjectShape(Tray), complete=True)]]
