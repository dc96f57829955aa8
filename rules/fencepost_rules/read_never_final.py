"""Does every read of a phased accumulator hand it back with phase Final?

What
----
A matmul ends its sum with `Final`, but no read of the accumulator has `Final`: a `Partial` read waits for the flag
and leaves it set.

Why it hurts
------------
The next matmul with a phase waits for ever, in this kernel or in the next.

Bad
---

    kernel store_is_partial():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Final  # FP803
            store out <- acc @ FIX phase = Partial

Good
----

    kernel store_is_final():
        buffer acc in Acc

        section cube:
            matmul acc <- a, b @ M phase = Final
            store out <- acc @ FIX phase = Final

Suppress
--------
`# fencepost: ignore[803] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="803",
    name="read-never-final",
    title="read never ends in Final",
    row=Row.PHASES,
    severity=Severity.ERROR,
    sentence="{detail}",
)
