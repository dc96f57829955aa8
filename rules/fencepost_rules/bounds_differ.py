"""Do the loops of both sides go through a hand-over equally often?

What
----
The producer's loop and the consumer's loop make different numbers of hand-overs for some values. Different bounds
alone are fine (software pipelines have them); what counts is how many sets and waits come out.

Why it hurts
------------
The longer side hangs, or its last signals stay for the next launch, and the last tile is never used.

Bad
---

    kernel one_short(n):
        assume 0 <= n <= 15
        READY = 0
        buffer ws[15] in GM

        section cube:
            for t in range(n):
                store ws[t] <- x @ FIX
                set_cross_core READY @ FIX

        section vector:
            for t in range(n - 1):  # FP504
                wait_cross_core READY @ MTE2
                load y <- ws[t] @ MTE2

Consequences: 302, 401

Good
----

    kernel equally_long(n):
        assume 0 <= n <= 15
        READY = 0
        buffer ws[15] in GM

        section cube:
            for t in range(n):
                store ws[t] <- x @ FIX
                set_cross_core READY @ FIX

        section vector:
            for t in range(n):
                wait_cross_core READY @ MTE2
                load y <- ws[t] @ MTE2

Suppress
--------
If two bounds are equal for a reason that the kernel does not show, state it: `assume rows == cols`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="504",
    name="bounds-differ",
    title="loop bounds of the two sides differ in effect",
    row=Row.BOUNDARY,
    severity=Severity.ERROR,
    sentence="the two sides go through one hand-over in loops of different length: {bound} against {other}",
)
