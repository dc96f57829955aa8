"""Are the ids free that the kernel uses?

What
----
`sync_all` uses cross-core events 11 to 14 itself. A kernel that calls it uses one of them for a hand-over of its own.

Why it hurts
------------
The barrier takes the signal of the hand-over, or the other way round. One of the two hangs, or lets a core through
early.

Bad
---

    kernel event_twelve_and_sync_all():
        READY = 12
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX  # FP604
            sync_all

        section vector:
            wait_cross_core READY @ V  # FP604
            exp y <- tile @ V
            sync_all

Good
----

    kernel event_two_and_sync_all():
        READY = 2
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            sync_all

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V
            sync_all

Suppress
--------
`# fencepost: ignore[604] reason`; another id is usually free.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="604",
    name="reserved-id",
    title="reserved id",
    row=Row.PARTICIPANTS,
    severity=Severity.ERROR,
    sentence="{detail}",
)
