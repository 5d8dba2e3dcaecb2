"""The form of a figure: a number, a space and a unit that fits its place."""

from __future__ import annotations

from trnspec.diagnostics import Code, Severity

FIGURES: tuple[Code, ...] = (
    Code(
        "TRN110",
        "figure-without-unit",
        Severity.ERROR,
        """\
A figure that is a number alone.

Why:
    The number 15 may be microseconds or nanoseconds, and 256 may be gigabytes or gigabits. Whoever reads it must
    guess, and two readers guess differently.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      latency: 15  #! TRN110
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      latency: 15 us
    ```

Source:
    JCGM 200:2012 (VIM), 1.19: the value of a quantity is a number together with a reference.""",
    ),
    Code(
        "TRN111",
        "unknown-unit",
        Severity.ERROR,
        """\
A figure in a unit that trnspec does not know.

Why:
    Figures are compared and converted, which needs the exact size of the unit. The spellings KB and Gb are used for
    two or three sizes each, and 1,024 for 1,000 is already 2.4 % more. So the set of units is closed, and the hint
    names the nearest.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {both: 256 GBps}  #! TRN111
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {both: 256 GB/s}
    ```

Source:
    IEC 80000-13:2008 for byte, bit and the binary prefixes; The International System of Units, 9th edition (2019),
    for the decimal ones.""",
    ),
    Code(
        "TRN112",
        "wrong-dimension",
        Severity.ERROR,
        """\
A figure whose unit measures something else than its place.

Why:
    256 GB is a capacity and never a bandwidth, and a rate in FLOPS is no rate of integer operations. Such a figure
    was most often copied from the wrong column, or its unit was cut short.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {both: 256 GB}  #! TRN112
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {both: 256 GB/s}
    ```

Source:
    JCGM 200:2012 (VIM), 1.7, quantity dimension: quantities of different dimensions are of different kinds.""",
    ),
    Code(
        "TRN113",
        "malformed-figure",
        Severity.ERROR,
        """\
A figure that is not one number, one space and one unit.

Why:
    The digits of a figure are kept as printed, for they tell its precision; that works when each figure is written
    in one way. Two numbers, a comma for a decimal point or a unit that sticks to its number leave open what was
    printed.

Example:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {per_direction: 128GB/s}  #! TRN113
      latency: "15,5 us"  #! TRN113
    ```

Instead:
    ```yaml
    api_version: trnspec/v1
    kind: Link
    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
    spec:
      connects: chips
      bandwidth: {per_direction: 128 GB/s}
      latency: 15.5 us
    ```

Source:
    The International System of Units, 9th edition (2019), section 5.4.3: a space separates the number and the unit.""",
    ),
)
"""The codes of figures and their units."""
