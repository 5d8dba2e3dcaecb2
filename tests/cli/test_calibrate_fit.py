"""``trnspec calibrate``: what it prints and writes, what it refuses, and when."""

import csv
import os
import re
import subprocess

import pytest

from tests.support.engine import everything
from tests.support.programs import NVIDIA, ROOT, written
from trnspec.api import load, validate
from trnspec.loading.files import shipped
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.training import training_cases
from trnspec.perf.lowering.calibrated import calibrated

pytestmark = pytest.mark.slow

DATA = shipped() / "measured" / "training_trn1.csv"
TOLD = ("--software", "Neuron", "--name", "mine", "--source", "neuron-benchmarks-2026-08")


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


def test_written_document(here, tmp_path):
    done = here("calibrate", DATA, *TOLD, "--out", "mine")
    assert 0 == done.status, done.err
    assert done.out.endswith("wrote mine/calibrations/trainium1-calibrations.yaml\n")
    assert ["mine/calibrations/trainium1-calibrations.yaml"] == [
        str(f.relative_to(tmp_path)) for f in tmp_path.rglob("*") if f.is_file()
    ]
    assert [] == list(validate([str(tmp_path / "mine")]).report.diagnostics)
    graph = load([str(tmp_path / "mine")]).graph
    node = graph.named("trainium1-mine")
    assert ("trainium1", "training", "Neuron", "training_trn1.csv", 7) == (
        node.spec.chip.name, node.spec.of, node.spec.software, node.spec.tables[0].table, node.spec.spread.rows,
    )  # fmt: skip
    output = {line[0]: line[1:] for line in words(done.out) if line}
    for name in ("matmul", "network", "forward"):
        value = getattr(node.spec.achieved, name).value.text.split()
        assert value == output[name][: len(value)]
    assert "trainium1-mine" == calibrated(graph, "trainium1", "training", "trainium1-mine").name


SERVED = DATA.with_name("inference_neuron.csv")
INFERENTIA = ROOT / "plugins/trnspec-inferentia/src/trnspec_inferentia/catalog"


def test_a_document_for_a_chip_without_rows(here, tmp_path):
    asked = ("--only", "^(trn1|inf2)-", "--catalog", ROOT / "catalog", "--catalog", INFERENTIA, "--out", "mine")
    done = here("calibrate", SERVED, *TOLD, *asked, "--document", "trainium2", "--document", "trainium1",
                "--prior", "none")  # fmt: skip
    assert 0 == done.status, done.err
    lines = ("of the fit", "of rows held out", "of chips held out")
    output = re.findall(r"^(of [a-z ]+?)(, first token)? +([\d.]+)% +([\d.]+)% +([\d.]+)%$", done.out, re.MULTILINE)
    assert [*((line, "") for line in lines), *((line, ", first token") for line in lines)] == [t[:2] for t in output]
    graph = load([str(ROOT / "catalog"), str(INFERENTIA), str(tmp_path / "mine")]).graph
    own, carried = (graph.named(f"{chip}-mine-inference") for chip in ("trainium1", "trainium2"))
    assert own.spec.achieved == carried.spec.achieved
    for node, row in ((own, output[1]), (carried, output[2])):
        assert [float(x) for x in row[2:]] == pytest.approx(
            [100 * float(getattr(node.spec.spread, n)) for n in ("mean", "median", "worst")], abs=0.06
        )
    assert own.metadata.note is None
    assert (
        "No row was measured on this chip; the rows are of inferentia2, trainium1, and the errors those of fits that held out a chip."
        == carried.metadata.note
    )


MINE = ("--only", "BERT", "--out", "mine", "--source", "neuron-benchmarks-2026-08", "--software", "Neuron")


def test_a_fit_is_added_to_its_list_or_replaced(here, tmp_path, monkeypatch):
    place = tmp_path / "mine" / "calibrations" / "trainium1-calibrations.yaml"
    assert 0 == here("calibrate", DATA, *MINE, "--name", "b").status
    first = place.read_text()
    with monkeypatch.context() as patch:
        # It is said before the fit, which may take minutes.
        patch.setattr("trnspec.cli.calibrate_fit.fit", None)
        refused = here("calibrate", DATA, *MINE, "--name", "b")
        for text in ("# A comment.\n" + first, first + "# A comment.\n"):
            place.write_text(text)
            rewritten = here("calibrate", DATA, *MINE, "--name", "a")
            assert (2, 2) == (refused.status, rewritten.status)
    assert "trainium1-calibrations.yaml has a fit trainium1-b; --force replaces it" in " ".join(refused.err.split())
    assert "has comments or another order than trnspec writes; --force rewrites it" in " ".join(rewritten.err.split())
    place.write_text(first)
    assert 0 == here("calibrate", DATA, *MINE, "--name", "a").status
    assert 0 == here("calibrate", DATA, *MINE, "--name", "a", "--force").status
    graph = load([str(tmp_path / "mine")]).graph
    one, other = (graph.named(f"trainium1-{name}").spec for name in "ab")
    assert one.spread == other.spread
    assert ["- name: trainium1-a", "- name: trainium1-b"] == re.findall("- name: trainium1-.", place.read_text())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("trainium1-calibrations", "mine\n", "is not a valid list of calibrations: trnspec validate"),
        ("trainium1-a", "kind: Calibration\n", "trainium1-a.yaml is a document of its own; trnspec fix"),
    ],
)
def test_files_that_are_not_lists_stay(here, tmp_path, name, text, message):
    place = written(tmp_path / "mine" / "calibrations" / f"{name}.yaml", text)
    done = here("calibrate", DATA, *MINE, "--name", "a", "--force")
    assert (2, text) == (done.status, place.read_text())
    assert message in " ".join(done.err.split())


FILES = {
    "nothing": (None, "trnspec: rows.csv: cannot be read: no such file"),
    "binary": (bytes(range(256)), "trnspec: rows.csv:2: cannot be read: it is not UTF-8 text"),
    "cells too many": (b"kind,id\ntrain,a,b\n", "rows.csv:2: more cells than columns"),
    "no rows of training": (b"kind,id\nother,a\n", "there are no rows to fit"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file(here, tmp_path, case):
    contents, output = FILES[case]
    if contents is not None:
        (tmp_path / "rows.csv").write_bytes(contents)
    done = here("calibrate", "rows.csv", "--software", "x")
    assert (2, "") == (done.status, done.out)
    assert output in " ".join(done.err.split())


ON = {"model": "Llama-3.1-8B", "hardware": "trn1.32xlarge", "precision": "BF16"}
NEEDED = {
    "train": ON | {"n_chips": "512", "seq": "8192", "global_batch": "1024", "step_time_s": "21.4"},
    "infer": ON | {"n_chips": "16", "tp": "32", "isl": "128", "batch_conc": "4", "tpot_ms": "9.5"},
}


@pytest.mark.parametrize("kind", NEEDED)
def test_the_help_names_the_columns_that_are_needed(here, kind):
    row = {"kind": kind} | NEEDED[kind]
    output = here("calibrate", "--help").out
    _, _, after = " ".join(output.split()).partition(f"of kind {kind}: ")
    needed, _, _ = after.partition(" are required")
    graph = load().graph
    read = {"train": training_cases, "infer": inference_cases}[kind]

    assert set(NEEDED[kind]) == set(re.findall(r"[a-z_]+", needed)) - {"and"}
    assert [False] == [isinstance(case, Skipped) for case in read(graph, [row])]
    for name in NEEDED[kind]:
        assert [True] == [isinstance(case, Skipped) for case in read(graph, [row | {name: ""}])], name
    assert [] == [*read(graph, [NEEDED[kind]])]


def test_the_document_states_the_range_of_its_rows(here, tmp_path):
    """And how the fit does on other chips: the rows of ``--transfer`` that were not fitted, here those of one file."""
    done = here("calibrate", DATA, *TOLD, "--out", "mine", "--transfer", shipped() / "measured" / "training_mpt.csv",
                "--catalog", NVIDIA)  # fmt: skip
    assert 0 == done.status, done.err
    spec = load([str(tmp_path / "mine")]).graph.named("trainium1-mine").spec
    assert (128, 8192) == (spec.fitted_on.seq.low, spec.fitted_on.seq.high)
    assert (("trainium1",), ("bf16", "fp32")) == (spec.fitted_on.chips, spec.fitted_on.dtypes)
    assert (102, 3) == (spec.spread.transfer.rows, spec.spread.transfer.groups)
    assert float(spec.spread.transfer.low) < float(spec.spread.transfer.high)


def test_framework_era_and_models(here, tmp_path):
    options = ("--software", "Neuron", "--framework", "nxd", "--era", "2024", "--source", "neuron-benchmarks-2026-08")
    done = here("calibrate", DATA, *options, "--models", "dense", "--out", "mine", "--transfer", DATA)
    assert 0 == done.status, done.err
    spec = load([str(tmp_path / "mine")]).graph.named("trainium1-nxd-2024-dense").spec
    assert ("nxd", "2024", "dense") == (spec.framework, spec.era, spec.models)
    assert (spec.spread.rows, None) == (len(spec.tables[0].numbers), spec.rows)
    for only in (("--models", "experts"), ("--chip", "trainium9")):
        none = here("calibrate", DATA, "--software", "x", *only)
        assert (2, True) == (none.status, "there are no rows to fit" in none.err)


def changed(row: dict[str, str]) -> dict[str, str]:
    return {**row, "step_time_s": f"{0.9 * float(row['step_time_s'])}"} if row["step_time_s"] else row


def test_rows_of_ones_own_start_from_the_nearest_calibration(here, tmp_path, rows):
    """What they add is printed, in JSON and in the document; what they do not determine is a warning."""
    file = rows(changed, lambda row: "Llama-3" in row["id"] or "BERT" in row["id"])
    done = here("calibrate", file, *TOLD, "--out", "mine", "--format", "json", "--rows", "--transfer", DATA)
    assert 0 == done.status, done.err
    result = done.data
    assert ("trainium1-neuron", "") == (result["prior"]["calibration"], result["prior"]["differences"])
    assert ["mine/calibrations/trainium1-calibrations.yaml"] == result["wrote"]
    parameters = {each["name"]: each for each in result["parameters"]}
    shipped_spec = load().graph.named("trainium1-neuron").spec
    assert float(shipped_spec.achieved.matmul) == parameters["matmul"]["prior"]
    assert (0.0, "prior") == (
        pytest.approx(parameters["exchange"]["learned"], abs=1e-3),
        parameters["exchange"]["origin"],
    )
    assert len(result["fitted"]) == result["rows"] == 7
    kept = [name for name, each in parameters.items() if each["origin"] == "prior"]
    assert done.err == (
        f"trnspec: warning: 7 rows do not determine {len(kept)} of {len(parameters)} parameters, which stay near "
        f"trainium1-neuron: {', '.join(kept)}\n"
    )
    assert [] == list(validate([str(tmp_path / "mine")]).report.diagnostics)
    prior = load([str(tmp_path / "mine")]).graph.named("trainium1-mine").spec.prior
    assert "trainium1-neuron" == prior.calibration
    assert shipped_spec.achieved.matmul.value == prior.values.matmul.value
    learned = {each.name: float(each.share) for each in prior.learned}
    assert 0.0 not in learned.values()
    assert {name: pytest.approx(learned.get(name, 0.0), abs=6e-4) for name in parameters} == {
        name: each["learned"] for name, each in parameters.items()
    }


def test_a_prior_by_name(here, rows):
    file = rows(changed, lambda row: "BERT" in row["id"])
    plain = here("calibrate", file, "--software", "Neuron", "--prior", "none")
    assert (0, True) == (plain.status, "prior: typical values" in plain.out)


def test_a_fit_of_another_kind_is_not_replaced(here, tmp_path):
    """Also with --force: a name says what was measured only for rows that are not of training."""
    place = tmp_path / "mine" / "calibrations" / "trainium1-calibrations.yaml"
    assert 0 == here("calibrate", DATA, *MINE, "--name", "a").status
    place.write_text(place.read_text().replace("of: training", "of: inference"))
    done = here("calibrate", DATA, *MINE, "--name", "a", "--force")
    assert 2 == done.status
    assert "is a calibration of inference, not of training; choose another --name" in " ".join(done.err.split())


def test_every_shipped_calibration_is_in_the_script_that_refits_them():
    script = (ROOT / "benchmarks" / "refit.sh").read_text()
    nodes = everything().of(Calibration)
    assert [] == [n.name for n in nodes if n.spec.framework is None or not n.spec.tables]
    # Those of kernels are named by their rows.
    named = {n.spec.framework for n in nodes if n.spec.of != "kernels"}
    assert set() == named - set(re.findall(r"[a-z-]+", script))
    assert {each.table for n in nodes for each in n.spec.tables} == set(
        re.findall(r"MEASURED/([a-z0-9_]+\.csv)", script)
    )


@pytest.mark.parametrize("fits", ["training_trn1", "--models experts --era 2025"])
def test_a_refit_changes_nothing(tmp_path, fits):
    """A change of a formula that moves a fit needs ``make calibrations``."""
    shipped_texts = {
        file.name: file.read_text() for of in (shipped(), NVIDIA) for file in of.glob("calibrations/*.yaml")
    }
    copies = tmp_path / "calibrations"
    copies.mkdir()
    for name, text in shipped_texts.items():
        (copies / name).write_text(text)
    env = os.environ | {"OUT": str(tmp_path), "FITS": fits}
    done = subprocess.run(["sh", ROOT / "benchmarks/refit.sh"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.count("wrote") in {1, 6}
    # But for the path of the schema.
    changed = [
        n for n, text in shipped_texts.items() if text.split("\n")[1:] != (copies / n).read_text().split("\n")[1:]
    ]
    assert [] == changed
