"""Is every push that uses a slot again held back until the slot is free?

What
----
Credits travel in batches of half the slots (one or two slots: all of them). Where the number of slots is no multiple
of the batch (5, 7, 9 and so on), some pushes use a slot again without waiting for a credit.

Why it hurts
------------
The sender overwrites a message that has not been read. It needs a slow receiver and a certain trip count to show.

Bad
---

    kernel five_slots(n):
        assume n >= 0
        fifo down: cube -> vector, slots = 5  # FP706

        section cube:
            for t in range(n):
                matmul s <- q, k @ M
                tpush_to_aiv s

        section vector:
            for t in range(n):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s

Good
----

    kernel six_slots(n):
        assume n >= 0
        fifo down: cube -> vector, slots = 6

        section cube:
            for t in range(n):
                matmul s <- q, k @ M
                tpush_to_aiv s

        section vector:
            for t in range(n):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s

Suppress
--------
If the device is known to return credits one by one, say so in the kernel: `option credits = per_slot`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="706",
    name="pushes-unguarded",
    title="slot count leaves pushes unguarded",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
