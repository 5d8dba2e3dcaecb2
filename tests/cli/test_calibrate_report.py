"""``trnspec calibrate``: what it prints."""

import re

import pytest

from trnspec.loading.files import shipped

DATA = shipped() / "measured" / "training_trn1.csv"


@pytest.mark.slow
def test_printed_report(here):
    done = here("calibrate", DATA, "--software", "Neuron", "--rows")
    assert (0, True) == (done.status, done.err.startswith("trnspec: warning: 7 rows do not determine "))
    lines = [line.split() for line in done.out.splitlines()]
    assert ["7", "rows", "fitted,", "8", "cannot", "be", "evaluated"] == lines[0]
    percent = r"\d+\.\d%"
    assert re.search(rf"^of the fit +{percent} +{percent} +{percent}$", done.out, re.MULTILINE)
    assert re.search(rf"^of rows held out +{percent} +{percent} +{percent}$", done.out, re.MULTILINE)
    assert "prior: typical values" in done.out
    output = {line[0]: line[1] for line in lines if len(line) in (2, 5)}
    assert {"matmul", "network", "causal", "server"} <= set(output)
    assert re.fullmatch(r"0\.\d+x", output["matmul"])
    # Every row with its error, seen and unseen, and the time that was measured.
    assert 7 == len(re.findall(rf"^ +[+-]{percent} +[+-]{percent} +[\d.]+ s  trn1-", done.out, re.MULTILINE))
    _, _, skipped = done.out.rpartition("cannot be evaluated\n")
    assert 8 == len(skipped.splitlines())
    assert 3 == skipped.count("the row states no seq")
