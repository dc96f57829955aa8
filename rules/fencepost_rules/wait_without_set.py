"""Is there a set for every wait?

What
----
A wait is reached that no set of the peer can satisfy: nobody signals this id in this direction, or not often enough.
The usual causes are a wrong id, a wait too many, a set inside a branch that is not taken, or a set on the wrong core
kind.

Why it hurts
------------
The pipe stalls for ever and the kernel hangs. The device reports a time-out after seconds or minutes, without saying
where.

Bad
---

    kernel nobody_answers():
        READY = 0
        DONE = 1
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            wait_cross_core DONE @ FIX  # FP301

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V

Consequences: 401

Good
----

    kernel the_vector_answers():
        READY = 0
        DONE = 1
        buffer tile in Vec

        section cube:
            move tile <- x @ FIX
            set_cross_core READY @ FIX
            wait_cross_core DONE @ FIX

        section vector:
            wait_cross_core READY @ V
            exp y <- tile @ V
            set_cross_core DONE @ V

Suppress
--------
If the set is in a kernel that runs beside this one: `# fencepost: ignore[301, 401] set by the other kernel`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="301",
    name="wait-without-set",
    title="wait that no set satisfies",
    row=Row.PAIRING,
    severity=Severity.ERROR,
    sentence="{sync} waits for ever: it is wait number {rank} on {channel}, and the number of sets is {sets}",
)
