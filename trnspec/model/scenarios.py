"""The kind Scenarios: named evaluations that are compared with each other."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from trnspec.model.annotations import Text, Unsourced

InputValue = bool | int | float | str | tuple[str, ...] | tuple[int, ...]
"""A value of an input of an evaluator; a list for an input that takes several."""


@frozen(kw_only=True, repr=False)
class Scenario(Unsourced):
    """One evaluation; what it leaves out is that of its base.

    Attributes:
        base: The scenario of this document whose evaluator, inputs and assumptions it has, except for its own.
        evaluator: The evaluator. Example: training
        inputs: Inputs of the evaluator by name, as in Python: global_batch, not global-batch.
        assume: Figures with other values than in the catalog, by document and path.
        use_claims: Evaluate a figure that is not published at every value that a source claims for it.
        note: A remark for readers.
    """

    base: Text | None = None
    evaluator: Text | None = None
    inputs: Mapping[str, InputValue] = field(factory=dict)
    assume: Mapping[str, Text] = field(factory=dict)
    use_claims: bool | None = None
    note: Text | None = None


@frozen(kw_only=True, repr=False)
class Scenarios(Unsourced):
    """Named scenarios, which "trnspec run" evaluates and compares.

    Attributes:
        scenarios: The scenarios by name, in the order of their rows.
    """

    scenarios: Mapping[str, Scenario]
