"""Is every stage at least 0?

What
----
A statement has a negative stage. Its instances run that many iterations early: the first ones are skipped, the last
ones lie past the end.

Why it hurts
------------
Values are missing for the first iterations, and the last ones read beyond the data. The compiler accepts the loop.

Bad
---

    kernel one_before_the_first(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (-1, 1), order = (0, 1)):
                copy s <- a @ S  # FP927
                store out <- s @ S

Good
----

    kernel from_stage_0(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
`# fencepost: ignore[927] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="927",
    name="negative-stage",
    title="a statement in a negative stage",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
