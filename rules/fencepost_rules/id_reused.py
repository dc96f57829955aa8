"""Is an event id free of other signals when it is used for a new purpose?

What
----
One id in one direction serves two hand-overs, of two buffers say, and a signal of the one can be pending while the
other is set. A counter does not say what it counts.

Why it hurts
------------
The wait for the second takes the signal of the first. Its tile need not be written yet.

Bad
---

    kernel one_id_for_two():
        S_READY = 0
        W_READY = 0
        buffer s in Vec
        buffer w in Vec

        section cube:
            move s <- a @ FIX
            set_cross_core S_READY @ FIX
            move w <- b @ FIX
            set_cross_core W_READY @ FIX

        section vector:
            wait_cross_core W_READY @ V  # FP305
            scale y <- w @ V
            wait_cross_core S_READY @ V
            add z <- s, y @ V

Consequences: 201

Good
----

    kernel two_ids_for_two():
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
If both sides take the signals in one order and every access is ordered, nothing is reported. Otherwise:
`# fencepost: ignore[305] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="305",
    name="id-reused",
    title="id reused while another signal is pending",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence=(
        "{channel} is used for two hand-overs at a time, {first} and {second}: this wait can take one for the other"
    ),
)
