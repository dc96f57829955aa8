"""Can more signals be pending on a channel than its counter holds?

What
----
The setter is not held back, so in some execution it gets so far ahead of the waiter that the counter overflows. A
cross-core counter holds 15.

Why it hurts
------------
The sixteenth signal is lost or wraps the counter to zero. The kernel then hangs or races, far from the cause, and
only when the consumer is slow.

Bad
---

    kernel sixteen_ahead():
        READY = 0
        buffer ws[16] in GM

        section cube:
            for t in range(16):
                store ws[t] <- x @ FIX
                set_cross_core READY @ FIX  # FP402

        section vector:
            for t in range(16):
                wait_cross_core READY @ MTE2
                load y <- ws[t] @ MTE2

Good
----

    kernel one_signal_for_four():
        READY = 0
        buffer ws[16] in GM

        section cube:
            for t in range(16):
                store ws[t] <- x @ FIX
                if t % 4 == 3:
                    set_cross_core READY @ FIX

        section vector:
            for t in range(16):
                if t % 4 == 0:
                    wait_cross_core READY @ MTE2
                load y <- ws[t] @ MTE2

Suppress
--------
If the number of rounds is bounded, state it: `assume n <= 15`. Otherwise: `# fencepost: ignore[402] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="402",
    name="too-many-pending",
    title="more signals pending than the counter holds",
    row=Row.COUNTS,
    severity=Severity.ERROR,
    sentence="up to {pending} signals can be pending on {channel}, which holds {capacity}",
)
