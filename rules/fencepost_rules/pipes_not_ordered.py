"""Are accesses of one core to one slot, on different pipes, ordered?

What
----
A core's pipes run side by side. Two operations of one core meet in memory on two pipes, and neither a flag
(`sync_src`/`sync_dst`) nor a mutex, a barrier or a phase orders them. A tile without mutex ids gets no automatic
order.

Why it hurts
------------
The vector unit computes on a tile that is still being loaded, or a store sends a tile that is still being computed.

Bad
---

    kernel load_and_compute():
        buffer tile in Vec

        section vector:
            load tile <- x @ MTE2
            exp y <- tile @ V  # FP208

Good
----

    kernel load_then_compute():
        buffer tile in Vec

        section vector:
            load tile <- x @ MTE2
            sync_src 0: MTE2 -> V
            sync_dst 0: MTE2 -> V
            exp y <- tile @ V

Suppress
--------
`# fencepost: ignore[208] reason`. Giving the tile a mutex id is usually shorter.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="208",
    name="pipes-not-ordered",
    title="order missing between two pipes of one core",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{first} and {second} both use slot {slot} of {buffer}, and nothing orders the two pipes",
)
