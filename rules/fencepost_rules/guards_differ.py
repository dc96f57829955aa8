"""Do both sides of a hand-over go through it under the same condition?

What
----
A set stands under one condition and its wait under another, and for some values one holds and the other does not.
Giving one side the other's guard repairs the kernel.

Why it hurts
------------
For those values one side waits for a signal that is not sent, or leaves one that is not taken. With a condition on
data it depends on the input, not the shape.

Bad
---

    kernel more_than_or_at_least(rows):
        READY = 0
        buffer tile in Vec

        section cube:
            if rows > 0:
                move tile <- x @ FIX
                set_cross_core READY @ FIX

        section vector:
            if rows >= 0:  # FP503
                wait_cross_core READY @ V
                exp y <- tile @ V

Consequences: 301, 401

Good
----

    kernel more_than_on_both_sides(rows):
        READY = 0
        buffer tile in Vec

        section cube:
            if rows > 0:
                move tile <- x @ FIX
                set_cross_core READY @ FIX

        section vector:
            if rows > 0:
                wait_cross_core READY @ V
                exp y <- tile @ V

Suppress
--------
If the values on which the guards differ never occur, state it with `assume`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="503",
    name="guards-differ",
    title="guards of the two sides differ",
    row=Row.BOUNDARY,
    severity=Severity.ERROR,
    sentence="the two sides guard one hand-over differently: {guard} against {other}",
)
