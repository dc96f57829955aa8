"""Are all signals taken when a loop makes no trip, one trip, fewer trips than slots, or a tail?

What
----
All signals are taken for most trip counts, but for none, one, fewer than the depth, or one remainder, some stay: a
credit is issued unconditionally and drained only if there was work, or unused slots are drained by count.

Why it hurts
------------
The next launch finds the signals. An empty launch poisons the one after it, which is right by itself.

Bad
---

    kernel drain_if_any(n):
        assume n >= 0
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            for t in range(n):
                wait_cross_core RELEASE @ FIX
                move tile <- x @ FIX
                set_cross_core READY @ FIX
            if n > 0:
                wait_cross_core RELEASE @ FIX

        section vector:
            set_cross_core RELEASE @ V  # FP502
            for t in range(n):
                wait_cross_core READY @ V
                exp y <- tile @ V
                set_cross_core RELEASE @ V

Consequences: 206, 302, 401

Good
----

    kernel drain_always(n):
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
If callers never pass these values, state it: `assume n >= 1`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="502",
    name="boundary-leftover",
    title="signal left at a boundary trip count",
    row=Row.BOUNDARY,
    severity=Severity.ERROR,
    sentence="only at a boundary trip count ({when}): {detail}",
)
