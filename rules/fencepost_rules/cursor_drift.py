"""Do the cursors of both sides advance equally often on every path?

What
----
Slots are taken through the cursor of a tile group (`next()`, `current()`, `previous()`). Each agent has its own copy.
One agent calls `next()` more or less often than the other on some path, so from then on the same round means
different slots.

Why it hurts
------------
Each tile after the drift is taken from a wrong slot. With two slots the mistake can undo itself after a second drift,
which makes it look like noise.

Bad
---

    kernel branch_forgets_next():
        READY = 0
        buffer tile[2] in Vec

        section cube:
            for t in range(2):
                s = tile.next()
                move tile[s] <- x @ FIX task = t
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            for t in range(2):
                if t == 0:
                    s = tile.next()
                    copy y <- tile[s] @ V task = t
                else:
                    s = tile.current()
                    exp y <- tile[s] @ V task = t  # FP103

Good
----

    kernel each_branch_advances():
        READY = 0
        buffer tile[2] in Vec

        section cube:
            for t in range(2):
                s = tile.next()
                move tile[s] <- x @ FIX task = t
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            for t in range(2):
                if t == 0:
                    s = tile.next()
                    copy y <- tile[s] @ V task = t
                else:
                    s = tile.next()
                    exp y <- tile[s] @ V task = t

Suppress
--------
Call `next()` once per round, before the branches, and use `current()` inside them. Otherwise:
`# fencepost: ignore[103] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="103",
    name="cursor-drift",
    title="cursors of the two sides drift apart",
    row=Row.SLOT_MAPPING,
    severity=Severity.ERROR,
    sentence=(
        "the cursors of {buffer} have drifted apart: in round {round}, {agent} is at slot {slot} and "
        "{other_agent} at slot {other_slot}"
    ),
)
