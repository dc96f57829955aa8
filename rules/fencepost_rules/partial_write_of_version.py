"""Is every version of a buffer filled completely before it is read?

What
----
A statement writes only part of a buffer, or writes it only in some iterations, and relies on what the iteration
before left in the rest. The buffer has several versions, and the iteration before used another one.

Why it hurts
------------
Stale or undefined data from two iterations ago. The compiler accepts the loop.

Bad
---

    kernel tile_kept_when_not_needed(n):
        buffer s in Mat

        section cube:
            copy s <- a @ S
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                if need(k) > 0:
                    copy s <- a @ S at (k)
                store out <- s @ S  # FP924

Good
----

    kernel tile_kept_in_one_stage(n):
        buffer s in Mat

        section cube:
            copy s <- a @ S
            for k in pipelined(0, n, stage = (0, 0), order = (0, 1)):
                if need(k) > 0:
                    copy s <- a @ S at (k)
                store out <- s @ S

Suppress
--------
`# fencepost: ignore[924] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="924",
    name="partial-write-of-version",
    title="partial or guarded write of a buffer with versions",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
