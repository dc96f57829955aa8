"""Does a reader come after its writer where both share a stage?

What
----
A statement and the one whose value it reads are in one stage, and the reader has the smaller number in `order`.

Why it hurts
------------
Within a step the reader would run before its writer. The compiler rejects the loop, although it keeps the source
order if all statements share one stage.

Bad
---

    kernel store_ordered_first(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0), order = (1, 0)):
                copy s <- a @ S
                store out <- s @ S  # FP904

Good
----

    kernel copy_ordered_first(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 0), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[904] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="904",
    name="reader-ordered-first",
    title="same stage, reader ordered before its writer",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
