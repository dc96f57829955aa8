"""Does the code after the loop read what the last iteration left?

What
----
A buffer gets several versions in the loop. After the loop its name means the first version, which the last iteration
mostly did not write.

Why it hurts
------------
The value depends on the trip count: right for one residue, stale for the others. The compiler accepts the loop.

Bad
---

    kernel last_tile_kept(n):
        buffer s in Mat

        section cube:
            copy s <- a @ S
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S  # FP925
                store out <- s @ S
            store last <- s @ S

Good
----

    kernel last_tile_copied_again(n):
        buffer s in Mat
        buffer r in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S
            copy r <- a @ S
            store last <- r @ S

Suppress
--------
`# fencepost: ignore[925] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="925",
    name="version-read-after-loop",
    title="a buffer with versions is read after the loop",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
