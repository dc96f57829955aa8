"""Is each write of a slot ordered after every read of the value that it destroys?

What
----
A slot is used again, and no chain leads from the read of the old tile to the write of the new one. A RELEASE signal
is the usual chain, but any other will do: a kernel with READY signals only is right when a later READY of the
consumer comes before the next write.

Why it hurts
------------
A fast producer destroys a tile that the consumer is still reading. It shows only when the consumer is slower than
usual, and only from the round on in which the first slot is used again.

Bad
---

    kernel ready_only():
        READY = 0
        buffer tile in Vec

        section cube:
            for t in range(2):
                move tile <- x @ FIX  # FP202
                set_cross_core READY @ FIX

        section vector:
            for t in range(2):
                wait_cross_core READY @ V
                exp y <- tile @ V

Good
----

    kernel ready_and_release():
        READY = 0
        RELEASE = 1
        buffer tile in Vec

        section cube:
            for t in range(2):
                wait_cross_core RELEASE @ FIX
                move tile <- x @ FIX
                set_cross_core READY @ FIX
            wait_cross_core RELEASE @ FIX

        section vector:
            set_cross_core RELEASE @ V
            for t in range(2):
                wait_cross_core READY @ V
                exp y <- tile @ V
                set_cross_core RELEASE @ V

Suppress
--------
`# fencepost: ignore[202] reason`. "It never happened so far" is not a reason; an order that the model does not know
is.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="202",
    name="overwrite-not-ordered",
    title="overwrite not ordered after a read",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence="{writer} may overwrite slot {slot} of {buffer} while {reader} still reads it",
)
