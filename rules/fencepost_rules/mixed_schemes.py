"""Is one credit scheme kept from the start to the end?

What
----
There are two right schemes for RELEASE. With a credit issued in advance per slot, every write waits and the drain
takes the last one; without, the first write of each slot does not wait and the last RELEASEs are drained by number.
Here the start follows one and the loop or the end the other.

Why it hurts
------------
One signal per slot is too many, so the producer is one round too early on a slot from then on, or one too few, so it
hangs.

Bad
---

    kernel credit_and_first_round_free(n):
        assume n >= 0
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            for t in range(n):
                if t >= 1:
                    wait_cross_core RELEASE @ FIX
                move tile <- x @ FIX
                set_cross_core READY @ FIX
            wait_cross_core RELEASE @ FIX

        section vector:
            set_cross_core RELEASE @ V
            for t in range(n):
                wait_cross_core READY @ V
                exp y <- tile @ V
                set_cross_core RELEASE @ V  # FP403

Consequences: 205, 206, 302

Good
----

    kernel credit_and_every_round_waits(n):
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
`# fencepost: ignore[403] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="403",
    name="mixed-schemes",
    title="credit schemes mixed",
    row=Row.COUNTS,
    severity=Severity.ERROR,
    sentence=(
        "{channel} mixes the scheme with credits issued in advance and the one without: {sets} set, {waits} awaited"
    ),
)
