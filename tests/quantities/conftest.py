"""Any text that is a quantity, for Hypothesis."""

from hypothesis import strategies as st

from trnspec.quantities.quantity import parse
from trnspec.quantities.units import UNITS, Dimension


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Any well formed number."""
    whole = draw(st.integers(0, 10**18 - 1))
    decimals = draw(st.none() | st.from_regex(r"[0-9]{1,15}", fullmatch=True))
    exponent = draw(st.none() | st.integers(-30, 30))
    text = f"{whole:,}" if draw(st.booleans()) else str(whole)
    return text + (f".{decimals}" if decimals else "") + (f"e{exponent}" if exponent is not None else "")


PREFIXES = ["", "~", "~ ", "<= ", "<=", "< ", "<", ">= ", ">=", "> ", ">", "up to ", "up-to ", "over "]


@st.composite
def texts(draw: st.DrawFn, dimension: Dimension | None = None) -> str:
    """Any text that is a quantity."""
    unit = draw(st.sampled_from(UNITS.spellings(dimension)))
    return f"{draw(st.sampled_from(PREFIXES))}{draw(numbers())} {unit}"


quantities = texts().map(parse)
pairs = st.sampled_from(Dimension).flatmap(lambda d: st.tuples(texts(d), texts(d)))
