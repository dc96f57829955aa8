"""Do statements on the same cells keep their order within an iteration?

What
----
Two statements of one iteration write the same cells, or one overwrites what the other reads, and the schedule runs
them in the other order. In a loop whose statements share one stage this cannot happen: the source order is kept
there.

Why it hurts
------------
The compiler looks at readers after writers only and accepts the loop. The value is wrong in every iteration.

Bad
---

    kernel second_copy_first(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (1, 0, 2)):
                copy s <- a @ S
                copy s <- b @ S
                store out <- s @ S  # FP920

Good
----

    kernel second_copy_second(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2)):
                copy s <- a @ S
                copy s <- b @ S
                store out <- s @ S

Suppress
--------
`# fencepost: ignore[920] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="920",
    name="order-in-iteration-changed",
    title="anti or output dependence reordered",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
