"""Does the producer await the last RELEASE of each slot before it ends?

What
----
With a RELEASE issued in advance per slot, n uses give n + 1 sets, so the producer needs n + 1 waits: one before each
write, and one per slot after its loop. The waits after the loop (the drain) are missing, or do not cover all slots.

Why it hurts
------------
The signal stays in the counter. On targets whose kernels share the ids, the next launch finds it there, takes it for
its own and overwrites a tile too early: the kernel that fails is not the kernel that is wrong.

Bad
---

    kernel no_drain(n):
        assume n >= 0
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            for t in range(n):
                wait_cross_core RELEASE @ FIX
                move tile <- x @ FIX
                set_cross_core READY @ FIX

        section vector:
            set_cross_core RELEASE @ V  # FP206
            for t in range(n):
                wait_cross_core READY @ V
                exp y <- tile @ V
                set_cross_core RELEASE @ V

Consequences: 302, 401

Good
----

    kernel with_drain(n):
        assume n >= 0
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            for t in range(n):
                wait_cross_core RELEASE @ FIX
                move tile <- x @ FIX
                set_cross_core READY @ FIX
            wait_cross_core RELEASE @ FIX

        section vector:
            set_cross_core RELEASE @ V
            for t in range(n):
                wait_cross_core READY @ V
                exp y <- tile @ V
                set_cross_core RELEASE @ V

Suppress
--------
If the counters are known to be cleared between launches:
`# fencepost: ignore[206, 302, 401] counters are cleared at launch`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="206",
    name="release-not-awaited",
    title="last release not awaited",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence=(
        "the last release on {channel} is not awaited before the kernel ends: {sets} set, {waits} awaited, {count} left"
    ),
)
