"""Does a bind that is computed again see the value of its own iteration?

What
----
A bind is computed again at each use, and it depends on a bind that is scheduled in an earlier stage. At the later use
the scheduled bind holds the value of a later iteration already.

Why it hurts
------------
The address or condition belongs to the wrong iteration. The compiler accepts the loop.

Bad
---

    kernel next_row_a_stage_later(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 0, 1), order = (0, 1, 2, 3)):
                copy table <- index @ S
                bind row = table[0]
                bind next = row + 1
                copy s <- a @ S at (next)
                store out <- s @ S at (next)  # FP933

Consequences: 934

Good
----

    kernel next_row_from_the_table(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2)):
                copy table <- index @ S
                gather s <- a, table @ S
                scatter out <- s, table @ S

Suppress
--------
`# fencepost: ignore[933] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="933",
    name="replayed-bind-overtaken",
    title="a bind computed from a scheduled bind is used in a later stage",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
