"""Do blocks keep to slots of their own in memory that they share?

What
----
Two blocks touch the same slot of a `shared` buffer in global memory and at least one of them writes it. Blocks run at
the same time, in no order, and here neither `sync_all` nor a signal in mode INTER_BLOCK puts them in one.

Why it hurts
------------
One block is enough to see a kernel work. On the device there are dozens: whichever comes last wins, and a reader may
get the tile of another block.

Bad
---

    kernel one_slot_for_all():
        buffer result[2] in GM shared

        section vector:
            store result[sub] <- y @ MTE3  # FP209

Good
----

    kernel slots_of_their_own():
        assume block < 24
        buffer result[48] in GM shared

        section vector:
            store result[2 * block + sub] <- y @ MTE3

Suppress
--------
If all blocks write the same value: `# fencepost: ignore[209] all blocks write the same mask`. Memory that only one
block uses is not `shared`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="209",
    name="blocks-share-a-slot",
    title="two blocks touch one slot of shared memory",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{first} of block {block} and {second} of block {other} touch slot {slot} of {buffer}, and blocks have "
    "no order",
)
