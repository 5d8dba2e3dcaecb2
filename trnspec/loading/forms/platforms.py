"""Names of servers that only a driver has: read as one Server document for each name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trnspec.loading.forms.part import metadata_of, part
from trnspec.yaml import Document, Path

_PATHS: Mapping[str, Path] = {
    "chips": ("spec", "chips", "count"),
    "cores": ("spec", "stated", "cores"),
    "features": ("spec", "features"),
    "where": ("metadata", "where"),
}
"""The paths of a server by the keys of a platform."""


def server_documents(document: Document, rejected: Collection[int | str]) -> Iterator[Document]:
    """The Server documents of the names in a document of the kind Platforms, at the positions of the names.

    Args:
        document: The document.
        rejected: The indices of platforms that are invalid.
    """
    data: Any = document.data
    for index, platform in enumerate(data["spec"]["platforms"]):
        for position, name in enumerate(platform["names"] if index not in rejected else ()):
            server = _server(data["spec"]["chip"], metadata_of(document), platform, name)
            yield part(document, "Server", server, dict(_paths(document, index, position)).items())


def _server(chip: str, of_all: dict[str, Any], platform: dict[str, Any], name: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "title": f"{name}, a name of a driver",
        **{k: of_all[k] for k in ("source",) if k in of_all},
    }
    notes = " ".join(str(each["note"]) for each in (of_all, platform) if "note" in each)
    spec = {
        "family": {"name": name.partition(".")[0]},
        "chips": {"chip": chip, "count": platform["chips"]},
    }
    spec |= {"stated": {"cores": platform["cores"]}} if "cores" in platform else {}
    spec |= {"features": platform["features"]} if "features" in platform else {}
    metadata |= {"where": platform["where"]} if "where" in platform else {}
    metadata |= {"note": notes} if notes else {}
    return {"metadata": metadata, "spec": spec}


def _paths(document: Document, index: int, position: int) -> Iterator[tuple[Path, Path]]:
    """The paths of the server of a name, each with that of its value in the document."""
    for path in document.places:
        match path:
            case ("spec", "platforms", int(at), "names", int(number)) if (at, number) == (index, position):
                yield from ((to, path) for to in (("metadata", "name"), ("spec", "family", "name")))
            case ("spec", "platforms", int(at), str(key), *below) if at == index and key in _PATHS:
                yield (*_PATHS[key], *below), path
            case ("spec", "platforms", int(at)) if at == index:
                yield ("spec",), path
            case ("spec", "chip"):
                yield ("spec", "chips", "chip"), path
            case (first, *_) if first != "spec":
                yield path, path
            case ():
                yield path, path
