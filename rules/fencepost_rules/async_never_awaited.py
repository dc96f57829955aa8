"""Is everything that is asynchronous awaited?

What
----
The compiler places no wait before a statement that is asynchronous itself, so nothing orders it after the
asynchronous copy that it reads. A stage that `async_stages` names and no statement has is a warning: it has no
effect.

Why it hurts
------------
The reader may see the tile before the copy has arrived. The compiler accepts the loop.

Bad
---

    kernel gemm_in_the_async_stage(n):
        buffer s in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2), async_stages = (0)):
                copy s <- a @ S  # FP929
                gemm c <- s @ S
                store out <- c @ S

Good
----

    kernel only_the_copy_is_async(n):
        buffer s in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2), async_stages = (0)):
                copy s <- a @ S
                gemm c <- s @ S
                store out <- c @ S

Suppress
--------
`# fencepost: ignore[929] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="929",
    name="async-never-awaited",
    title="an asynchronous consumer, or an asynchronous stage that does not exist",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
