"""Execution traces in the format of Chakra (https://github.com/mlcommons/chakra), which astra-sim reads.

A trace is a file per rank of messages of Protocol Buffers, each after its length: metadata, then the nodes of a graph. The
numbers of fields and of values are those of version 0.0.4 of the format.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from io import BytesIO
from typing import Any

from attrs import frozen
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

from trnspec.errors import library

VERSION = "0.0.4"
_COLLECTIVES = {"all-reduce": 0, "all-gather": 2, "all-to-all": 6, "reduce-scatter": 7}
_KINDS = {"compute": 4, "send": 5, "receive": 6} | dict.fromkeys(_COLLECTIVES, 7)
_FIELDS = {
    "GlobalMetadata": (("version", 1, "string"),),
    "Node": (
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "uint32"),
        ("data_deps", 5, "repeated uint64"),
        ("duration_micros", 7, "uint64"),
        ("attr", 10, "repeated Attribute"),
    ),
    "Attribute": (
        ("name", 1, "string"),
        ("int32_val", 7, "optional int32"),
        ("int64_val", 9, "optional int64"),
        ("bool_val", 27, "optional bool"),
        ("string_val", 29, "optional string"),
    ),
}
"""The fields of the format that are written: name, number and type."""


@frozen(kw_only=True)
class TraceNode:
    """A node of a trace.

    Attributes:
        id: Its number.
        name: Its name.
        operation: ``compute``, ``send``, ``receive``, or a collective: ``all-reduce``, ``all-gather``, ``reduce-scatter``,
            ``all-to-all``.
        micros: Duration of computation [us].
        after: The nodes that it depends on.
        size: Bytes of a collective or a message.
        group: The number of the group of a collective.
        source: The rank that sends a message.
        target: The rank that receives it.
        tag: The tag of the message.
    """

    id: int
    name: str
    operation: str
    micros: int = 0
    after: tuple[int, ...] = ()
    size: int = 0
    group: int = 0
    source: int = 0
    target: int = 0
    tag: int = 0


def trace(nodes: Iterable[TraceNode]) -> bytes:
    """The file of one rank.

    Raises:
        UsageError: protobuf is not installed.
    """
    messages, write = _messages()
    file = BytesIO()
    write(messages["GlobalMetadata"](version=VERSION), file)
    for node in nodes:
        attributes: list[tuple[str, dict[str, Any]]] = [("is_cpu_op", {"bool_val": False})]
        if node.operation in _COLLECTIVES:
            attributes += [
                ("comm_type", {"int64_val": _COLLECTIVES[node.operation]}),
                ("comm_size", {"int64_val": node.size}),
                ("pg_name", {"string_val": str(node.group)}),
            ]
        elif node.operation != "compute":
            attributes += [
                ("comm_src", {"int32_val": node.source}),
                ("comm_dst", {"int32_val": node.target}),
                ("comm_tag", {"int32_val": node.tag}),
                ("comm_size", {"int64_val": node.size}),
            ]
        message = messages["Node"](
            id=node.id,
            name=node.name,
            type=_KINDS[node.operation],
            data_deps=node.after,
            duration_micros=node.micros,
            attr=[messages["Attribute"](name=name, **value) for name, value in attributes],
        )
        write(message, file)
    return file.getvalue()


def parsed(file: bytes) -> list[Any]:
    """The nodes of a file, as messages of Protocol Buffers."""
    messages, _ = _messages()
    stream = BytesIO(file)
    parse_length_prefixed(messages["GlobalMetadata"], stream)
    return list(iter(lambda: parse_length_prefixed(messages["Node"], stream), None))


@cache
def _messages() -> tuple[dict[str, Any], Any]:
    """The classes of the messages, and the function that writes one with its length."""
    library("google.protobuf", "chakra")
    file = descriptor_pb2.FileDescriptorProto(name="trnspec/chakra.proto", package="trnspec.chakra", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for what, number, type_ in fields:
            *label, kind = type_.split()
            added = message.field.add(name=what, number=number, label=field.LABEL_OPTIONAL)
            if "repeated" in label:
                added.label = field.LABEL_REPEATED
            if "optional" in label:
                # Values of an attribute exclude each other.
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                added.oneof_index = 0
            if kind in _FIELDS:
                added.type, added.type_name = field.TYPE_MESSAGE, f".trnspec.chakra.{kind}"
            else:
                added.type = getattr(field, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = {name: pool.FindMessageTypeByName(f"trnspec.chakra.{name}") for name in _FIELDS}
    return {name: message_factory.GetMessageClass(found[name]) for name in _FIELDS}, serialize_length_prefixed
