"""The kind ServerPrice: the hourly price of a server, by terms and region."""

from __future__ import annotations

from typing import ClassVar, Literal

from attrs import frozen

from trnspec.model.annotations import Text
from trnspec.model.fields import Price
from trnspec.model.ref import Ref
from trnspec.model.server import Server

Terms = Literal["on-demand", "spot", "reserved", "capacity-block"]


@frozen(kw_only=True)
class ServerPrice:
    """The price of a server.

    Attributes:
        server: The server. Example: trn1.32xlarge
        terms: Pricing terms. Example: on-demand
        region: Region, as its publisher writes it. Example: Asia Pacific (Melbourne)
        hourly: Price of one server per hour. Example: 21.50 USD/h
    """

    KIND: ClassVar[str] = "ServerPrice"

    server: Ref[Server]
    terms: Terms
    region: Text | None = None
    hourly: Price | None = None
