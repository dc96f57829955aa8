"""Do the lists name only what is scheduled?

What
----
The lists have the older form, with an entry for each bind too, and this bind has several consumers. It is computed
again at each of them.

Why it hurts
------------
The entry has no effect: the bind does not run in the stage that it names.

Bad
---

    kernel row_in_stage_0(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2)):
                bind row = k * 2  # FP910
                copy s <- a @ S at (row)
                store out <- s @ S at (row)

Good
----

    kernel row_at_each_use(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                bind row = k * 2
                copy s <- a @ S at (row)
                store out <- s @ S at (row)

Suppress
--------
If the lists must fit an older compiler: `# fencepost: ignore[910] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="910",
    name="entry-for-replayed-bind",
    title="an entry for a bind that is computed again at each use",
    row=Row.PIPELINE,
    severity=Severity.WARNING,
    sentence="{detail}",
)
