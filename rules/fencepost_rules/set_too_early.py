"""Does each set come after the last write, or read, that it announces?

What
----
A READY is set before the last write of its tile, or a RELEASE before the last read, so the signal says something that
is not yet true. Moving the set behind the access repairs it.

Why it hurts
------------
The peer trusts the signal and reads an unfinished tile, or overwrites one that is still being read.

Bad
---

    kernel ready_before_write():
        READY = 0
        buffer tile in Vec

        section cube:
            set_cross_core READY @ FIX  # FP204
            move tile <- x @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Good
----

    kernel ready_after_write():
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
`# fencepost: ignore[204] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="204",
    name="set-too-early",
    title="set before the access it announces",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{sync} comes before {access}, which it announces: the peer may use slot {slot} of {buffer} too early",
)
