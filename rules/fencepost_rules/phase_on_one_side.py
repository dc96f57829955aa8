"""Do both sides of an accumulator hand-over use a phase, or neither?

What
----
A matmul has a phase and the read of its accumulator has none, or the other way round. A phase removes the automatic
order between M and FIX for this accumulator, and the side without a phase does not look at the flag.

Why it hurts
------------
The store reads the accumulator before the sum is complete: a stale or half-finished tile. The flag is left as it is,
and the next operation with a phase may wait for ever.

Bad
---

    kernel store_without_phase():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Final
            store out <- acc @ FIX  # FP801

Consequences: 208

Good
----

    kernel both_with_phase():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Final
            store out <- acc @ FIX phase = Final

Suppress
--------
If a flag or a barrier orders the two, leave the phase away on both sides. Otherwise:
`# fencepost: ignore[801] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="801",
    name="phase-on-one-side",
    title="one side of a hand-over has a phase, the other none",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
