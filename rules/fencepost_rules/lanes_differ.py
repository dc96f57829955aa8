"""Do both vector sub-cores push or pop equally often?

What
----
Both sub-cores take part in a ring unless it is declared with `lanes = 1`: a message of the cube goes to both, and the
cube takes a half from each. Here one sub-core pushes or pops more often than the other.

Why it hurts
------------
The cube waits for the half, or the credit, of the sub-core that does not come, or the idle sub-core's half stays in
its ring.

Bad
---

    kernel one_of_two_pops():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a

        section vector:
            if sub == 0:
                s <- tpop_from_aic  # FP708
                exp e <- s @ V
                tfree_to_aic s

Good
----

    kernel one_lane():
        fifo down: cube -> vector, slots = 2, lanes = 1

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a

        section vector:
            if sub == 0:
                s <- tpop_from_aic
                exp e <- s @ V
                tfree_to_aic s

Suppress
--------
`# fencepost: ignore[708] reason`; `lanes = 1` on the ring says it to the compiler as well.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="708",
    name="lanes-differ",
    title="lanes of a ring differ",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
