"""Documents written by many hands: any order of keys, indentation, quoting and style, with comments everywhere."""

import json
from random import Random
from typing import Any

from attrs import define, field

from trnspec.yaml import read_text


@define
class Scribble:
    """Writes plain data as YAML, in a way that chance decides."""

    chance: Random
    comments: list[str] = field(factory=list)

    def document(self, data: dict[str, Any]) -> str:
        """The text of a document."""
        head = [self.comment() for _ in range(self.chance.randrange(3))]
        if self.chance.random() < 0.1:
            head.append("---")
        lines = self.mapping(data, 0)
        return "\n".join([*head, *lines, *self.between(0)]) + "\n" * self.chance.randrange(1, 4)

    def comment(self) -> str:
        """A comment that occurs once."""
        text = f"# {len(self.comments)} " + self.chance.choice(["key: value", "- [x", "#", "it's", '"', "{a: 1}"])
        self.comments.append(text)
        return text

    def between(self, indent: int) -> list[str]:
        """Comments and blank lines above an entry, some of them not aligned."""
        lines = []
        while self.chance.random() < 0.2:
            shift = self.chance.choice([0, 0, 0, 1, 3])
            blank = self.chance.random() < 0.5
            lines.append(self.chance.choice(["", "  "]) if blank else " " * (indent + shift) + self.comment())
        return lines

    def end(self) -> str:
        """What follows a value on its line."""
        return self.chance.choice(["", "", "", " ", "  "]) if self.chance.random() < 0.9 else " " + self.comment()

    def mapping(self, data: dict[str, Any], indent: int) -> list[str]:
        """The lines of a block mapping."""
        items = list(data.items())
        self.chance.shuffle(items)
        lines = []
        for key, value in items:
            name = key if read_text(f"{key}: 1").data == {key: 1} and self.chance.random() < 0.9 else json.dumps(key)
            start = " " * indent + f"{name}:" + " " * self.chance.randrange(3)
            lines += self.between(indent)
            lines += self.value(start.rstrip(" ") + " ", start, value, indent, in_list=False)
        return lines

    def sequence(self, data: list[Any], indent: int) -> list[str]:
        """The lines of a block sequence."""
        lines = []
        for value in data:
            lines += self.between(indent)
            start = " " * indent + "-"
            lines += self.value(start + " " * self.chance.randrange(1, 3), start, value, indent, in_list=True)
        return lines

    def value(self, start: str, bare: str, value: Any, indent: int, *, in_list: bool) -> list[str]:
        """The lines of a value behind its key or dash."""
        deeper = indent + self.chance.choice([1, 2, 2, 4])
        if isinstance(value, (dict, list)) and value and self.chance.random() < 0.7:
            if isinstance(value, dict) and in_list and self.chance.random() < 0.7:
                lines = self.mapping(value, len(start))
                first = next(i for i, line in enumerate(lines) if line.strip() and not line.strip().startswith("#"))
                # Comments above the first key are those of the item.
                return [*lines[:first], start + lines[first].strip(), *lines[first + 1 :]]
            if isinstance(value, list) and not in_list and self.chance.random() < 0.3:
                deeper = indent
            inner = self.mapping(value, deeper) if isinstance(value, dict) else self.sequence(value, deeper)
            return [bare.rstrip() + self.end(), *inner]
        if isinstance(value, (dict, list)):
            return [start + self.flow(value, " " * (deeper + 2)) + self.end()]
        if value is None and self.chance.random() < 0.5:
            return [bare.rstrip() + self.end()]
        if isinstance(value, str) and " " in value.strip() and "\n" not in value:
            deep = indent + 5  # right of the comments that follow
            style = self.chance.choice(["same", "same", "folded", "quoted", "literal"])
            if style == "folded" and value == value.strip() and "  " not in value:
                head, _, tail = value.partition(" ")
                digit = self.chance.choice(["", "5"])
                return [f"{start}>{digit}-", " " * deep + head, " " * deep + tail]
            if style == "literal" and value == value.strip():
                return [f"{start}|-" + " # 0 header" * self.header(), " " * deep + value]
            if style == "quoted" and "  " not in value:
                head, _, tail = json.dumps(value)[1:-1].partition(" ")
                return [f'{start}"{head}', " " * (indent + 1) + f'{tail}"' + self.end()]
        text = self.scalar(value)
        return (
            [bare.rstrip() + self.end(), " " * deeper + text]
            if self.chance.random() < 0.1
            else [start + text + self.end()]
        )

    def header(self) -> bool:
        """Whether a block scalar has a comment on its first line."""
        if self.chance.random() < 0.2:
            self.comments.append("# 0 header")
            return True
        return False

    def flow(self, value: Any, margin: str) -> str:
        """A value in flow style, on one line or on several."""
        if not isinstance(value, (dict, list)):
            return self.scalar(value, flow=True)
        items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        if isinstance(value, dict):
            self.chance.shuffle(items)
        several = self.chance.random() < 0.1
        pieces = []
        for key, item in items:
            name = f"{json.dumps(key)}: " if isinstance(value, dict) else ""
            pieces.append(name + self.flow(item, margin + "  "))
        space = self.chance.choice(["", " "])
        comment = " " + self.comment() if several and items and self.chance.random() < 0.3 else ""
        body = f",{comment}\n{margin}".join(pieces) if several else f",{space}".join(pieces)
        if comment and len(pieces) > 1:
            self.comments += [comment.strip()] * (len(pieces) - 2)
        elif comment:
            self.comments.pop()
        return ("{%s%s%s}" if isinstance(value, dict) else "[%s%s%s]") % (space, body, space)

    def scalar(self, value: Any, *, flow: bool = False) -> str:
        """A scalar, without quotes where that is the same text."""
        if isinstance(value, str):
            text = f"{{k: {value}}}" if flow else f"k: {value}"
            bare = "\n" not in value and read_text(text).data == {"k": value}
            return value if bare and self.chance.random() < 0.8 else json.dumps(value)
        return json.dumps(value)
