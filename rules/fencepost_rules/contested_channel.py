"""Does one ordered sequence of operations set, and one await, each channel?

What
----
Two pipes that nothing orders set one channel, or both wait on it. A wait counts as ordered behind another only by
what its pipe knew before its own signal came. The signals then go to whoever comes first. This is an error if two
schedules differ in a property, and a warning otherwise.

Why it hurts
------------
One pipe takes the signal that was meant for the other, which then waits for ever or goes ahead too early, depending
on timing.

Bad
---

    kernel drain_on_another_pipe():
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            wait_cross_core RELEASE @ FIX
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            wait_cross_core RELEASE @ M  # FP307

        section vector:
            set_cross_core RELEASE @ V
            wait_cross_core READY @ V
            exp y <- tile @ V
            set_cross_core RELEASE @ V

Good
----

    kernel drain_on_the_same_pipe():
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            wait_cross_core RELEASE @ FIX
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            wait_cross_core RELEASE @ FIX

        section vector:
            set_cross_core RELEASE @ V
            wait_cross_core READY @ V
            exp y <- tile @ V
            set_cross_core RELEASE @ V

Suppress
--------
If it does not matter which pipe goes first (two drains, say):
`# fencepost: ignore[307] both waits only drain the channel`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="307",
    name="contested-channel",
    title="unordered pipes contest a channel",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence=(
        "{first} and {second} are on unordered pipes and contest {channel} ({what}): which signal is which is not"
        " determined"
    ),
)
