"""``neuron-ls --json-output``: a list with an object for each device.

Known of its keys: ``memory_size`` is in bytes, ``nc_count`` counts the cores that programs see, each of which is
``logical_neuroncore_config`` physical ones, and ``connected_to`` is null where a device has no links.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from attrs import frozen

from trnspec.loading.host.machine import EXPECTED, MOST_DEVICES, Accelerator, HostMachine, HostText

COMPARED = (
    "connected_to",
    "instance_type",
    "logical_neuroncore_config",
    "memory_size",
    "nc_count",
    "neuron_device",
)
"""The keys that are compared with the catalog."""

STATE = frozenset({"bdf", "cpu_affinity", "instance_id", "neuron_processes", "neuroncore_ids", "numa_node"})
"""The keys that identify a machine or describe its present state; no catalog has them."""

_MOST = 2**53
"""Larger than every count and size of a device; JSON has no larger exact integers."""


class _TwiceError(ValueError):
    """A key that occurs twice."""


def read(source: HostText) -> HostMachine:
    """The machine that neuron-ls describes.

    Raises:
        UsageError: The text is not its output; the message has the line, a code and what is expected.
    """
    text = source.text()
    return _NeuronLsReader(source, text).machine(_parsed(source, text))


def _parsed(source: HostText, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise source.problem(error.lineno, "TRN004 syntax-error", f"not JSON: {error.msg}; {EXPECTED}") from None
    except _TwiceError as error:
        key = str(error)
        places = [m.start() for m in _places(key, text)]
        line = text.count("\n", 0, places[1]) + 1 if len(places) > 1 else 1
        raise source.problem(line, "TRN005 duplicate-key", f"an object has the key {key!r} twice") from None
    except RecursionError:
        raise source.problem(1, "TRN011 excessive-depth", f"the JSON is nested too deep; {EXPECTED}") from None
    except ValueError as error:
        # NaN, which is rejected below, and integers of thousands of digits, which Python rejects.
        raise source.problem(1, "TRN010 unrepresentable-number", f"{error}; {EXPECTED}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) < len(pairs):
        seen: set[str] = set()
        raise _TwiceError(next(k for k, _ in pairs if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
    return keys


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _places(key: str, text: str) -> list[re.Match[str]]:
    """Position of a key in a text; the quotes of a key inside a text are escaped."""
    return list(re.finditer(rf"(?<!\\){re.escape(json.dumps(key, ensure_ascii=False))}\s*:", text))


@frozen
class _NeuronLsReader:
    source: HostText
    text: str

    def machine(self, data: Any) -> HostMachine:
        if not isinstance(data, list) or not data:
            found = "an empty list" if data == [] else _described(data)
            raise self.source.problem(1, "TRN103 wrong-type", f"expected a list of devices, found {found}; {EXPECTED}")
        if len(data) > MOST_DEVICES:
            raise self.source.problem(1, "TRN012 excessive-size", f"more than {MOST_DEVICES} devices")
        devices = tuple(self._device(data, n) for n in range(len(data)))
        types = {t for n in range(len(data)) if (t := self._instance_type(data, n))}
        if len(types) > 1:
            names = ", ".join(sorted(types))
            line = self._line(data, len(data) - 1, "instance_type")
            raise self.source.problem(line, "TRN103 wrong-type", f"devices of several instance types: {names}")
        numbers = [d.index for d in devices]
        for n, number in enumerate(numbers):
            if number in numbers[:n]:
                line = self._line(data, n, "neuron_device")
                raise self.source.problem(line, "TRN005 duplicate-key", f"two devices have the number {number}")
        unknown: dict[str, int] = {}
        for n, each in enumerate(data):
            for key in each:
                if key not in COMPARED and key not in STATE:
                    unknown.setdefault(key, self._line(data, n, key))
        return HostMachine(
            tool="neuron-ls",
            file=self.source.file,
            devices=devices,
            instance_type=next(iter(types), ""),
            unknown=unknown,
        )

    def _instance_type(self, data: Sequence[Any], n: int) -> str:
        value = data[n].get("instance_type")
        if value is None or isinstance(value, str):
            return value or ""
        raise self._wrong(data, n, "instance_type", "a text", value)

    def _device(self, data: Sequence[Any], n: int) -> Accelerator:
        each = data[n]
        if not isinstance(each, dict):
            message = f"expected an object for device {n}, found {_described(each)}"
            raise self.source.problem(1, "TRN103 wrong-type", message)
        index = self._count(data, n, "neuron_device")
        if index is None:
            line = next((self._line(data, n, key) for key in each), 1)
            raise self.source.problem(
                line, "TRN102 missing-field", f"entry {n + 1} has no neuron_device; it has {_keys(each)}; {EXPECTED}"
            )
        return Accelerator(
            index=index,
            line=self._line(data, n, "neuron_device"),
            memory=self._count(data, n, "memory_size"),
            cores=self._count(data, n, "nc_count"),
            cores_in_one=self._count(data, n, "logical_neuroncore_config"),
            neighbours=self._neighbours(data, n),
        )

    def _neighbours(self, data: Sequence[Any], n: int) -> tuple[int, ...] | None:
        value = data[n].get("connected_to")
        if value is None:
            # No key at all is silence; null is the output for a device without links.
            return () if "connected_to" in data[n] else None
        if not isinstance(value, list) or not all(_is_count(v) for v in value):
            raise self._wrong(data, n, "connected_to", "a list of device numbers, or null", value)
        return tuple(value)

    def _count(self, data: Sequence[Any], n: int, key: str) -> int | None:
        value = data[n].get(key)
        if value is None:
            return None
        if not _is_count(value):
            raise self._wrong(data, n, key, "a whole number", value)
        return int(value)

    def _wrong(self, data: Sequence[Any], n: int, key: str, wanted: str, value: Any) -> Exception:
        code = "TRN106 out-of-bounds" if isinstance(value, int) and not isinstance(value, bool) else "TRN103 wrong-type"
        message = f"{key} of entry {n + 1}: expected {wanted}, found {_described(value)}"
        return self.source.problem(self._line(data, n, key), code, message)

    def _line(self, data: Sequence[Any], n: int, key: str) -> int:
        """The line of a key of the entry ``n``: the occurrences in the entries before it are counted."""
        before = sum(isinstance(each, dict) and key in each for each in data[:n])
        places = _places(key, self.text)
        return self.text.count("\n", 0, places[before].start()) + 1 if before < len(places) else 1


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _described(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:36] + "..."


def _keys(each: dict[str, Any]) -> str:
    names = [json.dumps(k, ensure_ascii=False)[:40] for k in list(each)[:4]]
    return ("the keys " + ", ".join(names) + (", ..." if len(each) > 4 else "")) if names else "no keys"
