"""Is each flag between two pipes set and taken in turn, and clear at the end?

What
----
A `sync_src` flag is binary. It is set while it may still be set, or it is still set when the kernel ends.

Why it hurts
------------
The second set merges with the first, so one of the two waits hangs. A flag that stays set satisfies the first wait of
the next kernel that uses its id.

Bad
---

    kernel flag_set_twice():
        buffer a in Vec
        buffer b in Vec

        section vector:
            load a <- x @ MTE2
            sync_src 0: MTE2 -> V
            load b <- y @ MTE2
            sync_src 0: MTE2 -> V  # FP404
            sync_dst 0: MTE2 -> V
            sync_dst 0: MTE2 -> V
            add z <- a, b @ V

Good
----

    kernel a_flag_for_each():
        buffer a in Vec
        buffer b in Vec

        section vector:
            load a <- x @ MTE2
            sync_src 0: MTE2 -> V
            load b <- y @ MTE2
            sync_src 1: MTE2 -> V
            sync_dst 0: MTE2 -> V
            sync_dst 1: MTE2 -> V
            add z <- a, b @ V

Suppress
--------
If flags are known to be cleared between kernels: `# fencepost: ignore[404] flags are cleared at launch`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="404",
    name="flag-misused",
    title="flag set twice or not drained",
    row=Row.COUNTS,
    severity=Severity.ERROR,
    sentence="{flag}: {detail}",
)
