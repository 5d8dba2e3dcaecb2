"""Words of the causes in hints, and the limit on the findings whose causes are searched for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from trnspec.checks.reconcile.hypotheses import Explanation
from trnspec.model.document import Node

MOST_EXPLAINED = 40
"""The findings of one document whose causes are searched for: a search takes milliseconds."""

_NOT_EXPLAINED = f"the document has more than {MOST_EXPLAINED} such findings; causes were searched for the first ones"


class Budget:
    """Counts the findings of a run whose causes are searched for."""

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()

    def sentence(self, node: Node[Any], search: Callable[[], Sequence[Explanation]]) -> str:
        """The hint of one more finding of a document, with the causes that a search gives while it is allowed."""
        self._used[node.name] += 1
        return sentence(search()) if self._used[node.name] <= MOST_EXPLAINED else _NOT_EXPLAINED


def sentence(explanations: Sequence[Explanation]) -> str:
    """The hint of a finding: the likely cause, several possible causes, or that no known cause fits."""
    if not explanations:
        return "none of the known causes closes the gap"
    if len(explanations) == 1:
        return f"likely cause: {explanations[0].sentence}"
    return f"several causes would close the gap: {'; or '.join(shown(explanations))}"


def shown(explanations: Sequence[Explanation]) -> list[str]:
    """The sentences to print: the first three, every hypothesis that failed, and the number of the others."""
    kept = [e for n, e in enumerate(explanations) if n < MOST_SHOWN or e.id == "failed"]
    sentences = [e.sentence for e in kept]
    more = len(explanations) - len(kept)
    return [*sentences, f"{more} more"] if more > 0 else sentences


MOST_SHOWN = 3
"""The most explanations that are printed; JSON has all of them."""
