"""Does the target have the unit_flag that phases need?

What
----
Phases drive the unit_flag of an accumulator, which only a5 has. The kernel gives a phase on another target.

Why it hurts
------------
The phase is rejected or ignored. If it is ignored, nothing orders the matmul and the store.

Bad
---

    kernel phases_on_a3():
        target a3
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Final  # FP805
            store out <- acc @ FIX phase = Final

Good
----

    kernel flags_on_a3():
        target a3
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M
            sync_src 0: M -> FIX
            sync_dst 0: M -> FIX
            store out <- acc @ FIX

Suppress
--------
If the kernel is never built for this target, check it with `--target`, or name the target in the kernel.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="805",
    name="phase-not-on-target",
    title="phase on a target without unit_flag",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
