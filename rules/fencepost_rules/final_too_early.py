"""Does the last matmul of each sum, and no earlier one, have phase Final?

What
----
A matmul with `Final` is followed by another that adds to the same sum. The read waits only for the `Final`, so it
takes the sum without the rest.

Why it hurts
------------
The result lacks its last blocks. Nothing hangs.

Bad
---

    kernel final_one_block_early():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Final  # FP807
            matmul_acc acc <- acc, c, d @ M phase = Partial
            store out <- acc @ FIX phase = Final

Good
----

    kernel final_on_the_last_block():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Partial
            matmul_acc acc <- acc, c, d @ M phase = Final
            store out <- acc @ FIX phase = Final

Suppress
--------
`# fencepost: ignore[807] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="807",
    name="final-too-early",
    title="Final before the last partial write",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
