"""Do the two vector sub-cores keep to their own parts of shared memory?

What
----
Both sub-cores run the vector section. They access the same bytes of the cube's memory or of global memory, at least
one of them writes, and nothing orders them. Usually the index misses `sub`.

Why it hurts
------------
Whichever sub-core is later wins. The half of the tile that only the other one had is lost.

Bad
---

    kernel both_write_all():
        FULL = 0
        buffer p[2] in Mat

        section vector:
            insert p[0] <- h @ MTE3  # FP602
            set_cross_core FULL @ MTE3

        section cube:
            wait_cross_core FULL @ MTE1
            move left <- p[0] @ MTE1

Consequences: 203

Good
----

    kernel each_writes_its_half():
        FULL = 0
        buffer p[2] in Mat

        section vector:
            insert p[sub] <- h @ MTE3
            set_cross_core FULL @ MTE3

        section cube:
            wait_cross_core FULL @ MTE1
            move left <- p[0], p[1] @ MTE1

Suppress
--------
If both sub-cores write the same value: `# fencepost: ignore[602] both write the same scale`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="602",
    name="sub-cores-conflict",
    title="the two sub-cores conflict on the same memory",
    row=Row.PARTICIPANTS,
    severity=Severity.ERROR,
    sentence="{first} and {second} meet in slot {slot} of {buffer}, and nothing orders the two sub-cores",
)
