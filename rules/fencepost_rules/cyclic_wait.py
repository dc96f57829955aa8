"""Can the agents wait for each other in a circle?

What
----
Every wait has a set, and the counts agree, but each agent stands at a wait whose set comes behind the wait of
another. The classic is a producer that waits for a RELEASE before its first tile while nobody has issued one in
advance.

Why it hurts
------------
The kernel hangs at once, or at the round in which the circle closes.

Bad
---

    kernel cold_start():
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            wait_cross_core RELEASE @ FIX  # FP306
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V
            set_cross_core RELEASE @ V

Good
----

    kernel warm_start():
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            wait_cross_core RELEASE @ FIX
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            wait_cross_core RELEASE @ FIX

        section vector:
            set_cross_core RELEASE @ V
            wait_cross_core READY @ V
            exp y <- tile @ V
            set_cross_core RELEASE @ V

Suppress
--------
A deadlock is a fact of the kernel's text and parameters. If larger or smaller values never occur, state them with
`assume`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="306",
    name="cyclic-wait",
    title="cyclic wait",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence="cyclic wait: {detail}",
)
