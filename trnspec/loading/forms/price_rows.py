"""Prices of one server as rows: read as one Price document for each type, and written from such documents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, get_args

from trnspec.errors import UsageError
from trnspec.loading.forms.part import metadata_of, part
from trnspec.loading.structure import plain
from trnspec.model.document import Node
from trnspec.model.document_text import document_text, flow_text
from trnspec.model.quotes import Price, PriceRow, PriceType
from trnspec.model.reflection import fields_of
from trnspec.yaml import Document, Path, Problem

_RANGE = ("days", "low", "mean", "high")

_SCHEMA = re.compile(r"\A# yaml-language-server: \$schema=(.*)price(\.schema\.json)$", re.MULTILINE)


def documents_in_rows(document: Document, rejected: Collection[int | str]) -> Iterator[Document]:
    """The Price documents that the rows of a PriceList are, one for each type, at the positions of the rows.

    The first row of a type and region without a verdict has the price; the others are claims.

    Args:
        document: A document of the kind PriceList.
        rejected: The indices of rows that are invalid.
    """
    data: Any = document.data
    spec = data["spec"]
    rows = [(index, row) for index, row in enumerate(spec["rows"]) if index not in rejected]
    for type_ in dict.fromkeys(row["type"] for _, row in rows):
        made = _Made(document, spec["server"], type_)
        for index, row in rows:
            if row["type"] == type_:
                made.add(index, row)
        yield made.document()


class _Made:
    """One Price document, made row by row."""

    def __init__(self, document: Document, server: str, type_: str) -> None:
        self._list = document
        of_list = metadata_of(document)
        self._metadata: dict[str, Any] = {
            "name": f"{server}-{type_}",
            "title": f"{server}, {type_.replace('-', ' ')}",
            **{key: of_list[key] for key in ("source", "where") if key in of_list},
        }
        self._spec: dict[str, Any] = {"server": server, "type": type_}
        self._claims: list[dict[str, Any]] = []
        kept = (path for path in document.places if path[:1] != ("spec",) or path in (("spec",), ("spec", "server")))
        self._places = [(path, path) for path in kept]  # of the document and of the list
        self._problems: list[Problem] = []
        self._sources: dict[str, Path] = {}  # the places of the sources of a row by name

    def add(self, index: int, row: dict[str, Any]) -> None:
        """Add one row."""
        at: Path = ("spec", "rows", index)
        self._place(("spec", "type"), (*at, "type"))
        rest = {key: value for key, value in row.items() if key not in ("type", "region", "price", "source", "sources")}
        names = [*([row["source"]] if "source" in row else []), *row.get("sources", ())]
        several = [(*at, "sources", position) for position, _ in enumerate(row.get("sources", ()))]
        paths = [*([(*at, "source")] if "source" in row else []), *several]
        self._sources = {}
        for name, path in zip(names, paths, strict=True):
            if self._sources.setdefault(name, path) is not path:
                message = f"{name!r} is listed twice"
                self._problems.append(
                    Problem("TRN209", message, self._list.place(path), "remove or correct one of them", path)
                )
        if names and "source" not in self._metadata:
            self._metadata["source"] = names[0]
            self._place(("metadata", "source"), self._sources[names[0]])
        region = row.get("region")
        if region is None:
            self._of_type(at, row, rest, names)
        elif "verdict" in row or region in self._spec.get("hourly", ()):
            self._claim(at, ("spec", "hourly", region), row.get("price"), rest, names)
        else:
            self._price(at, region, row, rest, names)

    def _of_type(self, at: Path, row: dict[str, Any], rest: dict[str, Any], names: list[str]) -> None:
        if "price" in row:
            message = f"spec.rows.{at[-1]} has a price and no 'region'"
            hint = "add region: a region, an availability zone, or unstated"
            self._problems.append(Problem("TRN102", message, self._list.place(at), hint, at))
        elif "status" in row and ("verdict" in row or "status" in self._spec):
            self._claim(at, ("spec", "status"), rest.pop("status"), rest, names)
        else:
            origin = _origin(names, rest)
            for key, value in rest.items():
                self._set(("spec", key), value if key == "note" else _sourced(value, origin), at, key)
            for name in names[1:] if "status" in row else ():
                self._claim(at, ("spec", "status"), row["status"], _where(origin), [name])

    def _price(self, at: Path, region: str, row: dict[str, Any], rest: dict[str, Any], names: list[str]) -> None:
        path: Path = ("spec", "hourly", region)
        origin = _origin(names, rest)
        for key in ("term", *_RANGE):
            if key in rest:
                to = ("spec", key) if key == "term" else ("spec", "observed", region, key)
                self._set(to, _sourced(rest.pop(key), origin), at, key)
        if not names and "source" not in metadata_of(self._list):
            self._unsourced(at)
        if "status" in rest:
            message = f"spec.rows.{at[-1]} has a price and a 'status', which is that of a type without prices"
            where = self._list.place((*at, "status"), key=True)
            self._problems.append(Problem("TRN101", message, where, "remove one of the two", (*at, "status")))
            del rest["status"]
        self._set(path, {**(_sourced(row["price"], origin) if "price" in row else origin), **rest}, at, "price")
        for name in names[1:]:
            self._claim(at, path, row.get("price"), _where(origin), [name])

    def _set(self, path: Path, value: Any, at: Path, key: str) -> None:
        """Set a value of the document, at the position of a key of a row."""
        *above, last = path
        inner: Any = {"spec": self._spec}
        for step in above:
            inner = inner.setdefault(step, {})
        if _bare(inner.setdefault(last, value)) != _bare(value):
            message = f"another row of the type {self._spec['type']} has another {last!r}"
            place = self._list.place((*at, key), key=True)
            self._problems.append(Problem("TRN005", message, place, "keep one of them", (*at, key)))
        for length in range(2, len(path)):
            self._place(path[:length], at)
        self._place(path, (*at, key))
        for each in value if isinstance(value, dict) else ():
            in_row = (*at, key if each == "value" else each)
            if each == "source":
                in_row = self._sources.get(value[each], in_row)
            self._place((*path, each), in_row)

    def _claim(self, at: Path, about: Path, says: Any, rest: dict[str, Any], names: list[str]) -> None:
        for name in names:
            path: Path = ("claims", len(self._claims))
            claim = {"at": ".".join(map(str, about)), "says": says, "source": name, **rest}
            self._claims.append({key: value for key, value in claim.items() if value is not None})
            self._place(path, at)
            for key in claim:
                in_row = (*at, {"at": "region", "says": "price"}.get(key, key))
                self._place((*path, key), self._sources[name] if key == "source" else in_row)
        if not names:
            self._unsourced(at)

    def _unsourced(self, at: Path) -> None:
        message = f"spec.rows.{at[-1]} has no 'source'"
        self._problems.append(Problem("TRN102", message, self._list.place(at), "add source", at))

    def _place(self, path: Path, row: Path) -> None:
        place = next((each for each in (row, row[:3]) if each in self._list.places), None)
        if place is not None:
            self._places.append((path, place))

    def document(self) -> Document:
        """The document of the rows so far."""
        parts = {"metadata": self._metadata, "spec": self._spec, **({"claims": self._claims} if self._claims else {})}
        return part(self._list, "Price", parts, self._places, self._problems)


def _origin(names: list[str], rest: dict[str, Any]) -> dict[str, Any]:
    """The origin of the values of a row, whose place in the source is taken from the rest."""
    return {"source": names[0], **({"where": rest.pop("where")} if "where" in rest else {})} if names else {}


def _sourced(value: Any, origin: dict[str, Any]) -> dict[str, Any]:
    """A value with its origin."""
    return {**(value if isinstance(value, dict) else {"value": value}), **origin}


def _bare(value: Any) -> Any:
    """A value without its origin."""
    return value.get("value") if isinstance(value, dict) else value


def _where(origin: dict[str, Any]) -> dict[str, Any]:
    return {"where": origin["where"]} if "where" in origin else {}


def list_text(prices: Iterable[Node[Price]]) -> str:
    """The list of prices of a server whose rows are some Price documents of it.

    What a list cannot have is left out: a caller compares :func:`contents` of both.
    """
    documents = sorted(prices, key=lambda node: get_args(PriceType).index(node.spec.type))
    server = documents[0].spec.server.name
    schema = _SCHEMA.search(documents[0].document.text)
    metadata = {"name": f"{server}-prices", "title": f"Prices of {server}"}
    text = document_text(
        "PriceList", metadata, {"server": server}, f"{schema[1]}pricelist{schema[2]}" if schema else ""
    )
    return text + "  rows:\n" + "".join(f"    - {row}\n" for node in documents for row in _row_texts(node))


def with_rows(document: Document, price: Node[Price]) -> str:
    """The text of a list of prices with the rows of a Price document of its server behind its own.

    Raises:
        UsageError: It is not the list of prices of that server, with a row on each line.
    """
    data: Any = document.data or {}
    spec = data.get("spec")
    last = ""
    if data.get("kind") == "PriceList" and isinstance(spec, dict) and spec.get("server") == price.spec.server.name:
        start, _, end = document.extent(("spec", "rows", len(spec.get("rows") or ()) - 1))
        last = document.text[document.text.rfind("\n", 0, start) + 1 : start]
    if last.strip() != "-":
        raise UsageError(f"{document.file} is not a list of prices of {price.spec.server}, with a row on each line")
    rest, *after = document.text[end:].split("\n", 1)
    return "\n".join([document.text[:end] + rest, *(last + row for row in _row_texts(price)), *after])


def _row_texts(price: Node[Price]) -> Iterator[str]:
    for row in _rows(plain(price)):
        yield flow_text({key: row[key] for key in fields_of(PriceRow) if key in row})


def contents(node: Node[Price]) -> dict[str, Any]:
    """The statements of a Price document without their places: each value with its source, claims sorted."""
    data: Any = plain(node)
    origin = {key: data["metadata"].pop(key) for key in ("source", "where") if key in data["metadata"]}
    claims = sorted(repr(sorted(claim.items())) for claim in data.get("claims", ()))
    plain_keys = {key: data["spec"].pop(key) for key in ("server", "type", "currency", "note") if key in data["spec"]}
    return {**data, "spec": _with_source(data["spec"], origin), **plain_keys, "claims": claims}


def _with_source(value: Any, origin: dict[str, Any]) -> Any:
    """Values with the source that they have, or that their document has."""
    if isinstance(value, dict) and "value" not in value:
        return {key: _with_source(item, origin) for key, item in value.items()}
    stated: dict[str, Any] = value if isinstance(value, dict) else {"value": value}
    return ({} if "source" in stated else origin) | stated


def _rows(data: Any) -> Iterator[dict[str, Any]]:
    """The rows of one Price document: what holds for the type, then each region with its claims."""
    spec, head = data["spec"], {"type": data["spec"]["type"]}
    inherited = {key: data["metadata"][key] for key in ("source", "where") if key in data["metadata"]}
    hourly, term = spec.get("hourly", {}), {"term": _bare(spec["term"])} if "term" in spec else {}
    claims: dict[str, list[dict[str, Any]]] = {"status": [], **{region: [] for region in hourly}}
    for claim in data.get("claims", ()):
        _, field, *region = claim["at"].split(".", 2)
        claims.setdefault(region[0] if region else field, []).append(claim)
    for region, about in claims.items():
        at = {} if region == "status" else {"region": region}
        rows: list[dict[str, Any]] = []
        if region in hourly:
            figure = _with_source(hourly[region], inherited)
            seen = {key: _bare(value) for key, value in spec.get("observed", {}).get(region, {}).items()}
            rows.append({**head, **at, "price": figure.pop("value"), **figure, **seen, **term})
            term = {}
        elif region == "status" and (of_type := {key: spec[key] for key in ("status", "note") if key in spec}):
            status = _with_source(of_type.pop("status"), inherited) if "status" in of_type else {}
            stated = {"status": status.pop("value")} if status else {}
            rows.append({**head, **stated, **of_type, **({} if hourly else term), **status})
        for claim in about:
            rest = {key: value for key, value in claim.items() if key not in ("at", "says")}
            rows.append({**head, **at, "price" if at else "status": claim["says"], **rest})
        yield from _joined(rows)


def _joined(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows; those that differ in their sources alone are one."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(repr(sorted((k, v) for k, v in row.items() if k != "source")), []).append(row)
    for first, *others in groups.values():
        if others:
            names = [first.get("source"), *(other["source"] for other in others)]
            yield dict(("sources", names) if key == "source" else (key, value) for key, value in first.items())
        else:
            yield first
