"""Can every bind that is marked replayable be computed again?

What
----
`replayable` marks a bind that reads a buffer which the body writes. Computed again in another stage it would read
another value.

Why it hurts
------------
The compiler rejects the loop.

Bad
---

    kernel row_read_from_the_table(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2), replayable = (0, 1, 0, 0)):
                copy table <- index @ S
                bind row = table[0]  # FP912
                copy s <- a @ S at (row)
                store out <- s @ S

Good
----

    kernel row_computed(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1), replayable = (1, 0, 0)):
                bind row = k * 2
                copy s <- a @ S at (row)
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[912] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="912",
    name="bind-not-replayable",
    title="a bind marked replayable that is not",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
