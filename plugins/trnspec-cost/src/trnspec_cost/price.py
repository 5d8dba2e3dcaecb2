"""The kind ServerPrice: what an hour of a server costs, on which terms, and where."""

from __future__ import annotations

from typing import ClassVar, Literal

from attrs import frozen

from trnspec import Ref
from trnspec.model.annotations import Text
from trnspec.model.fields import Price
from trnspec.model.server import Server

Terms = Literal["on-demand", "spot", "reserved", "capacity-block"]


@frozen(kw_only=True)
class ServerPrice:
    """What a server costs on some terms.

    Attributes:
        server: Which server. Example: trn1.32xlarge
        terms: On which terms it is rented. Example: on-demand
        region: Where, in the words of its publisher. Example: Asia Pacific (Melbourne)
        hourly: What one server costs for one hour. Example: 21.50 USD/h
    """

    KIND: ClassVar[str] = "ServerPrice"

    server: Ref[Server]
    terms: Terms
    region: Text | None = None
    hourly: Price | None = None
