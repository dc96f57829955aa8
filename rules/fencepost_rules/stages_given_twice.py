"""Is the depth said once?

What
----
The loop has `stage` and `order`, which fix the depth as max(stage) + 1, and a `num_stages` beside them.

Why it hurts
------------
`num_stages` does not change the depth then. It only sets the number of barriers and how far waits are relaxed, which
is rarely what was meant.

Bad
---

    kernel depth_two_twice(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1), num_stages = 2):  # FP907
                copy s <- a @ S
                store out <- s @ S

Good
----

    kernel depth_two(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
Say why the two are meant to differ: `# fencepost: ignore[907] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="907",
    name="stages-given-twice",
    title="num_stages beside stage and order",
    row=Row.PIPELINE,
    severity=Severity.WARNING,
    sentence="{detail}",
)
