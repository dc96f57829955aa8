"""Does every computed index stay inside its buffer, tuple or ring?

What
----
A slot number, an element of a tuple of event ids or a record of a ring is taken at an index below 0 or not below the
depth. Indices never wrap: -1 is out of range.

Why it hurts
------------
The device does not check. The operation reads or writes whatever lies behind the last slot, or signals on an id that
belongs to somebody else.

Bad
---

    kernel three_tiles_in_two_slots(n):
        assume n >= 0
        buffer tile[2] in Vec

        section vector:
            for t in range(n):
                fill tile[t % 3] <- zero @ V  # FP101

Good
----

    kernel three_tiles_in_three_slots(n):
        assume n >= 0
        buffer tile[3] in Vec

        section vector:
            for t in range(n):
                fill tile[t % 3] <- zero @ V

Suppress
--------
If larger parameter values never occur, say so with an `assume` instead: it is checked against, printed, and serves
every rule. Otherwise: `# fencepost: ignore[101] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="101",
    name="index-out-of-range",
    title="index out of range",
    row=Row.SLOT_MAPPING,
    severity=Severity.ERROR,
    sentence="index {index} of {name} is outside [0, {depth}) on {agent}",
)
