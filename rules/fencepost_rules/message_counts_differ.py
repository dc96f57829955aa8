"""Is every message that is pushed popped, and every pop served?

What
----
One side pushes more or fewer messages than the other pops, for some parameter values. Loop bounds or guards of the
two sides differ, or two halves read one bound from memory separately.

Why it hurts
------------
A pop too many hangs. A push too many stays in the ring, and the next launch takes it for its own first message.

Bad
---

    kernel two_for_one():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a
            matmul b <- q, k @ M
            tpush_to_aiv b  # FP703

        section vector:
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s

Good
----

    kernel two_for_two():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a
            matmul b <- q, k @ M
            tpush_to_aiv b

        section vector:
            for t in range(2):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s

Suppress
--------
`# fencepost: ignore[703] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="703",
    name="message-counts-differ",
    title="pushes and pops differ",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
