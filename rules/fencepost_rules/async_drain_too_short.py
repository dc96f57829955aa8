"""Does every user of an asynchronous copy have a wait that covers it?

What
----
An asynchronous copy is read in two later stages, in an earlier stage, or after the loop. The compiler counts its
waits for one later stage, and in the epilogue they leave a copy pending. Or what the copy fills, or what it reads, is
overwritten: the compiler places no wait before writes.

Why it hurts
------------
The reader may see the tile before the copy has arrived, in the last iterations; a copy under way may bring what
overwrote its source, or arrive on top of what was written since. The compiler accepts the loop.

Bad
---

    kernel read_in_stages_1_and_2(n):
        assume n >= 2
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 2), order = (0, 1, 2), async_stages = (0)):
                copy s <- a @ S  # FP931
                store out <- s @ S
                store again <- s @ S

Good
----

    kernel read_in_stage_1(n):
        assume n >= 2
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2), async_stages = (0)):
                copy s <- a @ S
                store out <- s @ S
                store again <- s @ S

Suppress
--------
`# fencepost: ignore[931] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="931",
    name="async-drain-too-short",
    title="an asynchronous buffer is used where no wait covers it",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
