"""What a scanner's complaint means to the person who wrote the file: where the cause is, and what to write instead."""

from __future__ import annotations

import re

from attrs import frozen

from trnspec.yaml.document import show

_KEY_WITHOUT_SPACE = re.compile(r"[ ]*(?:- +)*[A-Za-z_][\w.-]*(:)(?![\s/]|$)")
_TAB_IN_INDENT = re.compile(r"[ ]*(\t)[ \t]*[^\s#]")
_BAD_ESCAPE = re.compile(r"\\(?:(?P<bad>u[dD][89a-fA-F]|U(?!000[0-9a-fA-F]|0010))|(?s:.))")
_QUOTE_IT = "put the value in quotes"


@frozen
class Complaint:
    """What the scanner said; all places are offsets in the text.

    Attributes:
        problem: The scanner's own words.
        at: Where it gave up.
        context: What it was doing, or an empty text.
        since: Where it began doing so.
        last: Start and end of the last scalar before, and its style: ``"``, ``'``, ``|``, ``>`` or an empty text.
    """

    problem: str
    at: int
    context: str
    since: int | None
    last: tuple[int, int, str]


@frozen
class Verdict:
    """What to report: a code, a sentence, the offset of the cause, a hint, and the offset of the other place."""

    code: str
    message: str
    at: int
    hint: str
    see: int | None = None


def lacks_space(text: str) -> int | None:
    """The offset of the colon in ``key:value``, where YAML needs a space after it; ``None`` when there is none."""
    found = _KEY_WITHOUT_SPACE.match(text)
    return found.start(1) if found else None


def bad_escape(text: str, start: int, end: int) -> int | None:
    """The offset of the first escape between ``start`` and ``end`` that is no character: a surrogate, or past U+10FFFF."""
    for found in _BAD_ESCAPE.finditer(text, start, end):
        if found["bad"]:
            return found.start()
    return None


def escape_verdict(at: int) -> Verdict:
    """What to say of such an escape."""
    return Verdict(
        "TRN004",
        "This escape is no character.",
        at,
        "write the character itself, or one escape with eight digits such as \\U0001F600",
    )


def explain(text: str, said: Complaint) -> Verdict:
    """The cause behind ``said``."""
    for look in (_tab, _quote, _flow, _handle, _empty_key, _colon, _start, _collection):
        verdict = look(text, said)
        if verdict is not None:
            return verdict
    what = "The file ends too early" if said.at >= len(text) else f"{show(_word(text, said.at))} cannot stand here"
    return Verdict("TRN004", f"{what}.", said.at, "write one 'key: value' per line; put other texts in quotes")


def _word(text: str, at: int) -> str:
    found = re.compile(r"[^\s,\[\]{}]+|.", re.DOTALL).match(text, at)
    return found.group() if found else ""


def _line(text: str, at: int) -> tuple[int, int]:
    """Start and end of the line that holds ``at``."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    ends = [e for e in (text.find("\n", at), text.find("\r", at)) if e >= 0]
    return start, min(ends, default=len(text))


def _lines(text: str, first: int, last: int) -> list[int]:
    """The starts of the lines from the one that holds ``first`` to the one that holds ``last``."""
    begin = _line(text, first)[0]
    return [begin, *(m.end() for m in re.compile(r"\r\n|\n|\r").finditer(text, begin, max(last, begin)))]


def _tab(text: str, said: Complaint) -> Verdict | None:
    found = _TAB_IN_INDENT.match(text, _line(text, said.at)[0])
    at = found.start(1) if found else said.at
    if found is None and (text[said.at : said.at + 1] != "\t" or not re.search("token|tab", said.problem)):
        return None
    if found is not None and said.at > found.end():
        return None
    where = "for indentation" if found else "here"
    return Verdict("TRN004", f"A tab is used {where}.", at, "write spaces instead of the tab")


def _quote(text: str, said: Complaint) -> Verdict | None:
    start, end, style = said.last
    if "quoted scalar" in said.context and said.since is not None:
        mark = text[said.since : said.since + 1]
        if "escape" in said.problem or "hexdecimal" in said.problem or "hexadecimal" in said.problem:
            at = text.rfind("\\", said.since, said.at + 2)
            wrong = bad_escape(text, said.since, said.at + 2)
            if wrong is not None:
                return escape_verdict(wrong)
            hint = "write \\\\ for a backslash, or use single quotes"
            return Verdict("TRN004", f"{show(text[at : at + 2])} is no escape.", max(at, said.since), hint)
        message = f"The quote {mark} that opens here is never closed."
        return Verdict("TRN004", message, said.since, f"close it with {mark}")
    if style in ("'", '"') and text[end - 1 : end] == style and said.at >= end and not text[end : said.at].strip():
        if _line(text, start)[0] != _line(text, end)[0] and said.at == end:
            message = f"The quote {style} that opens here is closed lines below, where another text begins."
            return Verdict("TRN004", message, start, f"close it with {style} on its line", end - 1)
        if _line(text, end)[0] == _line(text, said.at)[0] and text[said.at : said.at + 1] not in "]},:":
            inner = "''" if style == "'" else '\\"'
            message = f"The text goes on after the closing quote: {show(_word(text, said.at))}."
            return Verdict("TRN004", message, said.at, f"write {inner} for a quote inside the text")
    return None


def _flow(text: str, said: Complaint) -> Verdict | None:
    if "flow" not in said.context or said.since is None:
        return None
    opener = text[said.since : said.since + 1]
    if opener in ("[", "{") and said.since != said.at:
        closer = "]" if opener == "[" else "}"
        if said.at >= len(text.rstrip()) or _line(text, said.since)[0] != _line(text, said.at)[0]:
            message = f"The {opener} that opens here is not closed."
            return Verdict("TRN004", message, said.since, f"close it with {closer}", said.at)
        message = f"{show(_word(text, said.at))} stands where a comma or {closer} is expected."
        return Verdict("TRN004", message, said.at, f"separate items with commas, and close with {closer}", said.since)
    if said.at >= len(text.rstrip()):
        last = max(text.rfind("[", 0, said.at), text.rfind("{", 0, said.at))
        if last >= 0:
            closer = "]" if text[last] == "[" else "}"
            return Verdict(
                "TRN004", f"The {text[last]} that opens here is not closed.", last, f"close it with {closer}"
            )
    return None


def _handle(text: str, said: Complaint) -> Verdict | None:
    if "tag handle" not in said.problem:
        return None
    message = f"Tags are not allowed: {show(_word(text, said.at))}."
    return Verdict("TRN008", message, said.at, "delete the tag; for a text write quotes")


def _empty_key(text: str, said: Complaint) -> Verdict | None:
    if text[said.at : said.at + 1] != ":" or not ("key" in said.problem or "content" in said.problem):
        return None
    start = _line(text, said.at)[0]
    if text[start : said.at].rstrip(" ")[-1:] not in ("", "{", "[", ",", "-"):
        return None
    return Verdict("TRN009", "A key is missing before the colon.", said.at, "write a key before the colon")


def _colon(text: str, said: Complaint) -> Verdict | None:
    values = "mapping values" in said.problem
    if not values and "':'" not in said.problem:
        return None
    start = said.last[0] if values else said.since if said.since is not None else said.at
    for begin in _lines(text, start, said.at):
        colon = lacks_space(text[begin : _line(text, begin)[1]])
        if colon is not None and begin + colon != said.at:
            message = f"A space is missing after the colon: {show(_word(text, begin + colon - 1))}."
            if values or begin + colon >= start:
                key = text[begin : begin + colon].strip()
                message = f"A space is missing after the colon of {show(key)}."
            return Verdict("TRN004", message, begin + colon, "write a space after the colon")
    if not values:
        return Verdict("TRN004", f"A colon is missing after {show(_word(text, start))}.", start, "write 'key: value'")
    line = _line(text, said.at)[0]
    before = text[line : said.at]
    if re.search(r":[ \t]", before) or _line(text, said.last[0])[0] == line:
        return Verdict("TRN004", "A second colon makes this value a mapping.", said.at, _QUOTE_IT)
    at = line + len(before) - len(before.lstrip())
    message = f"The key {show(before.strip())} continues the value of the line above, because it is indented further."
    return Verdict(
        "TRN004", message, at, "align it with the key above, or leave that key without a value", said.last[0]
    )


def _start(text: str, said: Complaint) -> Verdict | None:
    character = text[said.at : said.at + 1]
    if "cannot start any token" in said.problem:
        return Verdict("TRN004", f"A value cannot begin with {character}.", said.at, _QUOTE_IT)
    if said.since is not None and said.context.endswith(("an alias", "an anchor")):
        mark = text[said.since : said.since + 1]
        return Verdict("TRN004", f"A value cannot begin with {mark}.", said.since, _QUOTE_IT)
    if "sequence entries are not allowed" in said.problem:
        return Verdict("TRN004", "A list item cannot begin here.", said.at, "begin it on a line of its own")
    return None


def _collection(text: str, said: Complaint) -> Verdict | None:
    if said.since is None or not said.context.endswith(("block mapping", "block collection", "block sequence")):
        return None
    column = said.since - _line(text, said.since)[0] + 1
    word = show(_word(text, said.at))
    start = _line(text, said.at)[0]
    if text[start : said.at].strip(" "):
        return Verdict("TRN004", f"{word} cannot stand here.", said.at, _QUOTE_IT)
    kind = "a key" if said.context.endswith("mapping") else "an item that begins with '- '"
    message = f"{word} is not aligned with its neighbours: {kind} is expected in column {column}."
    if said.at - start + 1 == column:
        message = f"{word} stands where {kind} is expected."
    return Verdict("TRN004", message, said.at, f"begin the line in column {column} with {kind}", said.since)
