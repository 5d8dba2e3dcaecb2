"""``trnspec audit``: documents, figure paths and verdicts; the summary."""

import functools
import io
import json
import re
from typing import Any

import pytest
from click.testing import CliRunner

from tests.checks.test_credit import pages  # noqa: F401  # a fixture
from tests.support.programs import DATA, Here
from trnspec.api import graph
from trnspec.checks.reconcile.audit import Disagreement, SourceValue
from trnspec.cli import group
from trnspec.cli.audit import _entry
from trnspec.cli.render import SCREEN
from trnspec.graph.currency import ages, limit


@functools.cache
def audited() -> dict[str, Any]:
    """The audit of the whole catalog."""
    return json.loads(CliRunner().invoke(group, ["audit", "--format", "json"]).stdout)


def disagreements(here: Here, *args: str) -> list[dict[str, Any]]:
    return here("audit", *args, "--format", "json").data["disagreements"]


def test_names_paths_and_verdicts(here) -> None:
    names = ("trainium2", "trn2.48xlarge")
    every = [d for d in audited()["disagreements"] if d["name"] in names]
    of_path = disagreements(here, *names, "memory.bandwidth")
    below = disagreements(here, *names, "memory")
    of_verdict = disagreements(here, *names, "--verdict", "rejected")
    both = disagreements(here, "trainium2", "memory.bandwidth", "--verdict", "rejected")

    assert [d for d in every if d["at"] == "spec.memory.bandwidth"] == of_path
    assert [d for d in every if str(d["at"]).startswith("spec.memory") and d["at"] != "spec.memory_pool"] == below
    assert [d for d in every if d["verdict"] == "rejected"] == of_verdict
    assert [d for d in of_path if (d["name"], d["verdict"]) == ("trainium2", "rejected")] == both
    assert both


def test_summary(here) -> None:
    """Without a name it is all there is; it fits on a screen, and its counts are those of JSON."""
    lines = here("audit").out.splitlines()
    summary = audited()["summary"]
    counts = {line.split()[1]: int(line.split()[0]) for line in lines[1:7] if line[6].isdigit()}

    assert {
        "agree": summary["agreeing"],
        "resolved": summary["resolved"],
        "unresolved": summary["unresolved"],
        "not": summary["found"],
    } == counts
    assert sum(counts.values()) == summary["figures"]
    assert lines[0].startswith(f"{summary['figures']} figures of {summary['documents']} documents: ")
    assert len(lines) <= 16
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith(f"prints all {len(audited()['disagreements'])}")


def test_screen(here) -> None:
    """At most 40 lines of every document; no disagreement that is open is hidden."""
    for name in ("trainium1", "trainium2", "trainium3", "trn2.48xlarge", "trn2-ultraserver", "neuroncore-v3"):
        lines = here("audit", name).out.splitlines()
        found = [d for d in audited()["disagreements"] if (d["name"], d["verdict"]) == (name, "unresolved")]
        squeezed = "".join("".join(lines).split())

        assert len(lines) <= SCREEN, name
        assert [d for d in found for c in d["conflicting"] if "".join(c["says"].split()) not in squeezed] == []


def test_machine(here) -> None:
    """Status 1 where something differs; the same rows for programs."""
    file = DATA / "host" / "neuron_ls_trn2_container.json"
    text = here("audit", "--host", file)
    data = here("audit", "--host", file, "--format", "json").data

    assert (1, "") == (text.status, text.err)
    assert ("neuron-ls", "trn2.48xlarge", 1) == (data["tool"], data["server"], data["version"])
    assert ["devices"] == [row["property"] for row in data["rows"] if row["outcome"] == "differs"]
    assert 0 == here("audit", "--host", DATA / "host" / "neuron_ls_trn2.3xlarge.json").status


def test_machine_from_standard_input(here, monkeypatch) -> None:
    raw = (DATA / "host" / "neuron_ls_trn1.2xlarge.json").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    done = here("audit", "trn2.3xlarge", "--host", "-")

    assert (1, "") == (done.status, done.err)
    assert done.out.startswith(
        "<stdin>: 1 device, as neuron-ls lists them\ncompared with  trn2.3xlarge (as requested)\n"
    )
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[{]")))
    done = here("audit", "--host", "-")
    assert (2, "") == (done.status, done.out)
    assert done.err.startswith("trnspec: <stdin>:1: error TRN004 syntax-error: not JSON: ")


def listed(here: Here, *args: str) -> dict[str, object]:
    done = here("audit", "--stale", *args, "--format", "json")
    assert done.status == 0
    data: dict[str, object] = done.data
    return data


@pytest.mark.parametrize("older_than", ["12mo", "2y"])
def test_stale_rows(here, older_than) -> None:
    data = listed(here, "--older-than", older_than)
    known = list(ages(graph(), str(data["as_of"])))
    months = [row["months"] for row in data["rows"]]

    assert data["values"] == len(known)
    assert data["older_than_months"] == limit(older_than)
    assert {(row["document"], row["figure"]) for row in data["rows"]} == {
        (age.name, age.at) for age in known if age.months > limit(older_than)
    }
    assert months == sorted(months, reverse=True)


def test_stale_screen(here) -> None:
    page, full = here("audit", "--stale").out, here("audit", "--stale", "--full").out
    hidden = int(re.search(r"--full: (\d+) more values", page)[1])

    assert page.count("\n") <= SCREEN < full.count("\n")
    assert "--full" not in full
    assert hidden == len(listed(here)["rows"]) - len(re.findall(r" \d{4}[-\d]* +\d+$", page, re.MULTILINE))


def test_whole_page_has_every_disagreement_in_full(here) -> None:
    heads = [f"{d['name']}  {d['at'].replace('spec.', '')}" for d in disagreements(here, "trn2.48xlarge")]
    lines = here("audit", "trn2.48xlarge", "--full").out.splitlines()

    assert heads == [line for line in lines if line in heads]
    assert here("audit", "trn2.48xlarge", "--details").out.splitlines() == lines
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize(
    ("verdict", "says", "shown"),
    [
        ("found", ("2 GB", "3 GB"), ["2 GB against 3 GB  -33.3 %", "2 GB: page, 2026", "3 GB: sheet, 2026"]),
        ("rejected", ("3 GB", "3 GB"), ["3 GB  -33.3 %", "page, 2026", "sheet, 2026"]),
    ],
)
def test_two_claims_without_an_adopted_figure(verdict, says, shown) -> None:
    values = tuple(SourceValue(text, source, "2026") for text, source in zip(says, ("page", "sheet"), strict=True))
    found = Disagreement(name="box", at="spec.memory", adopted=None, conflicting=values, gap=-1 / 3, verdict=verdict)
    lines = [line[len("  other-scope  ") :] for line in _entry(found)]

    assert lines[1:] == ["nothing is adopted", *shown]


def test_values_that_are_not_printed(here, pages) -> None:  # noqa: F811
    done = here("audit", "--pages", str(pages), "trn1.32xlarge", "trn1.2xlarge", "host.vcpus", "--format", "json")
    data = done.data

    assert done.status == 1
    assert (data["values"], data["printed"]) == (2, {"line": 1, "page": 0, "no": 1})
    assert [(row["document"], row["figure"], row["says"]) for row in data["rows"]] == [
        ("trn1.2xlarge", "host.vcpus", "8")
    ]
    assert here("audit", "--pages", str(pages), "trn1.32xlarge", "host.vcpus").status == 0
    assert here("audit", "--pages", str(pages), "neuroncore-v2").out.splitlines()[2:6] == [
        "neuroncore-v2  isa                 gen2  neuron-        section 2, of NKI",
        "                                         availability-",
        "                                         survey-2026-",
        "                                         10",
    ]
    both = here("audit", "--pages", str(pages), "neuroncore-v2", "trainium1").out
    assert ["document", "figure", "says", "source"] == both.splitlines()[0].split()
    assert "hidden columns: where (use --format json or a wider terminal)" in both
