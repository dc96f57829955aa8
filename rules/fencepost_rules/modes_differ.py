"""Do both ends of a pair name the same mode?

What
----
The set of a pair is in one mode and its wait in another, such as `INTRA_BLOCK` and `UNICAST_BLOCK`. Modes route
signals differently: INTRA speaks to both vector sub-cores, UNICAST to one, and the INTER modes to peers of the same
kind.

Why it hurts
------------
What the hardware does then is not defined. In a test on one core it may work by luck, because the modes share
counters.

Bad
---

    kernel two_modes():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V mode = UNICAST_BLOCK  # FP304
            exp y <- tile @ V

Good
----

    kernel one_mode():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Suppress
--------
If the mode is known to be ignored on the target: `# fencepost: ignore[304] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="304",
    name="modes-differ",
    title="set and wait name different modes",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence="the two ends of {channel} name different modes: {mode} and {other_mode}",
)
