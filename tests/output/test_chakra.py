"""Traces in the format of Chakra, as its own schema reads them."""

import pytest

from trnspec.output.chakra import TraceNode, parsed, trace

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

NODES = [
    TraceNode(id=0, name="forward", operation="compute", micros=17),
    TraceNode(id=1, name="sum", operation="all-reduce", size=2**33, group=3, after=(0,)),
    TraceNode(id=2, name="gather", operation="all-gather", size=5, group=4, after=(0, 1)),
    TraceNode(id=3, name="send", operation="send", size=300, source=2, target=5, tag=9, after=(2,)),
    TraceNode(id=4, name="receive", operation="receive", size=300, source=5, target=2, tag=10),
]


def test_trace_round_trip() -> None:
    found = parsed(trace(NODES))
    attributes = [{a.name: getattr(a, a.WhichOneof("value")) for a in node.attr} for node in found]

    assert [(n.id, n.name, n.after) for n in NODES] == [(n.id, n.name, tuple(n.data_deps)) for n in found]
    assert [17, 0, 0, 0, 0] == [n.duration_micros for n in found]
    # COMP_NODE, COMM_COLL_NODE, COMM_SEND_NODE and COMM_RECV_NODE.
    assert [4, 7, 7, 5, 6] == [n.type for n in found]
    assert [
        {"is_cpu_op": False},
        {"is_cpu_op": False, "comm_type": 0, "comm_size": 2**33, "pg_name": "3"},
        {"is_cpu_op": False, "comm_type": 2, "comm_size": 5, "pg_name": "4"},
        {"is_cpu_op": False, "comm_src": 2, "comm_dst": 5, "comm_tag": 9, "comm_size": 300},
        {"is_cpu_op": False, "comm_src": 5, "comm_dst": 2, "comm_tag": 10, "comm_size": 300},
    ] == attributes


def test_bytes() -> None:
    metadata = b"\x07\x0a\x050.0.4"
    attribute = b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
    node = b"\x08\x01\x12\x01a\x18\x04\x2a\x01\x07\x38\x05" + attribute

    assert metadata + bytes([len(node)]) + node == trace(
        [TraceNode(id=1, name="a", operation="compute", micros=5, after=(7,))]
    )


def test_bytes_of_attributes() -> None:
    """The numbers of the fields int32_val, int64_val and string_val are 7, 9 and 29."""
    collective, sent = (trace([node]) for node in (NODES[1], NODES[3]))

    assert all(
        text in sent for text in (b"\x08comm_src\x38\x02", b"\x08comm_dst\x38\x05", b"\x09comm_size\x48\xac\x02")
    )
    assert all(text in collective for text in (b"\x09comm_type\x48\x00", b"\x07pg_name\xea\x01\x013"))
