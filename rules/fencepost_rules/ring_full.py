"""Does every push find a free slot in the end?

What
----
A push waits for a free slot, and the peer that would free one waits itself, mostly because it cannot push its answer
either. In a skewed loop the lead is the skew depth, so a `stage` that is too large for the slots does this.

Why it hurts
------------
Both cores stand still. With credits that travel in batches it depends on the trip count too: a shape that runs says
nothing about the next.

Bad
---

    kernel four_ahead_of_one_slot():
        fifo down: cube -> vector, slots = 1
        fifo up: vector -> cube, slots = 1

        section cube:
            for t in range(4):
                matmul s <- q, k @ M
                tpush_to_aiv s  # FP702
            for t in range(4):
                p <- tpop_from_aiv
                matmul o <- p, v @ M
                tfree_to_aiv p

        section vector:
            for t in range(4):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s
                tpush_to_aic e

Good
----

    kernel four_ahead_of_four_slots():
        fifo down: cube -> vector, slots = 4
        fifo up: vector -> cube, slots = 4

        section cube:
            for t in range(4):
                matmul s <- q, k @ M
                tpush_to_aiv s
            for t in range(4):
                p <- tpop_from_aiv
                matmul o <- p, v @ M
                tfree_to_aiv p

        section vector:
            for t in range(4):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s
                tpush_to_aic e

Suppress
--------
If the device is known to return credits one by one, say so in the kernel: `option credits = per_slot`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="702",
    name="ring-full",
    title="ring full for ever",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
