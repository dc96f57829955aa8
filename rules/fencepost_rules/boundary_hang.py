"""Does the kernel end when a loop makes no trip, one trip, fewer trips than slots, or a tail?

What
----
The kernel ends for most trip counts but hangs for a few: none, one, fewer than the depth, or those with one
remainder. Usually a wait or a pop outside the loop expects what only a trip of the loop produces, or a guard covers
one side only.

Why it hurts
------------
Tests use comfortable shapes. The first empty sequence or short batch in production hangs the device.

Bad
---

    kernel result_of_no_trips(n):
        assume n >= 0
        DONE = 0
        buffer r in Vec

        section cube:
            for t in range(n):
                if t == n - 1:
                    move r <- x @ FIX
                    set_cross_core DONE @ FIX

        section vector:
            wait_cross_core DONE @ V  # FP501
            cast y <- r @ V

Consequences: 301, 401

Good
----

    kernel result_of_some_trips(n):
        assume n >= 0
        DONE = 0
        buffer r in Vec

        section cube:
            for t in range(n):
                if t == n - 1:
                    move r <- x @ FIX
                    set_cross_core DONE @ FIX

        section vector:
            if n > 0:
                wait_cross_core DONE @ V
                cast y <- r @ V

Suppress
--------
If callers never pass these values, state it: `assume n >= 1`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="501",
    name="boundary-hang",
    title="hangs at a boundary trip count",
    row=Row.BOUNDARY,
    severity=Severity.ERROR,
    sentence="only at a boundary trip count ({when}): {detail}",
)
