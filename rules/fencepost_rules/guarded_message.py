"""Are all messages of a `pipeline` loop at its top level?

What
----
The loop has one push and one pop at its top level, so it is skewed, and a further message inside an `if` or an inner
loop. The pass does not count that message: the main message overtakes it, because one half of the loop runs ahead and
the nested statement stays behind.

The same code tells of other things that the pass does not count, because it follows values alone: operations of the
two halves that meet in a buffer or at one place of a tensor and change their order, and waits that stay behind.

Why it hurts
------------
The peer still takes the messages in the order of the text, so from the first trip on it takes one for the other.  A
read of memory finds what a later trip wrote, or no longer what the trip before did.

Bad
---

    kernel scale_every_other_trip():
        fifo down: cube -> vector, slots = 4
        fifo up: vector -> cube, slots = 4

        section cube:
            for t in pipeline(0, 4, 1, stage = 2):
                load a <- x @ MTE2
                tpush_to_aiv a
                if t % 2 == 0:
                    load c <- scale @ MTE2
                    tpush_to_aiv c  # FP705
                p <- tpop_from_aiv
                store out <- p @ FIX
                tfree_to_aiv p

        section vector:
            for t in range(4):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s
                if t % 2 == 0:
                    f <- tpop_from_aic
                    mul e <- e, f @ V
                    tfree_to_aic f
                tpush_to_aic e

Consequences: 701

Good
----

    kernel scale_on_a_ring_of_its_own():
        fifo down: cube -> vector, slots = 4
        fifo scales: cube -> vector, slots = 4, id = 1
        fifo up: vector -> cube, slots = 4

        section cube:
            for t in range(4):
                load a <- x @ MTE2
                tpush_to_aiv a
                if t % 2 == 0:
                    load c <- scale @ MTE2
                    tpush_to_aiv c id = 1
                p <- tpop_from_aiv
                store out <- p @ FIX
                tfree_to_aiv p

        section vector:
            for t in range(4):
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s
                if t % 2 == 0:
                    f <- tpop_from_aic id = 1
                    mul e <- e, f @ V
                    tfree_to_aic f id = 1
                tpush_to_aic e

Suppress
--------
`# fencepost: ignore[705] reason`. A plain `range` loop, or the message at top level on every trip, removes the cause.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="705",
    name="guarded-message",
    title="guarded message not seen by the skew pass",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
