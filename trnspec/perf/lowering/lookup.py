"""Documents by the name that an evaluator is given."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError
from trnspec.model.document import Metadata, Node
from trnspec.model.transformers.model import Model
from trnspec.model.transformers.names import name_key
from trnspec.yaml import Document

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph


def _of_config(file: str) -> Node[Model]:
    """The model of a config.json, which is in no catalog."""
    # Few evaluations are of such a model.
    from trnspec.model.transformers.huggingface.config import read_config
    from trnspec.model.transformers.huggingface.registry import imported

    config = read_config(file)
    stem = str(config.get("_name_or_path") or PurePath(file).stem)
    name = re.sub(r"[^a-z0-9.]+", "-", stem.rpartition("/")[2].lower()).strip("-.") or "model"
    spec = imported(config).model
    document = Document(file=file, data=None, places={}, problems=(), text="")
    return Node(kind="Model", metadata=Metadata(name=name, title=name), spec=spec, document=document)


def model_named(graph: Graph, name: str) -> Node[Model]:
    """The model with this name or alias, as the catalog or a model hub writes it, or that of a config.json.

    Raises:
        UnknownNameError: No such model; the message suggests the nearest.
        UsageError: The config.json cannot be read.
        ConfigError: No model can be made from it.
    """
    if name.endswith(".json"):
        return _of_config(name)
    models = tuple(graph.of(Model))
    for node in models:
        if name in (node.name, *node.metadata.aliases):
            return node
    key = name_key(name)
    for node in models:
        if key in map(name_key, (node.name, *node.metadata.aliases)):
            return node
    hint = did_you_mean(name, [alias for n in graph.of(Model) for alias in (n.name, *n.metadata.aliases)])
    raise UnknownNameError(f"no model is named {name!r}" + (f"; {hint}" if hint else ""))
