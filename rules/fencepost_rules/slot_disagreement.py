"""For one logical task, do producer and consumer use the same physical slot?

What
----
Both ends of a hand-over name the round (`task =`), and for one round the consumer reads another slot than the
producer wrote. Where the ends do not name the round, it is what the signals say, and this is an error only if an
access is also unordered, a wait hangs or a signal is left.

Why it hurts
------------
The consumer works on the tile of another task. Nothing hangs and nothing races, so only the numbers are wrong, often
only from some trip count on.

Bad
---

    kernel other_slot():
        READY = 0
        buffer tile[2] in Vec

        section cube:
            for t in range(2):
                move tile[t] <- x @ FIX task = t
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            for t in range(2):
                exp y <- tile[1 - t] @ V task = t  # FP102

Good
----

    kernel same_slot():
        READY = 0
        buffer tile[2] in Vec

        section cube:
            for t in range(2):
                move tile[t] <- x @ FIX task = t
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            for t in range(2):
                exp y <- tile[t] @ V task = t

Suppress
--------
If the consumer is meant to read another round (the previous one, say), write that round in its `task =` instead.
Otherwise: `# fencepost: ignore[102] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="102",
    name="slot-disagreement",
    title="producer and consumer use different slots",
    row=Row.SLOT_MAPPING,
    severity=Severity.ERROR,
    sentence="round {round} of {buffer}: {agent} uses slot {slot}, but {other_agent} uses slot {other_slot}",
)
