"""``trnspec calibrate``: what it prints and writes, what it refuses, and when."""

from __future__ import annotations

import csv
import re
import sys

import pytest
from running import Here, apart

from trnspec.api import load, validate
from trnspec.catalog import shipped
from trnspec.perf.calibrated import calibrated

DATA = shipped() / "measured" / "training_trn1.csv"
TOLD = ("--software", "Neuron", "--name", "mine", "--source", "neuron-benchmarks-2026-08")


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)


@pytest.fixture
def rows(tmp_path):
    """Those of the shipped file, to be changed: a function that writes them."""
    with DATA.open(encoding="utf-8", newline="") as stream:
        every = list(csv.DictReader(stream))

    def write(change=lambda row: row, keep=lambda row: True):
        file = tmp_path / "rows.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            out = csv.DictWriter(stream, list(every[0]))
            out.writeheader()
            out.writerows(change(dict(row)) for row in every if keep(row))
        return file

    return write


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_what_it_prints(here):
    done = here("calibrate", DATA, "--software", "Neuron", "--rows")
    assert (0, "") == (done.status, done.err)
    lines = words(done.out)
    assert ["7", "rows", "fitted,", "8", "cannot", "be", "computed"] == lines[0]
    percent = r"\d+\.\d%"
    assert re.search(rf"^of the fit +{percent} +{percent} +{percent}$", done.out, re.MULTILINE)
    assert re.search(rf"^of rows left out of it +{percent} +{percent} +{percent}$", done.out, re.MULTILINE)
    told = {line[0]: line[1] for line in lines if len(line) == 2}
    assert {"matmul", "network", "causal", "server"} <= set(told)
    assert re.fullmatch(r"0\.\d+x", told["matmul"])
    # Every row with its error, seen and unseen, and the time that was measured.
    assert 7 == len(re.findall(rf"^ +[+-]{percent} +[+-]{percent} +[\d.]+ s  trn1-", done.out, re.MULTILINE))
    _, _, skipped = done.out.rpartition("cannot be computed\n")
    assert 8 == len(skipped.splitlines())
    assert 3 == skipped.count("the row states no seq")


def test_what_it_writes(here, tmp_path):
    done = here("calibrate", DATA, *TOLD, "--out", "mine")
    assert (0, "") == (done.status, done.err)
    assert done.out.endswith("wrote mine/calibrations/trainium1-mine.yaml\n")
    assert ["mine/calibrations/trainium1-mine.yaml"] == [
        str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()
    ]
    assert [] == list(validate([str(tmp_path / "mine")]).report.diagnostics)
    graph = load([str(tmp_path / "mine")]).graph
    node = graph.named("trainium1-mine")
    assert ("trainium1", "training", "Neuron", "training_trn1.csv", 7) == (
        node.spec.chip.name, node.spec.of, node.spec.software, node.spec.data, node.spec.spread.rows,
    )  # fmt: skip
    told = {line[0]: line[1:] for line in words(done.out) if line}
    for name in ("matmul", "network", "forward"):
        assert " ".join(told[name]) == getattr(node.spec.achieved, name).value.text
    assert "trainium1-mine" == calibrated(graph, "trainium1", "training", "trainium1-mine").name


def test_it_does_not_write_over_what_is_there(here, tmp_path, monkeypatch):
    place = tmp_path / "mine" / "calibrations" / "trainium1-mine.yaml"
    place.parent.mkdir(parents=True)
    place.write_text("mine\n")
    with monkeypatch.context() as patch:
        # It is said before the fit, which may take minutes.
        patch.setattr("trnspec.perf.fit.fit", None)
        done = here("calibrate", DATA, *TOLD, "--out", "mine")
    assert 2 == done.status
    assert "trainium1-mine.yaml is there already; --force writes over it" in " ".join(done.err.split())
    assert "mine\n" == place.read_text()
    assert 0 == here("calibrate", DATA, *TOLD, "--out", "mine", "--force").status
    assert "kind: Calibration" in place.read_text()


def test_in_a_checkout_the_schema_is_found(here, tmp_path):
    (tmp_path / "schemas" / "v1").mkdir(parents=True)
    (tmp_path / "schemas" / "v1" / "calibration.schema.json").write_text("{}")
    assert 0 == here("calibrate", DATA, *TOLD, "--out", "plugins/mine").status
    first = (tmp_path / "plugins/mine/calibrations/trainium1-mine.yaml").read_text().splitlines()[0]
    assert "# yaml-language-server: $schema=../../../schemas/v1/calibration.schema.json" == first


REFUSED = {
    "--out without a name": (("--software", "x", "--out", "mine"), "--out needs --name and --source"),
    "--out without a source": (("--software", "x", "--name", "x", "--out", "mine"), "--out needs --name and --source"),
    "a name that is none": ((*TOLD[:3], "../mine", *TOLD[4:], "--out", "mine"), "--name: '../mine' is not a name of"),
    "no such source": (
        (*TOLD[:5], "neuron-benchmark-2026-08", "--out", "mine"),
        "no source is named 'neuron-benchmark-2026-08'; did you mean 'neuron-benchmarks-2026-08'",
    ),
    "a bad expression": (("--software", "x", "--only", "("), "--only: '(' is not a regular expression"),
    "no such chip": (("--software", "x", "--chip", "trainium9"), "there are no rows to fit"),
    "no such row": (("--software", "x", "--only", "nothing"), "there are no rows to fit"),
    "too few": (("--software", "x", "--only", "Llama-3.1"), "1 rows are too few to fit; 3 is the least"),
    "no software": ((), "Missing option '--software'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(here, tmp_path, case):
    options, told = REFUSED[case]
    done = here("calibrate", DATA, *options)
    assert 2 == done.status
    assert told in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert [] == [f for f in tmp_path.rglob("*") if f.is_file()]


FILES = {
    "nothing": (None, "it cannot be read"),
    "empty": (b"", "no rows of measurements"),
    "binary": (bytes(range(256)), "it cannot be read"),
    "another table": (b"a,b\n1,2\n", "a column named kind"),
    "cells too many": (b"kind,id\ntrain,a,b\n", "rows.csv:2: more cells than columns"),
    "no rows of training": (b"kind,id\nother,a\n", "there are no rows to fit"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file(here, tmp_path, case):
    contents, told = FILES[case]
    if contents is not None:
        (tmp_path / "rows.csv").write_bytes(contents)
    done = here("calibrate", "rows.csv", "--software", "x")
    assert (2, "") == (done.status, done.out)
    assert told in " ".join(done.err.split())


def test_why_no_row_can_be_computed_is_said(here, rows):
    """Where nothing is left to fit to, the reasons are what one wants to know."""
    done = here("calibrate", rows(lambda row: {**row, "hardware": "abacus"}), "--software", "x")
    assert 2 == done.status
    assert 15 == len([line for line in done.out.splitlines() if line.startswith("  ")])
    assert 10 == done.out.count("'abacus' is no hardware that is known here")
    assert 5 == done.out.count("and the row lacks its dimensions")


def test_some_rows(here):
    done = here("calibrate", DATA, "--software", "x", "--only", "BERT", "--rows")
    assert 0 == done.status
    assert ["6", "rows", "fitted,", "0", "cannot", "be", "computed"] == words(done.out)[0]
    assert "Llama" not in done.out


def test_a_catalog_of_ones_own(here, tmp_path, rows):
    """Names are resolved against it, and its sources may be named."""
    source = tmp_path / "own" / "sources" / "mine-2026.yaml"
    source.parent.mkdir(parents=True)
    source.write_text(
        "api_version: trnspec/v1\nkind: Source\nmetadata: {name: mine-2026, title: Mine}\n"
        "spec: {publisher: Me, as_of: 2026-11-21, rank: vendor-chip-page, dating: exact}\n"
    )
    asked = (
        "calibrate",
        DATA,
        "--software",
        "x",
        "--name",
        "x",
        "--source",
        "mine-2026",
        "--only",
        "BERT",
        "--out",
        "own",
    )
    assert 2 == here(*asked).status
    assert 0 == here(*asked, "--catalog", "own").status
    assert "source: mine-2026" in (tmp_path / "own/calibrations/trainium1-x.yaml").read_text()


def test_a_place_that_cannot_be_written(here, tmp_path):
    (tmp_path / "mine").write_text("a file\n")
    done = here("calibrate", DATA, *TOLD, "--only", "BERT", "--out", "mine")
    assert 0 != done.status
    assert "mine" in done.err
    assert "Traceback" not in done.err


def test_without_scipy(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    done = here("calibrate", DATA, "--software", "x")
    assert 2 == done.status
    assert "fitting needs scipy; install trnspec with the extra calibrate" in " ".join(done.err.split())


@pytest.mark.slow
def test_in_a_process_of_its_own(tmp_path):
    done = apart("--no-plugins", "calibrate", DATA, *TOLD, "--only", "BERT", "--out", "mine", cwd=tmp_path)
    assert (0, "") == (done.status, done.err)
    assert (tmp_path / "mine/calibrations/trainium1-mine.yaml").is_file()
    refused = apart("--no-plugins", "calibrate", "nowhere.csv", "--software", "x", cwd=tmp_path)
    assert (2, "") == (refused.status, refused.out)
    assert ["Traceback" in refused.err, "nowhere.csv" in refused.err] == [False, True]
