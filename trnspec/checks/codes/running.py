"""The run itself: its waivers and its rules."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

RUNNING: tuple[Code, ...] = (
    Code(
        "TRN304",
        "idle-waiver",
        Severity.WARNING,
        """\
A waiver that suppresses nothing.

Why:
    A waiver accepts one finding, with its reason. Once the figure is mended, the waiver that stays behind hides the
    next mistake at the same place, which nobody has looked at.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata:
      name: example
      title: Example
      allow:
        - code: TRN301  #! TRN304
          reason: We have measured the rate ourselves.
    spec: {connects: chips}
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example}
    spec: {connects: chips}
    ```

Source:
    The habit of linters: RUF100 of ruff and warn_unused_ignores of mypy report the same of their comments.""",
    ),
    Code(
        "TRN900",
        "rule-failed",
        Severity.ERROR,
        """\
A rule that failed instead of giving its findings.

Why:
    What the rule would have found is unknown, so the file cannot be called sound. The mistake is in the rule, not
    in the document; all other rules have run.

Example:
    ```python
    @rule("XYZ002", "slow-link", over=Link)
    def slow_link(node, graph):
        \"\"\"A link that is slow.\"\"\"
        if node.spec.latency.value.to("ms") > 1:  # fails for a link without a latency
            yield Finding(("spec", "latency"), "the link is slow")
    ```

Instead:
    ```python
    @rule("XYZ002", "slow-link", over=Link)
    def slow_link(node, graph):
        \"\"\"A link that is slow.\"\"\"
        latency = node.spec.latency
        if latency is not None and latency.value.to("ms") > 1:
            yield Finding(("spec", "latency"), "the link is slow")
    ```

Source:
    The design of trnspec: a mistake of a rule is a finding and never the end of a run.""",
    ),
)
"""The codes of waivers and rules."""
