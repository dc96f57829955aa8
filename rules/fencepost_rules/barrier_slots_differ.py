"""Are there as many barrier slots as iterations under way?

What
----
`num_stages` stands beside `stage` and `order` and is not the depth max(stage) + 1. It sets the number of barrier
slots and how far waits are relaxed.

Why it hurts
------------
A barrier may be used for the next iteration before the wait of an earlier one. It is an error where a wait becomes
too weak, else a warning.

Bad
---

    kernel three_slots_for_depth_two(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1), num_stages = 3):  # FP930
                copy s <- a @ S
                store out <- s @ S

Consequences: 907

Good
----

    kernel slots_as_the_depth(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
`# fencepost: ignore[930] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="930",
    name="barrier-slots-differ",
    title="depth and number of barrier slots differ",
    row=Row.PIPELINE,
    severity=Severity.WARNING,
    sentence="{detail}",
)
