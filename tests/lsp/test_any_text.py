"""Requests on arbitrary text that is being edited: each answers."""

import random
from pathlib import Path

import pytest

from tests.lsp.conftest import CHIP, edited, lines_of, mutated, session
from trnspec.lsp import actions, navigation
from trnspec.lsp.completion import complete
from trnspec.lsp.hover import hover
from trnspec.lsp.messages import by_file
from trnspec.lsp.positions import spot_at
from trnspec.lsp.symbols import symbols
from trnspec.model.chip import Chip
from trnspec.yaml import Place

TEXT = Path(CHIP).read_text(encoding="utf-8")
URI = Path(CHIP).as_uri()


@pytest.mark.parametrize("seed", range(16))
def test_answers(seed) -> None:
    result = edited(TEXT, mutated(TEXT, seed))
    known, lines, chance = session().known, lines_of(result), random.Random(seed)

    symbols(result.document, lines)
    for message in by_file(result.diagnostics, [CHIP], lambda _: lines, known.codes)[CHIP]:
        assert 0 <= message.range.start.line < len(lines.texts)
        assert message.range.end.character <= lines.units(lines[message.range.end.line + 1]) + 1
        for action in (actions.fixes(message, URI, lines), actions.waiver(message, URI, result.document, lines)):
            list(action)
    for _ in range(8):
        line = chance.randrange(len(lines.texts)) + 1
        place = Place(line, chance.randrange(len(lines[line]) + 1) + 1)
        assert lines[line][: place.column - 1].endswith(complete(lines.texts, place, result.graph, known).typed)
        spot = spot_at(result.document, place)
        if spot is not None:
            list(actions.claim(spot, Chip, URI, result.document, lines))
            hover(spot, Chip, result.node, result.graph, known.units)
            if result.node is not None:
                named = navigation.named_at(spot, place, result.node, result.graph)
                list(navigation.definition(spot, named, result.node))
