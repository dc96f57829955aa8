"""Is each mutex locked and unlocked in turn, and free at the end?

What
----
A `mutex_unlock` has no lock before it, a mutex is locked by a second pipe while the first still holds it, or it is
never unlocked.

Why it hurts
------------
A lock that was never released blocks the next pipe that takes the id for ever. An unlock without a lock lets another
pipe in too early.

Bad
---

    kernel never_unlocked():
        buffer tile in Vec

        section vector:
            mutex_lock 0 @ MTE2
            load tile <- x @ MTE2
            mutex_unlock 0 @ MTE2
            mutex_lock 0 @ V  # FP405
            exp y <- tile @ V

Good
----

    kernel always_unlocked():
        buffer tile in Vec

        section vector:
            mutex_lock 0 @ MTE2
            load tile <- x @ MTE2
            mutex_unlock 0 @ MTE2
            mutex_lock 0 @ V
            exp y <- tile @ V
            mutex_unlock 0 @ V

Suppress
--------
`# fencepost: ignore[405] reason`. Mutex ids on the tile group make explicit locks unnecessary.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="405",
    name="mutex-misused",
    title="mutex not locked and unlocked in turn",
    row=Row.COUNTS,
    severity=Severity.ERROR,
    sentence="{mutex}: {detail}",
)
