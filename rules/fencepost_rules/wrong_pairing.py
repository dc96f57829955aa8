"""Does each wait take the signal of its own slot and round?

What
----
The counts agree, but the k-th set and the k-th wait of a channel speak of different slots or rounds. Ids need not
follow the slots as long as rounds agree and every access is ordered; where rounds are not annotated this is an error
only together with an unordered access, a hang or a leftover.

Why it hurts
------------
The signal that arrives is about another tile, so the access behind the wait is not protected by it.

Bad
---

    kernel ids_swapped():
        S_READY = 0
        W_READY = 1
        buffer s in Vec
        buffer w in Vec

        section cube:
            move s <- a @ FIX
            set_cross_core S_READY @ FIX
            move w <- b @ FIX
            set_cross_core W_READY @ FIX

        section vector:
            wait_cross_core S_READY @ V  # FP303
            scale y <- w @ V
            wait_cross_core W_READY @ V
            add z <- s, y @ V

Consequences: 201

Good
----

    kernel ids_straight():
        S_READY = 0
        W_READY = 1
        buffer s in Vec
        buffer w in Vec

        section cube:
            move s <- a @ FIX
            set_cross_core S_READY @ FIX
            move w <- b @ FIX
            set_cross_core W_READY @ FIX

        section vector:
            wait_cross_core W_READY @ V
            scale y <- w @ V
            wait_cross_core S_READY @ V
            add z <- s, y @ V

Suppress
--------
If the pairing is intended, write the rounds with `task =`; then it is judged by them. Otherwise:
`# fencepost: ignore[303] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="303",
    name="wrong-pairing",
    title="wait paired with another slot or round",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence="{sync} takes a signal on {channel} that was set for another slot or round: {detail}",
)
