"""Is there anything to pipeline?

What
----
The body holds only binds that are computed again at each use, so that no statement is left for the lists.

Why it hurts
------------
The compiler rejects the loop.

Bad
---

    kernel only_a_bind(n):
        section cube:
            for k in pipelined(0, n, stage = (0), order = (0)):  # FP911
                bind row = k * 2

Good
----

    kernel one_statement(n):
        section cube:
            for k in pipelined(0, n, stage = (0), order = (0)):
                bind row = k * 2
                store out <- a @ S at (row)

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[911] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="911",
    name="nothing-to-schedule",
    title="no statement to schedule",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
