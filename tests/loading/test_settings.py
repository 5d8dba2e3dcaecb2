"""trnspec.loading.settings: what the user may set, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.diagnostics import Severity
from trnspec.errors import UsageError
from trnspec.loading.settings import Settings, find

CODES = ("TRN101", "TRN402", "TRN403", "XYZ01")
some_codes = st.lists(st.sampled_from(["TRN", "TRN4", "TRN402", "XYZ01"]), max_size=3).map(tuple)


@pytest.mark.parametrize(
    ("select", "ignore", "reported"),
    [
        ((), (), set(CODES)), (("TRN4",), (), {"TRN402", "TRN403"}), (("TRN402", "XYZ"), (), {"TRN402", "XYZ01"}),
        ((), ("TRN",), {"XYZ01"}), (("TRN4",), ("TRN403",), {"TRN402"}), (("TRN402",), ("TRN4",), set()),
    ],
)  # fmt: skip
def test_reports(select, ignore, reported) -> None:
    """A code is reported when it is selected, or nothing is, and it is not ignored."""
    settings = Settings(select=select, ignore=ignore)

    assert reported == {c for c in CODES if settings.reports(c)}


@given(select=some_codes, ignore=some_codes, given_select=some_codes, given_ignore=some_codes)
def test_nearer_settings_win(select, ignore, given_select, given_ignore) -> None:
    """What is selected nearer to the user is judged by those settings alone; what is ignored there is ignored."""
    nearer = Settings(select=given_select, ignore=given_ignore)
    merged = Settings(select=select, ignore=ignore).merged(nearer)

    for code in CODES:
        if given_select:
            assert nearer.reports(code) == merged.reports(code)
        if not nearer.reports(code):
            assert not merged.reports(code)


@pytest.mark.parametrize("entry", ["TRN", "TRN4", "TRN402", "XYZ01"])
def test_codes_and_their_beginnings_are_known(entry) -> None:
    Settings(select=(entry,), ignore=(entry,), severity={entry: Severity.INFO}).verify(CODES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(select=("TRN412",)), r"select: no code is or begins with 'TRN412'; did you mean 'TRN402'"),
        (Settings(ignore=("TRM101",)), r"ignore: .*'TRM101'; did you mean 'TRN101'"),
        (Settings(severity={"@": Severity.INFO}), r"severity: .*'@'; trnspec explain lists them"),
        (Settings(select=("TRN", "TRN4021")), r"'TRN4021'"),
    ],
)
def test_unknown_codes_are_misuse(settings, message) -> None:
    with pytest.raises(UsageError, match=message):
        settings.verify(CODES)


def test_own_file(tmp_path: Path) -> None:
    text = 'select = ["trn4"]\nignore = ["TRN403"]\ncatalogs = ["mine"]\n[severity]\ntrn402 = "warning"\n'
    (tmp_path / "trnspec.toml").write_text(text)
    expected = Settings(
        select=("TRN4",), ignore=("TRN403",), severity={"TRN402": Severity.WARNING}, catalogs=(tmp_path / "mine",)
    )

    assert expected == find(tmp_path)


def test_project_file_is_found_upward(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.trnspec]\nignore = ["TRN4"]\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.another]\nx = 1\n")

    assert Settings(ignore=("TRN4",)) == find(below)


def test_nearest_file_holds(tmp_path: Path) -> None:
    """The nearest file alone counts, and ``trnspec.toml`` before the project file beside it."""
    (tmp_path / "trnspec.toml").write_text('ignore = ["TRN1"]\n')
    below = tmp_path / "a"
    below.mkdir()
    (below / "trnspec.toml").write_text('ignore = ["TRN2"]\n')
    (below / "pyproject.toml").write_text('[tool.trnspec]\nignore = ["TRN3"]\n')

    assert Settings(ignore=("TRN2",)) == find(below)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('ignor = ["TRN1"]', "'ignor' is not a setting of trnspec; did you mean 'ignore'"),
        ("zzz = 1", "'zzz' is not a setting of trnspec; known: select, ignore, severity, catalogs"),
        ('select = "TRN1"', "select is a list of texts"), ("ignore = [1]", "ignore is a list of texts"),
        ('severity = "info"', "severity is a table"),
        ("severity = {TRN402 = 'fatal'}", "'fatal' is not a severity; write one of info, warning, error"),
        ("severity = {TRN402 = 3}", "'3' is not a severity"), ("select = [", "trnspec.toml: "),
        ("a = 1\na = 2\n", r"trnspec\.toml:2:6: Cannot overwrite a value"),
        ("select = " + "9" * 5000, "a number has too many digits"),
        ("# one\n\xe9", "trnspec.toml:2: it is not UTF-8"),
    ],
)  # fmt: skip
def test_wrong_settings_are_misuse(tmp_path: Path, text, message) -> None:
    """Each message names the file."""
    (tmp_path / "trnspec.toml").write_bytes(text.encode("latin-1"))

    with pytest.raises(UsageError, match=message) as raised:
        find(tmp_path)

    assert str(raised.value).startswith(str(tmp_path / "trnspec.toml"))
    assert raised.value.hint or ";" in str(raised.value)


@pytest.mark.parametrize(
    "make", [lambda file: file.mkdir(), lambda file: file.symlink_to(file.name), lambda file: file.symlink_to("gone")]
)
def test_settings_that_are_not_a_file(tmp_path: Path, make) -> None:
    """They are not silently left out."""
    make(tmp_path / "trnspec.toml")

    with pytest.raises(UsageError, match=r"trnspec\.toml: it is not a file"):
        find(tmp_path)


@pytest.mark.parametrize("text", ["[tool]\ntrnspec = 3\n", "[tool]\ntrnspec = []\n"])
def test_project_entry_that_is_no_table(tmp_path: Path, text) -> None:
    (tmp_path / "pyproject.toml").write_text(text)

    with pytest.raises(UsageError, match="is a table"):
        find(tmp_path)
