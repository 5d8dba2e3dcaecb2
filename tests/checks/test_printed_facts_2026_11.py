"""Rows of tests/data/facts_2026_11.csv in the catalog; exceptions are listed with their reason."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.printed_facts import sayings
from trnspec.api import graph as load
from trnspec.errors import QuantityError
from trnspec.quantities.quantity import Quantity, parse

DATA = Path(__file__).parents[1] / "data"
PLUGINS = Path(__file__).parents[2] / "plugins"

with (DATA / "facts_2026_11.csv").open(newline="", encoding="utf-8") as _table:
    ROWS = dict(enumerate(csv.DictReader(_table), 2))

SOURCES = {
    "aws-neuron/aws-neuron-driver": "neuron-driver-9cc489e",
    "aws-neuron/aws-neuron-sdk src/libnrt": "neuron-nrt-header-2026-08",
    "aws-neuron/aws-neuron-sdk about-neuron": "neuron-logical-neuroncore-config-2026-08",
    "stored document 70891553229": "neuron-availability-survey-2026-10",
    "moto 5.2.5": "ec2-api-moto-5.2.5",
    "aws/karpenter-provider-aws": "karpenter-bandwidth-2026-08",
    "https://awsdocs-neuron.readthedocs-hosted.com/en/v2.33.0/release-notes": "neuron-runtime-release-notes-2026-10",
    "https://awsdocs-neuron.readthedocs-hosted.com/ (search excerpt) release notes 2.32": "neuron-release-notes-2.32",
    "https://awsdocs-neuron.readthedocs-hosted.com/ (search excerpt) release notes 2.29": "neuron-release-notes-2.29",
    "https://awsdocs-neuron.readthedocs-hosted.com/ (search excerpt) trainium3 page": "neuron-trainium3-2026-10",
    "https://awsdocs-neuron.readthedocs-hosted.com/ (search excerpt) both pages": "neuron-trainium3-arch-2026-10",
    "https://awsdocs-neuron.readthedocs-hosted.com/ (search excerpt) nki": "neuron-trainium2-arch-2.29",
    "https://awsdocs-neuron.readthedocs-hosted.com/ (search excerpt) UltraServer": "neuron-ultraserver-operator-2026-10",
    "yahavb/trn2-matmul-bench matmul": "matmul-bench-log-2026-05",
    "yahavb/trn2-matmul-bench results": "collective-bench-2026",
    "jimburtoft/": "mimo-v2-flash-profile",
    "aws-neuron/neuronx-distributed-inference": "nxd-inference-4bcdc54",
    "Fierce Network / DCD": "dcd-trainium3-2024",
}
"""The source in the catalog, by the beginning of the source of a row."""

_SIZES = ("trn3pd98.3xlarge", "trn3s-es.3xlarge", "trn3sn.3xlarge", "trn3sn-es.3xlarge")
DOCUMENTS = {
    "trn3p.48xlarge": ("trn3-gen1-server",),
    "trn3 (PDS)": ("trn3.48xlarge", "trn3s-es.48xlarge", "trn3sn.48xlarge", "trn3sn-es.48xlarge"),
    "trn3pds98": ("trn3-gen1-server",),
    "trn2 logical core": ("neuroncore-v3",),
    "trn logical core": ("neuroncore-v2", "neuroncore-v3", "neuroncore-v4"),
    "trainium1/trainium2": ("trainium1", "trainium2"),
    "neuron collectives": ("neuroncore-v3", "neuroncore-v4"),
    "trn3pd / trn3pds": ("trn3-gen1-server",),
    "trn3 3xlarge": _SIZES,
    "trn3": ("trn3.48xlarge",),
    "neuroncore": ("neuroncore-v2", "neuroncore-v3", "neuroncore-v4"),
    "trn3 UltraServer Gen2": ("trn3-gen2-ultraserver",),
    "trn2": ("trn2.48xlarge",),
    "trn3 UltraServer": ("trn3-gen1-ultraserver",),
    "trn3pds98.48xlarge": ("trn3-gen1-ultraserver",),
}
"""The documents that have a row, where the subject is not the name of one; each of them must have it."""

OF_ROW = {
    56: ("trn3-gen1-server", "trn3-gen2-server"),
    65: ("neuroncore-v4",),
    70: ("neuronlink-v3",),
    71: ("neuroncore-v3",),
    73: ("trainium3-tdp",),
}
"""The same of rows whose subject is a chip and whose figure is that of its core, link or power."""

PRINTED = {
    14: ("two devices on a tray",),
    17: ("supports_hbm_7200 is 0",),
    18: ("NRT_INSTANCE_TRN3 = 14",),
    19: ("NRT_INSTANCE_TRN3PDS98 = 15",),
    21: ("16 GiB", "24 GiB", "36 GiB"),
    34: ("A0, trn3 is B1",),
    35: ("us-east-2", "ap-south-2"),
    36: ("ap-south-2", "ap-southeast-4", "sa-east-1"),
    37: ("no Trn3 size is described",),
    38: ("7,680 GB",),
    40: ("524288 MiB",),
    56: ("supported from release 2.29",),
    57: ("by up to 2x",),
    59: ("4.7 TB/s",),
    71: ("138.3 TFLOPS", "116.4 TFLOPS"),
    73: ("over 1,000 W",),
}
"""What the catalog has of a row that is printed in another form; of several each is in one of the documents."""

ELSEWHERE = {
    39: "a comparison of all records, in the note of ec2-api-moto-5.2.5; the claims of each size repeat its figures",
    53: "a release of software, in the note of neuron-runtime-release-notes-2026-10",
}
"""Rows that are not about one figure of hardware, with the place where the catalog states them."""


@pytest.fixture(scope="module")
def graph():
    return load([str(f) for f in sorted(PLUGINS.glob("trnspec-*/src/*/catalog")) if "cost" not in str(f)])


def source(row) -> str:
    return next(name for start, name in SOURCES.items() if row["source"].startswith(start))


def printed(number, row) -> tuple[str, ...]:
    return PRINTED.get(number, (f"{row['value']} {row['unit']}",))


def same(text: str, value: object) -> bool:
    """Whether a value of the catalog is the printed one: a figure in any unit, a count, or the words in a sentence."""
    if isinstance(value, int):
        return re.match(r"\d+", text) is not None and int(re.match(r"\d+", text)[0]) == value
    figure = value if isinstance(value, Quantity) else _quantity(str(value))
    expected = _quantity(text)
    if figure is not None and expected is not None:
        return figure.dimension is expected.dimension and figure.interval.overlaps(expected.interval)
    words = re.findall(r"[\w.]+", text.split(" (", maxsplit=1)[0].lower())
    return isinstance(value, str) and set(words) <= set(re.findall(r"[\w.]+", value.lower()))


def _quantity(text: str) -> Quantity | None:
    try:
        return parse(text)
    except QuantityError:
        return None


def missing(number, row, graph) -> list[str]:
    """What the catalog does not have of a row, from the source of the row."""
    names = OF_ROW.get(number) or DOCUMENTS.get(row["subject"], (row["subject"],))
    texts = printed(number, row)
    found = {
        (name, text)
        for name in names
        for each in sayings(graph.named(name))
        for text in texts
        if each.source == source(row) and same(text, each.value)
    }
    if len(texts) > 1:  # a list: each value is in one of the documents
        return [text for text in texts if text not in {t for _, t in found}]
    return [f"{name}: {texts[0]}" for name in names if (name, texts[0]) not in found]


def test_rows_are_read() -> None:
    assert len(ROWS) == 73
    assert {number for number, row in ROWS.items() if not row["value"]} == set()
    assert set(PRINTED) | set(ELSEWHERE) <= set(ROWS)


def test_every_row(graph, tell) -> None:
    lacking = {n: missing(n, row, graph) for n, row in ROWS.items() if n not in ELSEWHERE}
    changes = Counter(row["change"].split()[0] for row in ROWS.values())
    reasons = [f"  row {n}: {ROWS[n]['subject']}: {reason}" for n, reason in ELSEWHERE.items()]
    tell(
        "facts of 2026-11 in the catalog",
        [f"{len(lacking)} of {len(ROWS)} rows, {dict(changes)}; the others are listed:", *reasons],
    )

    assert {n: lack for n, lack in lacking.items() if lack} == {}


@pytest.mark.parametrize(
    "change",
    [{"value": "5"}, {"subject": "trainium1"}, {"source": "moto 5.2.5"}],
    ids=["value", "subject", "source"],
)
def test_a_row_that_is_altered_is_missing(graph, change) -> None:
    number, row = next((n, r) for n, r in ROWS.items() if r["subject"] == "trn3e.24xlarge" and r["value"] == "4")

    assert missing(number, row, graph) == []
    assert missing(number, row | change, graph) != []
