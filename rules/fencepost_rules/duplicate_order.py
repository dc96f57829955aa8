"""Does each statement have an order of its own?

What
----
Two statements have the same number in `order`. The numbers say in which order the statements of one step of the
pipelined loop are emitted.

Why it hurts
------------
The compiler rejects the loop, also where all statements share one stage and the order is otherwise ignored.

Bad
---

    kernel both_first(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 0)):
                copy s <- a @ S
                store out <- s @ S  # FP902

Good
----

    kernel one_after_the_other(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[902] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="902",
    name="duplicate-order",
    title="one order number twice",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
