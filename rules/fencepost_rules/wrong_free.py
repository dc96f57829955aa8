"""Is each popped message freed once, after its last use?

What
----
A popped message is used after its slot was freed, freed without being popped, or never freed. On a2 and a3 the slot
is free again at the pop and `tfree` does nothing, so only a5 suffers: there it is an error, on a2 and a3 a use after
the free is a warning and a missing free is fine.

Why it hurts
------------
After the free the sender writes the next message into the slot, and a late read sees it. A slot that is never freed
is missing from the ring: sooner or later a push hangs.

Bad
---

    kernel free_then_read():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a

        section vector:
            s <- tpop_from_aic
            tfree_to_aic s
            exp e <- s @ V  # FP707

Good
----

    kernel read_then_free():
        fifo down: cube -> vector, slots = 2

        section cube:
            matmul a <- q, k @ M
            tpush_to_aiv a

        section vector:
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s

Suppress
--------
If the sender pushes nothing after it: `# fencepost: ignore[707] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="707",
    name="wrong-free",
    title="message slot freed too early, or not freed",
    row=Row.FIFO,
    severity=Severity.ERROR,
    sentence="{detail}",
)
