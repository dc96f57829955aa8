"""Are all writes of a slot ordered with each other?

What
----
Two operations write the same memory and no chain leads from one to the other in either direction.

Why it hurts
------------
Which value stays is a matter of timing. A zero fill that loses the race is invisible; one that wins erases a tile.

Bad
---

    kernel fill_and_move():
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX

        section vector:
            fill tile <- zero @ V  # FP203

Good
----

    kernel fill_then_move():
        FILLED = 0
        buffer tile in Vec

        section cube:
            wait_cross_core FILLED @ FIX
            move tile <- x @ FIX

        section vector:
            fill tile <- zero @ V
            set_cross_core FILLED @ V

Suppress
--------
If both operations write the same value: `# fencepost: ignore[203] both write zeros`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="203",
    name="writes-not-ordered",
    title="two writes not ordered",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{first} and {second} both write slot {slot} of {buffer}, and nothing orders the two",
)
