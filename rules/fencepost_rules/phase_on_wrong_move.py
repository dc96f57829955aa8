"""Do only moves from Acc to Vec, without an offset, have a phase?

What
----
A `move` takes a phase only when it goes from an accumulator to vector memory, and then not together with an offset.

Why it hurts
------------
The instruction has no room for both, and other moves have no flag to wait for. The phase is dropped, and the order
with it.

Bad
---

    kernel phase_and_offset():
        buffer acc in Acc
        buffer tile in Vec

        section cube:
            matmul acc <- a, b @ M phase = Final
            move tile <- acc @ FIX phase = Final offset  # FP806

Good
----

    kernel phase_without_offset():
        buffer acc in Acc
        buffer tile in Vec

        section cube:
            matmul acc <- a, b @ M phase = Final
            move tile <- acc @ FIX phase = Final

Suppress
--------
`# fencepost: ignore[806] reason`; a `subview` of the destination replaces the offset.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="806",
    name="phase-on-wrong-move",
    title="phase on a move that cannot have one",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
