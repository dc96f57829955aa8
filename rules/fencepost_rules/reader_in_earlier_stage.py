"""Does every reader stand in the stage of its writer or a later one?

What
----
A statement reads a buffer that a statement before it in the body writes, and the writer has the larger stage. A
larger stage runs later.

Why it hurts
------------
The reader would use a value that does not exist yet. The compiler rejects the loop.

Bad
---

    kernel store_before_copy(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (1, 0), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S  # FP903

Good
----

    kernel copy_before_store(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[903] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="903",
    name="reader-in-earlier-stage",
    title="reader in an earlier stage than its writer",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
