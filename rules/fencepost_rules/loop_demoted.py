"""Does the skew pass overlap this `pipeline` loop?

What
----
The loop is marked `pipeline`, but the skew pass turns it into an ordinary loop: its bounds are not constant, it makes
fewer than two trips, there is not exactly one push and one pop at its top level, or the half that sends depends on a
loop-carried value or on the half that receives. The note says which.

Why it hurts
------------
Nothing is wrong with the result. The overlap that the marker asks for does not happen.

Bad
---

    kernel bound_not_constant(n):
        assume n >= 0
        fifo down: cube -> vector, slots = 2
        fifo up: vector -> cube, slots = 2

        section cube:
            for t in pipeline(0, n, 1, stage = 3):  # FP704
                load a <- x @ MTE2
                tpush_to_aiv a
                p <- tpop_from_aiv
                store out <- p @ FIX
                tfree_to_aiv p

        section vector:
            for t in range(n):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s
                tpush_to_aic e

Good
----

    kernel bound_constant():
        fifo down: cube -> vector, slots = 2
        fifo up: vector -> cube, slots = 2

        section cube:
            for t in pipeline(0, 4, 1, stage = 3):
                load a <- x @ MTE2
                tpush_to_aiv a
                p <- tpop_from_aiv
                store out <- p @ FIX
                tfree_to_aiv p

        section vector:
            for t in range(4):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s
                tpush_to_aic e

Suppress
--------
Write `range` instead of `pipeline`, or: `# fencepost: ignore[704] not worth unrolling`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="704",
    name="loop-demoted",
    title="pipeline loop not skewed",
    row=Row.FIFO,
    severity=Severity.NOTE,
    sentence="{detail}",
)
