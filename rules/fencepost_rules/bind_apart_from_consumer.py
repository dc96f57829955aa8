"""Does every scheduled bind stand in the stage of its consumers, before them?

What
----
A bind that reads a buffer which the body writes cannot be computed again at each use, so it is scheduled like a
statement. Its value lives in a scalar of one step and cannot be carried to another stage.

Why it hurts
------------
The compiler rejects the loop.

Bad
---

    kernel row_one_stage_early(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1, 1), order = (0, 1, 2, 3)):
                copy table <- index @ S
                bind row = table[0]
                copy s <- a @ S at (row)  # FP905
                store out <- s @ S

Good
----

    kernel row_read_where_it_is_used(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):
                copy table <- index @ S
                gather s <- a, table @ S
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[905] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="905",
    name="bind-apart-from-consumer",
    title="a scheduled bind is not beside its consumer",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
