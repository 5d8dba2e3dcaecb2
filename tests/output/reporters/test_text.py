"""The format for people."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outputs import CHECKED, CHIP, FULL, SERVER, TEXTS, UNUSED, one, reports, texts
from tests.support.tables import tables
from trnspec.diagnostics import Location, Report
from trnspec.output.reporters import render
from trnspec.text_table import escape
from trnspec.yaml import Place


class TestText:
    def test_golden(self) -> None:
        expected = f"""\
{CHIP}: info TRN950 few-dates: 50% of the figures have a date

{SERVER}:2:18: error TRN402 aggregate-mismatch: stated 3.4 PFLOPS, but 16 x 190 TFLOPS = 3.04 PFLOPS
    2 |   stated: {{bf16: 3.4 PFLOPS}}
      |                  ^^^^^^^^^^
    see: {CHIP}:14:20 190 TFLOPS
    hint: write 3.04 PFLOPS, or add a claim
          and say whose figure it is

{SERVER}:5:3: warning TRN901: the waiver suppresses nothing

1 error, 1 warning, 1 info in 14 documents, 3 waived."""
        assert expected == render(FULL, "text", texts=TEXTS)

    def test_bare_findings_stand_close(self) -> None:
        expected = f"{SERVER}:5:3: warning TRN901: the waiver suppresses nothing"
        report = Report((UNUSED, UNUSED), checked={"Server": 1})
        assert f"{expected}\n{expected}\n\n2 warnings in 1 document." == render(report, "text")

    @pytest.mark.parametrize(
        ("checked", "waived", "expected"),
        [
            ({}, 0, "0 documents checked, no findings."),
            ({"Chip": 1}, 0, "1 document checked, no findings."),
            (CHECKED, 2, "14 documents checked, no findings, 2 waived."),
        ],
    )
    def test_clean(self, checked, waived, expected) -> None:
        assert expected == render(Report((), checked=checked, waived=waived), "text")

    @pytest.mark.parametrize(("line", "column", "text", "shown", "caret"), tables(__file__)["caret"])
    def test_caret(self, line, column, text, shown, caret) -> None:
        """The caret is below the character, however many columns the ones before it take."""
        report = one(Location("f", Place(2, column), text=text))
        expected = f"    2 | {shown}\n      | {caret}\n\n"
        assert expected in render(report, "text", texts={"f": f"x: 1\r\n{line}\r\ny: 2"})

    @pytest.mark.parametrize("column", [1, 40, 500, 995, 1000])
    @pytest.mark.parametrize("char", ["x", "漢", "\t", "\x1b"])
    def test_long_line(self, column, char) -> None:
        line = char * (column - 1) + "!" + char * (1000 - column) + "."
        shown = render(one(Location("f", Place(1, column))), "text", width=60, texts={"f": line}).split("\n")
        columns = [c for c in shown[1] for _ in range(1 + (unicodedata.east_asian_width(c) == "W"))]
        assert "!" == columns[shown[2].index("^")]
        assert 60 >= len(columns) > 50
        if (char, column) == ("x", 500):  # a third of the width is before it
            assert len("    1 | …") + (60 - len("    1 | ")) // 3 == shown[2].index("^")
        assert (column > 1, column < 995) == (shown[1][8] == "…", shown[1].endswith("…"))

    @pytest.mark.parametrize("text", ["a", "a\n \n", ""])
    def test_no_excerpt(self, text) -> None:
        assert "|" not in render(one(Location("f", Place(2, 1))), "text", texts={"f": text})

    @given(reports, st.booleans(), st.none() | st.integers(-5, 200), st.dictionaries(texts, texts, max_size=1))
    def test_control_characters_do_not_reach_the_terminal(self, report, color, width, more) -> None:
        sources = {d.where.file: "a\tkey\x1b: 漢 \u202e1\n" * 5 + d.message for d in report.diagnostics} | more
        plain = render(report, "text", width=width, texts=sources)
        colored = render(report, "text", color=True, width=width, texts=sources)
        assert {c for c in plain if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} <= {"\n"}
        assert plain == re.sub(r"\x1b\[[0-9;]*m", "", colored)
        assert plain != colored

    @given(reports)
    def test_one_line_each(self, report) -> None:
        lines = [x for x in render(report, "text").split("\n") if x]
        heads = [f"{escape(str(d.where))}: {d.severity.label} {escape(d.code)}" for d in report.diagnostics]
        starts = iter(lines)
        assert all(any(line.startswith(head) for line in starts) for head in heads)
        assert len(heads) + 1 == sum(not x.startswith("    ") or x.startswith(tuple(heads)) for x in lines)
