"""Does an asynchronous copy have a stage to itself before it is read?

What
----
A statement reads what an asynchronous copy in its own stage brings in. The waits that the compiler places leave that
copy pending from some iteration on.

Why it hurts
------------
The reader may see the tile before the copy has arrived, from a few trips on, and only if the memory is slow. The
compiler accepts the loop.

Bad
---

    kernel copy_beside_gemm(n):
        buffer s in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2),
                               async_producers = (1, 0, 0)):
                copy s <- a @ S  # FP928
                gemm c <- s @ S
                store out <- c @ S

Good
----

    kernel copy_a_stage_before_gemm(n):
        buffer s in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2),
                               async_producers = (1, 0, 0)):
                copy s <- a @ S
                gemm c <- s @ S
                store out <- c @ S

Suppress
--------
`# fencepost: ignore[928] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="928",
    name="async-in-one-stage",
    title="async producer and consumer in one stage",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
