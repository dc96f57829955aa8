"""Does the target have the ids that are used?

What
----
An event, flag or mutex id, or the number of a sub-core, is outside what the target has: a5 has cross-core events 0 to
15, a2 and a3 have 0 to 10; flags are 0 to 7, mutexes 0 to 31.

Why it hurts
------------
The hardware uses some bits of the number, so the signal goes to another id or to the other sub-core.

Bad
---

    kernel event_twelve():
        target a3
        READY = 12
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX  # FP603

        section vector:
            wait_cross_core READY @ V  # FP603
            exp y <- tile @ V

Good
----

    kernel event_two():
        target a3
        READY = 2
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Suppress
--------
If the kernel is never built for this target, check it with `--target`, or name the target in the kernel.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="603",
    name="id-out-of-range",
    title="id out of the target's range",
    row=Row.PARTICIPANTS,
    severity=Severity.ERROR,
    sentence="{detail}",
)
