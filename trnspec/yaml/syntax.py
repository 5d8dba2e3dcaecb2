"""Translates errors of the YAML scanner to the position of the cause and a hint."""

from __future__ import annotations

import re

from attrs import frozen

from trnspec.yaml.document import show
from trnspec.yaml.text import name_of

_KEY_WITHOUT_SPACE = re.compile(r"[ ]*(?:- +)*[A-Za-z_][\w.-]*(:)(?![\s/]|$)")
_TAB_IN_INDENT = re.compile(r"[ ]*(\t)[ \t]*[^\s#]")
_BAD_ESCAPE = re.compile(r"\\(?:(?P<bad>u[dD][89a-fA-F]|U(?!000[0-9a-fA-F]|0010))|(?s:.))")
_QUOTE_IT = "put the value in quotes"


@frozen
class Complaint:
    """An error of the scanner; all positions are offsets in the text.

    Attributes:
        problem: The message of the scanner.
        at: The position of the error.
        context: The construct that it was reading, or an empty text.
        since: The beginning of that construct.
        last: Start and end of the last scalar before, and its style: ``"``, ``'``, ``|``, ``>`` or an empty text.
    """

    problem: str
    at: int
    context: str
    since: int | None
    last: tuple[int, int, str]


@frozen
class Verdict:
    """A problem to report: code, message, offset of the cause, hint, and the offset of a related position."""

    code: str
    message: str
    at: int
    hint: str
    see: int | None = None


def lacks_space(text: str) -> int | None:
    """The offset of the colon in ``key:value``, where YAML needs a space after it; ``None`` if there is none."""
    match = _KEY_WITHOUT_SPACE.match(text)
    return match.start(1) if match else None


def bad_escape(text: str, start: int, end: int) -> int | None:
    """The offset of the first escape between ``start`` and ``end`` that is not a character: a surrogate, or beyond U+10FFFF."""
    for match in _BAD_ESCAPE.finditer(text, start, end):
        if match["bad"]:
            return match.start()
    return None


def escape_verdict(at: int) -> Verdict:
    """The problem of such an escape."""
    return Verdict(
        "TRN004",
        "This escape is not a character.",
        at,
        "write the character itself, or one escape with eight digits such as \\U0001F600",
    )


def explain(text: str, complaint: Complaint) -> Verdict:
    """The cause of an error of the scanner."""
    if conflict := re.search(r"^<{7}( |$)", text, re.MULTILINE):
        return Verdict("TRN004", "A merge conflict is not resolved.", conflict.start(), "keep one of the two versions")
    for look in (_tab, _quote, _flow, _handle, _empty_key, _colon, _start, _collection):
        verdict = look(text, complaint)
        if verdict is not None:
            return verdict
    description = (
        "The file ends too early"
        if complaint.at >= len(text)
        else f"{show(_word(text, complaint.at))} is not allowed here"
    )
    return Verdict(
        "TRN004", f"{description}.", complaint.at, "write one 'key: value' per line; put other text in quotes"
    )


def _word(text: str, at: int) -> str:
    match = re.compile(r"[^\s,\[\]{}]+|.", re.DOTALL).match(text, at)
    return match.group() if match else ""


def _line(text: str, at: int) -> tuple[int, int]:
    """Start and end of the line that holds ``at``."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    ends = [e for e in (text.find("\n", at), text.find("\r", at)) if e >= 0]
    return start, min(ends, default=len(text))


def _lines(text: str, first: int, last: int) -> list[int]:
    """The starts of the lines from the one that holds ``first`` to the one that holds ``last``."""
    begin = _line(text, first)[0]
    return [begin, *(m.end() for m in re.compile(r"\r\n|\n|\r").finditer(text, begin, max(last, begin)))]


def _tab(text: str, complaint: Complaint) -> Verdict | None:
    match = _TAB_IN_INDENT.match(text, _line(text, complaint.at)[0])
    at = match.start(1) if match else complaint.at
    if match is None and (
        text[complaint.at : complaint.at + 1] != "\t" or not re.search("token|tab", complaint.problem)
    ):
        return None
    if match is not None and complaint.at > match.end():
        return None
    where = "for indentation" if match else "here"
    return Verdict("TRN004", f"A tab is used {where}.", at, "write spaces instead of the tab")


def _quote(text: str, complaint: Complaint) -> Verdict | None:
    start, end, style = complaint.last
    if "quoted scalar" in complaint.context and complaint.since is not None:
        mark = text[complaint.since : complaint.since + 1]
        if "escape" in complaint.problem or "hexdecimal" in complaint.problem or "hexadecimal" in complaint.problem:
            at = text.rfind("\\", complaint.since, complaint.at + 2)
            wrong = bad_escape(text, complaint.since, complaint.at + 2)
            if wrong is not None:
                return escape_verdict(wrong)
            hint = "write \\\\ for a backslash, or use single quotes"
            return Verdict("TRN004", f"{show(text[at : at + 2])} is not an escape.", max(at, complaint.since), hint)
        message = f"The quote {mark} that opens here is not closed."
        return Verdict("TRN004", message, complaint.since, f"close it with {mark}")
    if (
        style in ("'", '"')
        and text[end - 1 : end] == style
        and complaint.at >= end
        and not text[end : complaint.at].strip()
    ):
        if _line(text, start)[0] != _line(text, end)[0] and complaint.at == end:
            message = f"The quote {style} that opens here is closed on a later line, where another text begins."
            return Verdict("TRN004", message, start, f"close it with {style} on its line", end - 1)
        if _line(text, end)[0] == _line(text, complaint.at)[0] and text[complaint.at : complaint.at + 1] not in "]},:":
            inner = "''" if style == "'" else '\\"'
            message = f"There is text after the closing quote: {show(_word(text, complaint.at))}."
            return Verdict("TRN004", message, complaint.at, f"write {inner} for a quote inside the text")
    return None


def _flow(text: str, complaint: Complaint) -> Verdict | None:
    if "flow" not in complaint.context or complaint.since is None:
        return None
    opener = text[complaint.since : complaint.since + 1]
    if opener in ("[", "{") and complaint.since != complaint.at:
        closer = "]" if opener == "[" else "}"
        if complaint.at >= len(text.rstrip()) or _line(text, complaint.since)[0] != _line(text, complaint.at)[0]:
            message = f"The {opener} that opens here is not closed."
            return Verdict("TRN004", message, complaint.since, f"close it with {closer}", complaint.at)
        message = f"{show(_word(text, complaint.at))} is found where a comma or {closer} is expected."
        return Verdict(
            "TRN004", message, complaint.at, f"separate items with commas, and close with {closer}", complaint.since
        )
    if complaint.at >= len(text.rstrip()):
        last = max(text.rfind("[", 0, complaint.at), text.rfind("{", 0, complaint.at))
        if last >= 0:
            closer = "]" if text[last] == "[" else "}"
            return Verdict(
                "TRN004", f"The {text[last]} that opens here is not closed.", last, f"close it with {closer}"
            )
    return None


def _handle(text: str, complaint: Complaint) -> Verdict | None:
    if "tag handle" not in complaint.problem:
        return None
    message = f"Tags are not allowed: {show(_word(text, complaint.at))}."
    return Verdict("TRN008", message, complaint.at, "delete the tag; for text, use quotes")


def _empty_key(text: str, complaint: Complaint) -> Verdict | None:
    if text[complaint.at : complaint.at + 1] != ":" or not (
        "key" in complaint.problem or "content" in complaint.problem
    ):
        return None
    start = _line(text, complaint.at)[0]
    if text[start : complaint.at].rstrip(" ")[-1:] not in ("", "{", "[", ",", "-"):
        return None
    return Verdict("TRN009", "A key is missing before the colon.", complaint.at, "write a key before the colon")


def _colon(text: str, complaint: Complaint) -> Verdict | None:
    values = "mapping values" in complaint.problem
    if not values and "':'" not in complaint.problem:
        return None
    start = complaint.last[0] if values else complaint.since if complaint.since is not None else complaint.at
    for begin in _lines(text, start, complaint.at):
        colon = lacks_space(text[begin : _line(text, begin)[1]])
        if colon is not None and begin + colon != complaint.at:
            message = f"A space is missing after the colon: {show(_word(text, begin + colon - 1))}."
            if values or begin + colon >= start:
                key = text[begin : begin + colon].strip()
                message = f"A space is missing after the colon of {show(key)}."
            return Verdict("TRN004", message, begin + colon, "write a space after the colon")
    if not values:
        return _no_colon(text, start)
    line = _line(text, complaint.at)[0]
    before = text[line : complaint.at]
    if re.search(r":[ \t]", before) or _line(text, complaint.last[0])[0] == line:
        return Verdict("TRN004", "A second colon makes this value a mapping.", complaint.at, _QUOTE_IT)
    at = line + len(before) - len(before.lstrip())
    above = complaint.last[0]
    if text[_line(text, above)[0] : above] == text[line:at]:
        return Verdict("TRN004", f"A colon is missing after {show(_word(text, above))}.", above, "write 'key: value'")
    message = f"The key {show(before.strip())} continues the value of the line above, because it is indented further."
    return Verdict(
        "TRN004", message, at, "align it with the key above, or leave that key without a value", complaint.last[0]
    )


def _no_colon(text: str, at: int) -> Verdict:
    """A key without a colon, or with one before a character that is a space in other texts only."""
    word = _word(text, at)
    end = at + len(word)
    if not word.endswith(":") or end == len(text):
        return Verdict("TRN004", f"A colon is missing after {show(word)}.", at, "write 'key: value'")
    message = f"A space is expected after {show(word)}, not {name_of(text[end])}."
    return Verdict("TRN004", message, end, "write a plain space after the colon")


def _start(text: str, complaint: Complaint) -> Verdict | None:
    character = text[complaint.at : complaint.at + 1]
    if "cannot start any token" in complaint.problem:
        return Verdict("TRN004", f"A value cannot begin with {character}.", complaint.at, _QUOTE_IT)
    if complaint.since is not None and complaint.context.endswith(("an alias", "an anchor")):
        mark = text[complaint.since : complaint.since + 1]
        return Verdict("TRN004", f"A value cannot begin with {mark}.", complaint.since, _QUOTE_IT)
    if "sequence entries are not allowed" in complaint.problem:
        return Verdict("TRN004", "A list item cannot begin here.", complaint.at, "begin it on a new line")
    return None


def _collection(text: str, complaint: Complaint) -> Verdict | None:
    if complaint.since is None or not complaint.context.endswith(
        ("block mapping", "block collection", "block sequence")
    ):
        return None
    column = complaint.since - _line(text, complaint.since)[0] + 1
    word = show(_word(text, complaint.at))
    start = _line(text, complaint.at)[0]
    if text[start : complaint.at].strip(" "):
        hint = "delete it, or put the value in quotes" if text[complaint.at] in "}]" else _QUOTE_IT
        return Verdict("TRN004", f"{word} is not allowed here.", complaint.at, hint)
    kind = "a key" if complaint.context.endswith("mapping") else "an item that begins with '- '"
    message = f"{word} is not aligned with the other lines: {kind} is expected in column {column}."
    if complaint.at - start + 1 == column:
        message = f"{word} is found where {kind} is expected."
    return Verdict("TRN004", message, complaint.at, f"begin the line in column {column} with {kind}", complaint.since)
