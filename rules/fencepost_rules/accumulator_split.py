"""Is there one accumulator for all iterations?

What
----
A buffer is written in one stage and read in a later one, so it gets several versions, and one statement adds to what
the iteration before left in it.

Why it hurts
------------
Each version sums up every second iteration only, and the first sum in it starts from whatever was there. The compiler
accepts the loop.

Bad
---

    kernel total_read_in_the_next_stage(n):
        buffer s in Mat
        buffer total in Vec

        section cube:
            clear total <- () @ S
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2)):
                copy s <- a @ S
                add total <- total, s @ S  # FP922
                store out <- total @ S

Good
----

    kernel total_in_one_stage(n):
        buffer s in Mat
        buffer total in Vec

        section cube:
            clear total <- () @ S
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):
                copy s <- a @ S
                add total <- total, s @ S
                store out <- total @ S

Suppress
--------
`# fencepost: ignore[922] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="922",
    name="accumulator-split",
    title="accumulator split over versions",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
