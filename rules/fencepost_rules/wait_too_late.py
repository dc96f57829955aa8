"""Does each wait come before the first read, or overwrite, that it guards?

What
----
A READY is awaited after the first read of its tile, or a RELEASE after the next overwrite. The pair exists and its
counts agree; it only protects nothing. Moving the wait before the access repairs it.

Why it hurts
------------
As with no wait at all: the access happens too early, depending on timing.

Bad
---

    kernel wait_after_read():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            exp y <- tile @ V
            wait_cross_core READY @ V  # FP205

Good
----

    kernel wait_before_read():
        READY = 0
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Suppress
--------
`# fencepost: ignore[205] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="205",
    name="wait-too-late",
    title="wait after the access it guards",
    row=Row.EVENT_POSITION,
    severity=Severity.ERROR,
    sentence=(
        "{sync} comes after {access}, which it should guard: slot {slot} of {buffer} is used before the signal has come"
    ),
)
