"""Does every bind that must be scheduled have an entry in the lists?

What
----
A bind that reads a buffer which the body writes is scheduled like a statement, and the lists are too short by just
these binds. Binds of other values need no entry: they are computed again at each use.

Why it hurts
------------
The compiler complains about the length of the lists and does not say which statement is missing.

Bad
---

    kernel row_forgotten(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):
                copy table <- index @ S
                bind row = table[0]  # FP906
                copy s <- a @ S at (row)
                store out <- s @ S

Consequences: 901

Good
----

    kernel no_row_to_forget(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):
                copy table <- index @ S
                gather s <- a, table @ S
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[906] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="906",
    name="bind-without-entry",
    title="a bind that must be scheduled has no entry",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
