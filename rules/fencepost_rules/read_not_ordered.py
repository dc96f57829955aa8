"""Is each read of a slot ordered after the write whose value it is meant to read?

What
----
No chain of signals, flags, locks and issue order leads from the write to the read, so some execution reads first. A
read of a slot that nothing has written before is the same defect. No single set or wait is at fault here: if moving
or re-piping one would repair it, FP204, FP205 or FP207 is reported instead.

Why it hurts
------------
The consumer reads the previous tile or uninitialised memory. Whether it does depends on timing, so it comes and goes
with shapes, clocks and neighbours.

Bad
---

    kernel no_ready():
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX

        section vector:
            exp y <- tile @ V  # FP201

Good
----

    kernel with_ready():
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
If something outside the kernel orders the two, say what:
`# fencepost: ignore[201] the launch before this one has filled the buffer`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="201",
    name="read-not-ordered",
    title="read not ordered after its write",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{reader} may read slot {slot} of {buffer} before {writer}",
)
