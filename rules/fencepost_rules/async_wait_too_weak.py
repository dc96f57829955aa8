"""Does each consumer wait for all copies that it reads?

What
----
Several asynchronous copies share a stage without commit groups, and a consumer is ordered before one of them. The
wait before it is counted as if the copies of this step were all under way.

Why it hurts
------------
The first consumer may see its tile before the copy has arrived. The compiler accepts the loop.

Bad
---

    kernel store_between_two_copies(n):
        buffer left in Mat
        buffer right in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1, 1), order = (0, 2, 1, 3), async_stages = (0)):
                copy left <- a @ S  # FP932
                copy right <- b @ S
                store x <- left @ S
                store y <- right @ S

Good
----

    kernel stores_after_the_copies(n):
        buffer left in Mat
        buffer right in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1, 1), order = (0, 1, 2, 3), async_stages = (0)):
                copy left <- a @ S
                copy right <- b @ S
                store x <- left @ S
                store y <- right @ S

Suppress
--------
`# fencepost: ignore[932] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="932",
    name="async-wait-too-weak",
    title="the first wait for several asynchronous copies is too weak",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
