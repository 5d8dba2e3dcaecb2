"""Validation of an imported plugin: every value it has, and the classes of its kinds.

Everything that could fail later in every command (the shape and the JSON Schema of a kind, the class a rule is over, the
function of an exporter) is checked here, at discovery, so that an invalid plugin is left out with a message that names
the kind and the field.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, get_args, get_origin

import attrs
from attrs.exceptions import FrozenInstanceError

from trnspec.diagnostics import Code
from trnspec.model.json_schema import document_schema, example_of
from trnspec.model.parts import declared_parts, has_parts, parts_fault
from trnspec.model.reflection import ObjectShape, Shape, classes_in, default_of, field_docs, shape_of, unless_announced
from trnspec.model.samples import sample_of
from trnspec.plugins.api import Command, Evaluator, Exporter, Kind, Plugin, Reporter, Rule
from trnspec.plugins.failures import TimeLimitError, call_seconds, contained, described
from trnspec.quantities.units import UnitTable

_VERSION = (r"[a-z][a-z0-9.-]*/v[0-9]+[a-z0-9]*", "a version such as acme/v2")
_TEXTS: Mapping[str, tuple[str, str]] = {
    "Kind.name": (r"[A-Z][A-Za-z0-9]*", "a capital letter, then letters and digits, such as Rack,"),
    "Kind.folder": (r"([A-Za-z0-9][A-Za-z0-9_.+-]*)?", "the name of a folder, such as racks,"),
    "Kind.api_version": _VERSION,
    "Code.id": (r"[A-Z]{2,8}[0-9]{2,4}", "a code of 2 to 8 capital letters and 2 to 4 digits, such as ACME001,"),
    "Code.name": (r".+", "a short name"),
    "Code._doc": (r".+", "an explanation"),
    "name": (r"[A-Za-z0-9][A-Za-z0-9_.+-]*", "a word such as energy"),
    "summary": (r"\s*\S.*", "one sentence"),
}
"""The pattern of each text, and what is expected; the last two are those of evaluators, exporters, reporters and commands."""

FIELD_TYPES = (
    "use str, int, float, bool, a Literal, a figure type such as Capacity, Ref[Kind], tuple[T, ...], Mapping[str, T], "
    "or a class with @attrs.frozen"
)
"""Types with which a field of a kind can be declared."""


def invalid_values(entry: EntryPoint, value: object) -> Iterator[str]:
    """Faults of an object that should be a plugin, one line each, without the classes of its kinds."""
    if not isinstance(value, Plugin):
        yield f"{entry.value} is of type {type(value).__name__}; a trnspec.Plugin is expected"
        return
    if type(value.api) is not int:
        yield f"its api is {value.api!r}; an integer is expected"
        return
    if value.name != entry.name:
        yield f"its entry point is named {entry.name!r} and the plugin {value.name!r}; use one name"
        return
    yield from _faults_of_attributes(value, "")
    yield from (
        f"its catalog {c} is not a folder" for c in value.catalogs if isinstance(c, FilePath) and not c.is_dir()
    )


def _faults(value: Any, declared: Any, name: str) -> Iterator[str]:
    """Values that are not of the declared type: a value of a plugin, its items, or its attributes if it is one of the interface."""
    if get_origin(declared) is Annotated:
        declared = get_args(declared)[0]
    origin, inner = get_origin(declared) or declared, get_args(declared)
    if origin in (typing.Union, types.UnionType):
        fits = any(not list(_faults(value, each, name)) for each in inner)
    elif origin is Literal:
        fits = value in inner
    elif origin in (int, float):
        fits = isinstance(value, (int, origin)) and not isinstance(value, bool)
    else:
        fits = declared is Any or (callable(value) if origin is Callable else isinstance(value, origin))
    if not fits:
        hint = "; decorate the function with @rule(...)" if declared is Rule else ""
        yield f"{name} is of type {type(value).__name__}; {_words(declared)} is expected{hint}"
    elif origin is tuple:
        for index, item in enumerate(value):
            yield from _faults(item, inner[0], f"{name}[{index}]")
    elif origin is Mapping:
        for key, item in value.items():
            yield from (*_faults(key, inner[0], f"{name}: {key!r}"), *_faults(item, inner[1], f"{name}: {key!r}"))
    elif origin in _INTERFACE:
        code = value.code if isinstance(value, Rule) else value
        title = f"{code.id} {code.name}" if isinstance(code, Code) else getattr(code, "name", "")
        yield from _faults_of_attributes(value, f"the {origin.__name__.lower()} {title}: ")


def _words(declared: Any) -> str:
    """A type in the words of a message."""
    origin = get_origin(declared) or declared
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_words, get_args(declared)))
    names = {Callable: "function", str: "text", type: "class such as Chip"}
    return "None" if origin is type(None) else f"a {names.get(origin, origin.__name__)}"


def _faults_of_attributes(value: Any, title: str) -> Iterator[str]:
    cls = type(value)
    hints = typing.get_type_hints(cls)
    for attribute in attrs.fields(cls):
        name, each = attribute.name, getattr(value, attribute.name)
        yield from _faults(each, hints[name], f"{title}{name.lstrip('_')}")
        pattern, expected = _TEXTS.get(f"{cls.__name__}.{name}") or _TEXTS.get(name, (".*", ""))
        if isinstance(each, str) and not re.fullmatch(pattern, each, re.DOTALL):
            yield f"{title}{name.lstrip('_')} is {each!r}; {expected} is expected"
    if isinstance(value, Kind) and isinstance(value.upgrade, Mapping):
        former = [v for v in value.upgrade if not re.fullmatch(_VERSION[0], str(v)) or v == value.api_version]
        yield from (
            f"{title}upgrade has {version!r}; a former version such as acme/v1 is expected" for version in former
        )
    if isinstance(value, Exporter) and not value.functions:
        yield f"{title}it has neither 'one' nor 'all'; give at least one of them"


_INTERFACE = (Kind, Rule, Code, Evaluator, Exporter, Reporter, Command)


def invalid_kinds(plugin: Plugin, units: UnitTable) -> Iterator[str]:
    """Faults of the classes of a plugin's kinds, one line each with kind, field and fix."""
    for kind in plugin.kinds:
        faults: list[str] = []
        try:
            with contained(call_seconds()):
                faults += _invalid_spec(kind.name, kind.spec, units)
        except (Exception, TimeLimitError) as error:  # noqa: BLE001  # whatever is left must not fail in a command
            faults = [f"its JSON Schema cannot be built: {described(error)}"]
        yield from (f"the kind {kind.name}: {fault}" for fault in faults)


def _invalid_spec(kind: str, spec: Any, units: UnitTable) -> list[str]:
    """Faults of a class, the classes of its fields, the schema, or the result of its method ``parts``."""
    if not isinstance(spec, type):
        return [f"its spec is {spec!r}; a class is expected"]
    faults: list[str] = []
    classes = [spec]
    for cls in classes:
        if reason := _not_frozen(cls):
            faults.append(reason)
            continue
        if cls is spec and not (cls.__doc__ or "").strip():
            faults.append(f"the class {cls.__name__} has no docstring; its first sentence describes the kind")
        if not _is_mapping_of_texts(vars(cls).get("RENAMED", {})):
            faults.append(f"{cls.__name__}.RENAMED is not a mapping from former paths to present ones, both texts")
        for attribute in (a for a in attrs.fields(cls) if a.init):
            try:
                shape = _shape(cls, attribute)
            except ValueError as error:
                faults.append(f"field {cls.__name__}.{attribute.name}: {error}")
            else:
                classes += (c for c in classes_in(shape) if c not in classes)
    if faults:
        return faults
    document_schema(kind, spec, units)
    if has_parts(spec):
        if wrong := [part for part in declared_parts(spec) if not attrs.has(part)]:
            return [f"parts() returns Parts[{wrong[0].__name__}]; name the classes of the parts: Parts[Server | Chip]"]
        samples = (sample_of(ObjectShape(spec), complete=complete) for complete in (False, True))
        return [fault for fault in dict.fromkeys(map(parts_fault, samples)) if fault]
    return []


def _is_mapping_of_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(v, str) for pair in value.items() for v in pair)


def _not_frozen(cls: type) -> str:
    # A class that only inherits from an attrs class has no fields of its own: its annotations would be ignored.
    if "__attrs_attrs__" not in vars(cls):
        return f"the class {cls.__name__} is not an attrs class; decorate it with @attrs.frozen"
    try:
        object.__new__(cls).__setattr__("_", None)
    except FrozenInstanceError:
        return ""
    except Exception:  # noqa: BLE001, S110  # slots without that name: it can be changed
        pass
    return f"the class {cls.__name__} is mutable; decorate it with @attrs.frozen"


def _shape(cls: type, attribute: attrs.Attribute[Any]) -> Shape:
    """The shape of one field, whose example and default are checked.

    Raises:
        ValueError: Its annotation cannot be evaluated, documents cannot express it, or its example or default is of
            another type.
    """
    name, annotation = attribute.name, attribute.type
    # Alone, in the module of the class that declares it, so that an error belongs to this field.
    owner = next(
        c for c in cls.__mro__ if attrs.has(c) and not getattr(attrs.fields_dict(c).get(name), "inherited", True)
    )
    probe = type("probe", (), {"__annotations__": {name: annotation}, "__module__": owner.__module__})
    try:
        hint = typing.get_type_hints(probe, include_extras=True)[name]
    except Exception as error:
        raise ValueError(f"the annotation {annotation!r} cannot be evaluated: {described(error)}") from error
    try:
        shape = shape_of(hint)
    except Exception as error:
        raise ValueError(f"{_unsuited(hint) or described(error)}; {FIELD_TYPES}") from error
    if example := field_docs(cls).get(name, ("", None))[1]:
        example_of(shape, example)
    default = default_of(attribute)
    may_lack = type(None) in get_args(hint) or name in unless_announced(cls)
    if default is not attrs.NOTHING and not (default is None and may_lack) and list(_faults(default, hint, name)):
        raise ValueError(f"the default {default!r} is not of its type; use None, or a value that a document gets")
    return shape


def _unsuited(hint: Any) -> str:
    """The part of an annotation that documents cannot express, in words."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    for part in get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,):
        origin = get_origin(part) or part
        if origin in (list, set, frozenset):
            return f"a document cannot hold a {origin.__name__}; use tuple[T, ...]"
        if origin is dict:
            return "a document cannot hold a dict; use Mapping[str, T]"
        if isinstance(origin, type) and origin not in (type(None), tuple) and not attrs.has(origin):
            return f"a document cannot hold a {origin.__name__}"
    return ""
