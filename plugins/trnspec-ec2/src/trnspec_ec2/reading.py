"""DescribeInstanceTypes output, read: JSON becomes records whose values have the types that the API documents.

Other values are ignored; a value that is read has the documented type, or one error names its position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NoReturn

from attrs import frozen

from trnspec import UsageError

WANTED = "what `aws ec2 describe-instance-types --output json` prints is expected"

MOST_BYTES = 256 * 2**20
"""The largest input; all types of all of EC2 are about 6 MB."""

INSTANCE_TYPE = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\.[a-z0-9][a-z0-9-]{0,31}")
"""The form of the name of an instance type."""

COUNT = "a whole number"
NUMBER = "a number"
TEXT = "a text of 1 to 100 printable characters"
FLAG = "true or false"

_DEVICE = {
    "Count": COUNT,
    "Manufacturer": TEXT,
    "Name": TEXT,
    "GpuPartitionSize": NUMBER,
    "MemoryInfo": {"SizeInMiB": COUNT},
}

SHAPE: Mapping[str, Any] = {
    "InstanceType": TEXT,
    "VCpuInfo": {"DefaultVCpus": COUNT, "DefaultCores": COUNT, "DefaultThreadsPerCore": COUNT},
    "MemoryInfo": {"SizeInMiB": COUNT},
    "ProcessorInfo": {"Manufacturer": TEXT, "SustainedClockSpeedInGhz": NUMBER},
    "InstanceStorageInfo": {"TotalSizeInGB": COUNT, "Disks": [{"Count": COUNT, "SizeInGB": COUNT}]},
    "EbsInfo": {
        "EbsOptimizedInfo": {
            "BaselineBandwidthInMbps": COUNT,
            "BaselineThroughputInMBps": NUMBER,
            "BaselineIops": COUNT,
            "MaximumBandwidthInMbps": COUNT,
            "MaximumThroughputInMBps": NUMBER,
            "MaximumIops": COUNT,
        },
    },
    "NetworkInfo": {
        "NetworkPerformance": TEXT,
        "MaximumNetworkCards": COUNT,
        "EfaSupported": FLAG,
        "EfaInfo": {"MaximumEfaInterfaces": COUNT},
        "NetworkCards": [
            {"PeakBandwidthInGbps": NUMBER, "BaselineBandwidthInGbps": NUMBER, "InterfaceTypes": [TEXT]},
        ],
    },
    "NeuronInfo": {
        "NeuronDevices": [{**_DEVICE, "CoreInfo": {"Count": COUNT, "Version": COUNT}}],
        "TotalNeuronDeviceMemoryInMiB": COUNT,
    },
    "GpuInfo": {"Gpus": [_DEVICE], "TotalGpuMemoryInMiB": COUNT},
    "InferenceAcceleratorInfo": {"Accelerators": [_DEVICE], "TotalInferenceMemoryInMiB": COUNT},
}
"""The part of a record that is read, as the reference of ``InstanceTypeInfo`` names and types it."""


@frozen
class Record:
    """The record of one instance type.

    Attributes:
        name: The type: ``trn2.48xlarge``.
        data: The values that are read, in the form of :data:`SHAPE`; absent values are omitted.
        place: Its position in the input: ``InstanceTypes[3]``.
    """

    name: str
    data: Mapping[str, Any]
    place: str


def parse(text: bytes, file: str) -> tuple[Record, ...]:
    """The records of a JSON text: the API's answer, its list of types, or one record of it.

    Args:
        text: The text, in UTF-8.
        file: Its name in messages.

    Raises:
        UsageError: It is not such a text; the message has the position and what was expected.
    """
    if len(text) > MOST_BYTES:
        _wrong(file, f"more than {MOST_BYTES // 2**20} MiB")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _wrong(file, f"byte {error.start + 1} is not UTF-8")
    if not decoded.strip():
        _wrong(file, "it is empty")
    return records(_loaded(decoded, file), file)


def _loaded(text: str, file: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_constant)
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}:{error.colno}"
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
            _wrong(place, f"the JSON is cut off: {error.msg}")
        _wrong(place, f"not JSON: {error.msg}")
    except RecursionError:
        _wrong(file, "the JSON is nested too deep")
    except ArithmeticError:
        _wrong(file, "a number has an exponent that is out of bounds")
    except ValueError as error:
        # The function below rejects NaN; Python itself rejects whole numbers of thousands of digits.
        _wrong(file, str(error) if "JSON" in str(error) else "a whole number has thousands of digits")


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def records(data: Any, file: str) -> tuple[Record, ...]:
    """The records of the API's answer, whether it was read from a text or given by a program.

    Args:
        data: An object with ``InstanceTypes``, a list of records, or one record.
        file: Its name in messages.

    Raises:
        UsageError: It is none of these, a value has another type than in the API, or a type occurs twice.
    """
    parsed = tuple(_records(data, file))
    if not parsed:
        _wrong(file, "it has no instance types")
    places: dict[str, str] = {}
    for record in parsed:
        first = places.setdefault(record.name, record.place)
        if first != record.place:
            _wrong(f"{file}: {record.place}", f"{record.name} is here a second time, after {first}", "leave one out")
    return parsed


def _records(data: Any, file: str) -> Iterator[Record]:
    listed, head = data, ""
    if isinstance(data, dict) and "InstanceTypes" in data:
        listed, head = data["InstanceTypes"], "InstanceTypes"
    elif isinstance(data, dict) and "InstanceType" in data:
        yield _record(data, "", file)
        return
    if not isinstance(listed, list):
        if head:
            _not_expected(f"{file}: {head}", listed, "a list")
        _wrong(file, f"not DescribeInstanceTypes output: {_described(data)} with {_keys(data)} is at its top")
    for index, each in enumerate(listed):
        yield _record(each, f"{head}[{index}]", file)


def _record(data: Any, place: str, file: str) -> Record:
    at = f"{file}: {place}" if place else file
    if not isinstance(data, dict):
        _not_expected(at, data, "a record of an instance type, an object")
    if data.get("InstanceType") is None:
        _wrong(at, f"the record has no InstanceType; it has {_keys(data)}")
    taken = _taken(data, SHAPE, place, file)
    name = taken["InstanceType"]
    if not INSTANCE_TYPE.fullmatch(name):
        _not_expected(_at(file, place, "InstanceType"), name, "a type such as trn1.2xlarge")
    return Record(name, taken, place or name)


def _taken(value: Any, shape: Any, place: str, file: str) -> Any:
    """The part of a value that the shape names; nulls, which ``--query`` prints for absent values, are left out."""
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            _not_expected(_at(file, place), value, "an object")
        items = ((key, _taken(value[key], shape[key], f"{place}.{key}", file)) for key in shape if _has(value, key))
        return dict(items)
    if isinstance(shape, list):
        if not isinstance(value, list):
            _not_expected(_at(file, place), value, "a list")
        return [_taken(each, shape[0], f"{place}[{index}]", file) for index, each in enumerate(value)]
    return _plain(value, shape, place, file)


def _has(value: dict[str, Any], key: str) -> bool:
    return value.get(key) is not None


_LONGEST = 100
"""Characters of a text; the longest that the API prints have about forty."""

_LARGEST = 10**15
"""More than any count and size of the API: a pebibyte is 2**30 MiB."""

_DECIMALS = 17
"""Decimals of a number; those of binary fractions that the API computes, such as 40.333333333333336."""

_KEPT = 9
"""Decimals that are kept."""


def _plain(value: Any, shape: str, place: str, file: str) -> Any:
    if isinstance(value, float):
        value = Decimal(repr(value))
    fits = {
        COUNT: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: isinstance(value, (int, Decimal)) and not isinstance(value, bool),
        TEXT: isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= _LONGEST,
        FLAG: isinstance(value, bool),
    }
    if not fits[shape]:
        _not_expected(_at(file, place), value, shape)
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
        if not isinstance(exponent, int) or exponent < -_DECIMALS or not 0 <= value < _LARGEST:
            wanted = f"expected one from 0 to 10^15 with at most {_DECIMALS} decimals"
            _wrong(_at(file, place), "the number is out of bounds", wanted)
        if isinstance(value, Decimal) and exponent < -_KEPT:
            value = round(value, _KEPT)
    return value


def _at(file: str, place: str, key: str = "") -> str:
    path = ".".join(p for p in (place.removeprefix("."), key) if p)
    return f"{file}: {path}" if path else file


def _described(value: Any) -> str:
    """A short description of a value."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        text = json.dumps(value)
        shown = text if len(text) <= 40 else text[:36] + '..."'
        return f"the text {shown}"
    if isinstance(value, int):
        return f"the number {value}" if abs(value) < _LARGEST else "a number too long to show"
    if isinstance(value, Decimal):
        return f"the number {value}"
    return {"dict": "an object", "list": "a list"}.get(type(value).__name__, f"a {type(value).__name__}")


def _keys(value: Any) -> str:
    if not isinstance(value, dict):
        return "no keys"
    names = [json.dumps(str(k))[:40] for k in list(value)[:4]]
    return ("the keys " + ", ".join(names) + (", ..." if len(value) > 4 else "")) if names else "no keys"


def _not_expected(place: str, value: Any, expected: str) -> NoReturn:
    raise UsageError(f"{place}: expected {expected}, found {_described(value)}")


def _wrong(place: str, message: str, wanted: str = WANTED) -> NoReturn:
    raise UsageError(f"{place}: {message}; {wanted}")
