"""Does every sum that is read with a phase end in a matmul with phase Final?

What
----
The read waits for the flag that a matmul with `Final` sets, but for some trip counts every matmul of the sum is only
`Partial`. The classic is `if first ... elif last ...` with a single block, which is both and takes the first branch.

Why it hurts
------------
The store waits for ever.

Bad
---

    kernel one_block_is_first_and_last(K):
        assume K >= 1
        buffer acc in Acc

        section cube:
            for k in range(K):
                if k == 0:
                    matmul acc <- a, b @ M phase = Partial
                elif k == K - 1:
                    matmul_acc acc <- acc, a, b @ M phase = Final
                else:
                    matmul_acc acc <- acc, a, b @ M phase = Partial
            store out <- acc @ FIX phase = Final  # FP802

Consequences: 501

Good
----

    kernel one_block_is_final(K):
        assume K >= 1
        buffer acc in Acc

        section cube:
            for k in range(K):
                if k == 0 and k == K - 1:
                    matmul acc <- a, b @ M phase = Final
                elif k == 0:
                    matmul acc <- a, b @ M phase = Partial
                elif k == K - 1:
                    matmul_acc acc <- acc, a, b @ M phase = Final
                else:
                    matmul_acc acc <- acc, a, b @ M phase = Partial
            store out <- acc @ FIX phase = Final

Suppress
--------
If there are always at least two blocks, state it: `assume K >= 2`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="802",
    name="never-final",
    title="accumulation never ends in Final",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
