"""Are there as many sets as waits, per slot and direction?

What
----
For some parameter values a channel is set more or less often than it is awaited. Without credits n uses of a slot
give n sets and n waits in each direction; with one RELEASE issued in advance they give n + 1 and n + 1 of that
RELEASE.

Why it hurts
------------
A surplus set stays for the next launch and lets a later wait through too early; a surplus wait hangs.

Bad
---

    kernel ready_twice():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            set_cross_core READY @ FIX  # FP401

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Consequences: 302

Good
----

    kernel ready_once():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Suppress
--------
`# fencepost: ignore[401] reason`; the finding of row 3 with the same cause (FP301, FP302) needs the same.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="401",
    name="counts-differ",
    title="counts differ",
    row=Row.COUNTS,
    severity=Severity.ERROR,
    sentence="counts differ on {channel}: {sets} set, {waits} awaited",
)
