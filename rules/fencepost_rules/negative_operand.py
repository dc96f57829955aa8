"""Can the left side of a `%` or `//` be negative where it is evaluated?

What
----
The left side of `%` or `//` is negative for some reachable values. Only evaluated operands count: an expression
behind a guard that keeps it non-negative is fine.

Why it hurts
------------
On the device the scalar unit follows C: -1 % 2 is -1 and -1 // 2 is 0. In the source language they are 1 and -1. The
slot or id that comes out is not the one that was meant, and mostly out of range.

Bad
---

    kernel slot_of_the_previous_task(n):
        assume n >= 1
        buffer tile[2] in Vec

        section vector:
            for t in range(n):
                fill tile[(t - 1) % 2] <- zero @ V  # FP104

Good
----

    kernel slot_of_the_previous_task(n):
        assume n >= 1
        buffer tile[2] in Vec

        section vector:
            for t in range(n):
                fill tile[(t + 1) % 2] <- zero @ V

Suppress
--------
Adding the divisor to the left side costs nothing. If the value is never used:
`# fencepost: ignore[104] the value is not used in the first round`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="104",
    name="negative-operand",
    title="negative operand of % or //",
    row=Row.SLOT_MAPPING,
    severity=Severity.ERROR,
    sentence="{detail} (on {agent})",
)
