"""Does each operation take a phase of its own family?

What
----
The matmul family takes an AccPhase; stores and moves take an STPhase. The values have the same names, so the wrong
one is easily written.

Why it hurts
------------
The two families have different encodings. The operation runs with a phase that nobody meant.

Bad
---

    kernel accumulator_phase_on_a_store():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = AccPhase.Final
            store out <- acc @ FIX phase = AccPhase.Final  # FP804

Good
----

    kernel store_phase_on_a_store():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = AccPhase.Final
            store out <- acc @ FIX phase = STPhase.Final

Suppress
--------
`# fencepost: ignore[804] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="804",
    name="wrong-phase-family",
    title="phase of the wrong family",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
