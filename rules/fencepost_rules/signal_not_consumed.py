"""Is every signal that is set awaited before the kernel ends?

What
----
When the kernel ends, a channel still holds signals that nobody has waited for.

Why it hurts
------------
On targets whose kernels share the ids the next launch starts with the signal pending: its first wait is satisfied too
early. Where the counters are cleared it is still a wait that somebody forgot.

Bad
---

    kernel nobody_waits():
        READY = 0
        DONE = 1
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            set_cross_core DONE @ FIX  # FP302

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Consequences: 401

Good
----

    kernel the_vector_waits():
        READY = 0
        DONE = 1
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            set_cross_core DONE @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V
            wait_cross_core DONE @ V

Suppress
--------
`# fencepost: ignore[302, 401] counters are cleared at launch`, if that is known of the target.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="302",
    name="signal-not-consumed",
    title="signal never consumed",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence="signals left on {channel} at the end: {count} ({sets} set, {waits} awaited)",
)
