"""Is a buffer that serves twice in an iteration filled again only after it was read?

What
----
An iteration fills a buffer, reads it, fills it again and reads that. Both fillings are in an earlier stage than the
readers, so the second one comes first.

Why it hurts
------------
The first reader gets the second value. The compiler accepts the loop.

Bad
---

    kernel one_buffer_for_two_tiles(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 0, 1), order = (0, 1, 2, 3)):
                copy s <- a @ S
                store x <- s @ S  # FP923
                copy s <- b @ S
                store y <- s @ S

Good
----

    kernel a_buffer_each(n):
        buffer s in Mat
        buffer r in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 0, 1), order = (0, 1, 2, 3)):
                copy s <- a @ S
                store x <- s @ S
                copy r <- b @ S
                store y <- r @ S

Suppress
--------
`# fencepost: ignore[923] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="923",
    name="buffer-used-twice",
    title="buffer used twice in an iteration, across stages",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
