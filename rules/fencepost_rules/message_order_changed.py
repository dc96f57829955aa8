"""Do messages reach the peer in the order in which it means to take them?

What
----
A ring matches by order alone: the k-th pop takes the k-th push, whatever the names say. Here a pop receives another
message than the one it means, by the `task =` of both ends or, without it, by where the value comes from. In a
`pipeline` loop this can be right as written and wrong after the skew pass, which moves the halves of the loop apart.

Why it hurts
------------
The consumer works on the wrong tile. Tiles of one shape give wrong numbers and no other symptom.

Bad
---

    kernel second_one_first():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a task = 0
            matmul b <- q, k @ M
            tpush_to_aiv b task = 1

        section vector:
            s <- tpop_from_aic task = 1  # FP701
            exp e <- s @ V
            tfree_to_aic s
            r <- tpop_from_aic task = 0
            exp f <- r @ V
            tfree_to_aic r

Good
----

    kernel first_one_first():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a task = 0
            matmul b <- q, k @ M
            tpush_to_aiv b task = 1

        section vector:
            s <- tpop_from_aic task = 0
            exp e <- s @ V
            tfree_to_aic s
            r <- tpop_from_aic task = 1
            exp f <- r @ V
            tfree_to_aic r

Suppress
--------
If the messages are interchangeable: `# fencepost: ignore[701] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="701",
    name="message-order-changed",
    title="message order changed",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
