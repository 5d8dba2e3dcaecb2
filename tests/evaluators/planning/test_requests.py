"""Lengths and arrivals of requests: of one length, of a file, and of a trace."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.errors import UsageError
from trnspec.evaluators.planning import requests
from trnspec.evaluators.planning.requests import equal_lengths, lengths_of

LENGTH = st.integers(1, 100_000)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lengths") / "lengths.csv"


def write(file: Path, lines: list[tuple[object, ...]], names: str = "isl,osl") -> str:
    file.write_text("\n".join([names, *(",".join(map(str, line)) for line in lines)]) + "\n", encoding="utf-8")
    return str(file)


def test_requests_of_one_length() -> None:
    one = equal_lengths(1000, 200, 3.0)
    simulated = one.requests(2, 5.0, 10.0)

    assert (one.isl, one.osl, one.prompts, one.longest, one.rate, one.trace) == (1000, 200, (1000,), 1200, 3.0, None)
    # Running requests are replaced ten times.
    assert [len(one.requests(2, 5.0, n)) for n in (200.0, 900.0, 1e6)] == [4000, 18_000, 100_000]
    assert (set(simulated.prompts), set(simulated.outputs)) == ({1.0}, {200.0})
    assert 4000 / simulated.arrivals[-1] == pytest.approx(5.0, rel=0.05)


@given(st.lists(st.tuples(LENGTH, LENGTH), min_size=1, max_size=40))
def test_lengths_of_a_file(file: Path, lines: list[tuple[int, int]]) -> None:
    """Means, the longest request, and 16 quantiles of the prompts in the middle of equal shares."""
    found = lengths_of(write(file, lines), 2.5)
    prompts = sorted(isl for isl, _ in lines)

    assert found.isl == round(sum(prompts) / len(lines))
    assert found.osl == max(2, round(sum(osl for _, osl in lines) / len(lines)))
    assert found.longest == max(isl + osl for isl, osl in lines)
    assert found.prompts == tuple(prompts[(2 * i + 1) * len(prompts) // 32] for i in range(16))
    assert (found.rate, found.trace) == (2.5, None)
    mean = sum(found.prompts) / 16
    relative = {*found.requests(1, 2.5, 1.0).prompts}
    assert relative <= {prompt / mean for prompt in found.prompts}


@given(
    st.lists(st.tuples(LENGTH, LENGTH, st.floats(-1e9, 1e9)), min_size=2, max_size=20), st.none() | st.floats(0.01, 1e3)
)
def test_a_trace(file: Path, lines: list[tuple[int, int, float]], rate: float | None) -> None:
    """In the order of arrival from 0; scaled to a rate."""
    lines = [(isl, osl, round(arrival, 3)) for isl, osl, arrival in lines]
    times = sorted(arrival for *_, arrival in lines)
    if times[0] == times[-1]:
        return
    found = lengths_of(write(file, lines, "isl,osl,arrival"), rate)
    ordered = sorted(lines, key=lambda line: line[2])
    own = (len(lines) - 1) / (times[-1] - times[0])

    assert found.trace is not None
    assert found.rate == pytest.approx(rate or own)
    assert found.trace.arrivals == pytest.approx([(t - times[0]) * own / found.rate for t in times])
    assert list(found.trace.outputs) == [osl for _, osl, _ in ordered]
    mean = sum(isl for isl, *_ in lines) / len(lines)
    assert found.trace.prompts == pytest.approx([isl / mean for isl, *_ in ordered])
    assert found.requests(4, 1.0, 1.0) is found.trace


ARRIVING = "isl,osl,arrival"


@pytest.mark.parametrize(
    ("lines", "names", "message"),
    [
        ([(5, 5, 1), (5, 5, ""), (5, 5, "")], ARRIVING, "lengths.csv:3: an arrival is expected, as in other lines"),
        ([(5, 5, ""), (5, 5, 2)], ARRIVING, "lengths.csv:2: an arrival is expected, as in other lines"),
        ([(5, 5, 1), (5, 0, 2)], ARRIVING, "lengths.csv:3: lengths of at least 1"),
        ([(0, 5, 1)], ARRIVING, "lengths.csv:2: lengths of at least 1"),
        ([(5, 5, 1), (5, 2.5, 2)], ARRIVING, "lengths.csv:3: whole numbers isl and osl"),
        ([(5, 5, 1), (5, 5, 1e12)], ARRIVING, "3: an arrival in seconds is expected, not '1000000000000.0'"),
        ([(5, 5, 1), (5, 5, "nan")], ARRIVING, "lengths.csv:3: an arrival in seconds is expected, not 'nan'"),
        ([(5, 5, 3), (5, 5, 3)], ARRIVING, "arrivals of at least two times"),
        ([], ARRIVING, "has no requests"),
        ([(5, 5)], "isl,osl", "rate: requests per second are expected, since "),
        ([(5, 5)], "isl,output", "has no column osl; its first line names isl, output"),
    ],
)
def test_the_line_of_a_problem(file: Path, lines: list[tuple[object, ...]], names: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        lengths_of(write(file, lines, names), None)
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("isl,osl\n5,5,\xe9\n".encode("latin-1"))
    for name, why in (("none.csv", "No such file or directory"), ("latin.csv", "'utf-8' codec can't decode ")):
        with pytest.raises(UsageError, match=f"^lengths: {tmp_path / name} cannot be read: {why}"):
            lengths_of(str(tmp_path / name), 1.0)


def test_the_number_of_lines_is_limited(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_LINES", 3)

    assert lengths_of(write(file, [(5, 5)] * 3), 1.0).isl == 5
    with pytest.raises(UsageError, match="has more than 3 lines"):
        lengths_of(write(file, [(5, 5)] * 4), 1.0)
