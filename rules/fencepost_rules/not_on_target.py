"""Does the target have the modes and features that are used?

What
----
`UNICAST_BLOCK` signals and mutexes exist on a5 only. The kernel uses one of them on another target.

Why it hurts
------------
The kernel does not compile, or the signal goes to both sub-cores, or the lock locks nothing.

Bad
---

    kernel one_sub_core_on_a3():
        target a3
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX lanes = 0
            set_cross_core READY @ FIX mode = UNICAST_BLOCK  # FP605

        section vector:
            if sub == 0:
                wait_cross_core READY @ V mode = UNICAST_BLOCK  # FP605
                exp y <- tile @ V

Good
----

    kernel both_sub_cores_on_a3():
        target a3
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX lanes = 0
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            if sub == 0:
                exp y <- tile @ V

Suppress
--------
If the kernel is never built for this target, check it with `--target`, or name the target in the kernel.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="605",
    name="not-on-target",
    title="mode or feature not on this target",
    row=Row.PARTICIPANTS,
    severity=Severity.ERROR,
    sentence="{detail}",
)
