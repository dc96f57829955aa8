"""Is every scheduled bind emitted in a scope of its consumers?

What
----
The compiler emits each scheduled statement in a scope of its own, also a bind, and its consumers stand in other
scopes. Loops whose statements share one stage are kept as they are.

Why it hurts
------------
The emitted program names a variable that is not defined there. Depending on the version it does not compile or reads
something else.

Bad
---

    kernel row_of_a_closed_scope(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 0, 1), order = (0, 1, 2, 3)):
                copy table <- index @ S
                bind row = table[0]  # FP934
                copy s <- a @ S at (row)
                store out <- s @ S

Good
----

    kernel no_row_at_all(n):
        buffer table in Mat
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2)):
                copy table <- index @ S
                gather s <- a, table @ S
                store out <- s @ S

Suppress
--------
`# fencepost: ignore[934] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="934",
    name="bind-out-of-scope",
    title="a scheduled bind is used outside its scope",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
