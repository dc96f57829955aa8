"""Does every statement run once per iteration, also with fewer trips than stages?

What
----
With fewer trips than the last stage, prologue and epilogue overlap: a statement in a stage between 0 and the last one
is in both. It is an error if that changes a value, else a note.

Why it hurts
------------
Sums and counters are too large by one term, only for small inputs. The compiler accepts the loop.

Bad
---

    kernel sum_in_stage_1_of_3(n):
        buffer s in Mat
        buffer sum in GM

        section cube:
            clear sum <- () @ S
            for k in pipelined(0, n, stage = (0, 1, 3), order = (0, 1, 2)):
                copy s <- a @ S
                add sum <- sum, s @ S  # FP926
                store out <- s @ S

Good
----

    kernel sum_in_the_last_stage(n):
        buffer s in Mat
        buffer sum in GM

        section cube:
            clear sum <- () @ S
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):
                copy s <- a @ S
                add sum <- sum, s @ S
                store out <- s @ S

Suppress
--------
If there are always enough trips, say so with `assume n >= 3`. Otherwise: `# fencepost: ignore[926] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="926",
    name="statement-runs-twice",
    title="a statement of a middle stage runs twice when there are few trips",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
