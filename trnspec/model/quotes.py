"""The kinds Price, PriceList and Power: quantities of a product that its publishers or others quote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from attrs import field, frozen

from trnspec.model import fields
from trnspec.model.annotations import Count, Least, Pattern, Text, Unsourced
from trnspec.model.document import Verdict
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.short_repr import ShortRepr


class Quoted(ShortRepr):
    """The spec of a document that quotes a quantity of a product, so that one rule checks all of them."""

    __slots__ = ()


PriceType = Literal["on-demand", "spot", "capacity-block", "reserved"]
"""The way a server is bought."""

Term = Annotated[
    str, Pattern(r"^[0-9]+[ -](h|hours?|days?|weeks?|months?|years?)\b", "a duration, such as 24 h or 1 year")
]
"""The duration of a purchase."""

UNSTATED = "unstated"
"""The key of a price whose source names no region."""


@frozen(kw_only=True, repr=False)
class PriceRange(ShortRepr):
    """The prices of one place over some days, up to the date of the source.

    Attributes:
        days: The number of days. Example: 30
        low: The lowest price. Example: 8.9914 USD/h
        mean: The mean. Example: 12.9692 USD/h
        high: The highest price. Example: 15.3679 USD/h
    """

    days: Count
    low: fields.Price
    mean: fields.Price | None = None
    high: fields.Price


@frozen(kw_only=True, repr=False)
class Price(Quoted):
    """The prices of a server for one type of purchase. The date of a price is that of its source.

    A former price is a claim with the verdict "superseded"; its date is that of its own source.

    Attributes:
        server: The server. Example: trn1.32xlarge
        type: The way it is bought. Example: on-demand
        currency: The currency of all prices, which is also in their unit. Taxes are not included.
        term: The duration of a capacity block or of a reservation, if it is known. Example: 24 h
        status: Whether the publisher sells the server this way; "unlisted" if a source states that there is no price.
        hourly: Price of one server per hour, by region or availability zone; "unstated" if the source names none.
        observed: The range of changing prices over the days before, by region or availability zone.
        note: A remark for readers.
    """

    server: Ref[Server]
    type: PriceType
    currency: Literal["USD"] = "USD"
    term: Term | None = None
    status: Literal["listed", "unlisted"] = "listed"
    hourly: Mapping[str, fields.Price] = field(factory=dict)
    observed: Mapping[str, PriceRange] = field(factory=dict)
    note: Text | None = None


@frozen(kw_only=True, repr=False)
class PriceRow(Unsourced):
    """One price of a server, with its source. Of several for one type and region the first one without verdict is the price.

    Attributes:
        type: The way the server is bought. Example: on-demand
        region: The region or availability zone; "unstated" if the source names none. Example: us-east-1
        price: The price of one server per hour. Example: 21.50 USD/h
        status: Without a price: "unlisted" if the source states that there is no price of this type.
        term: The duration of a capacity block or of a reservation, if it is known. Example: 24 h
        days: The number of days before the date, of prices that change. Example: 30
        low: The lowest price of these days. Example: 8.9914 USD/h
        mean: Their mean. Example: 12.9692 USD/h
        high: The highest price of these days. Example: 15.3679 USD/h
        source: The source, whose date is that of the price. Example: karpenter-pricing-2026-07
        sources: In place of source: the sources that state the same price.
        where: The place in the source. Example: section 1.4
        verdict: The decision about a price that is not adopted, as of a claim. Example: superseded
        scope: What the price is of, if not of the type and region. Example: a block of 8 h
        reason: The reason for the verdict.
        note: A remark for readers; of a row without a price, on all prices of the type.
    """

    type: PriceType
    region: Text | None = None
    price: fields.Price | None = None
    status: Literal["listed", "unlisted"] | None = None
    term: Term | None = None
    days: Count | None = None
    low: fields.Price | None = None
    mean: fields.Price | None = None
    high: fields.Price | None = None
    source: Ref[Source] | None = None
    sources: Annotated[tuple[Ref[Source], ...], Least(1)] = ()
    where: Text | None = None
    verdict: Verdict | None = None
    scope: Text | None = None
    reason: Text | None = None
    note: Text | None = None


@frozen(kw_only=True, repr=False)
class PriceList(ShortRepr):
    """The prices of a server as rows. The catalog has a document of the kind Price for each type in them, SERVER-TYPE.

    Attributes:
        server: The server. Example: trn1.32xlarge
        rows: The prices, one for each type, region and source.
    """

    server: Ref[Server]
    rows: tuple[PriceRow, ...]


PowerType = Literal["tdp", "maximum", "configurable-tdp", "typical", "measured", "nameplate"]
"""Types of power."""

PowerScope = Literal["package", "board", "system", "rack"]
"""Scope of a power: the chip with its memory; the board with regulators; hosts, network and fans; the whole rack."""


@frozen(kw_only=True, repr=False)
class Power(Quoted):
    """The power of one chip, server, UltraServer or rack. The date of a power is that of its source.

    A document without ``power`` has only claims: no source that states one is believed.

    Attributes:
        of: The chip, server, UltraServer or document of another kind that is built of chips. Example: h100-sxm
        type: What the power is a statement of: design power (TDP), maximum, a configured limit, typical load, a
            measurement, or the nameplate of the power supplies. Example: tdp
        scope: What is included; by default the package of a chip, and everything in a system. Example: package
        power: The power of one of it. Example: 700 W
        region: The region or mains voltage, where the figure holds for one only. Example: 200 to 240 V
        load: What ran, of a typical or measured power, or the limit that was set.
        note: A remark for readers.
    """

    of: Ref[object]
    type: PowerType
    scope: PowerScope | None = None
    power: fields.Power | None = None
    region: Text | None = None
    load: Text | None = None
    note: Text | None = None
