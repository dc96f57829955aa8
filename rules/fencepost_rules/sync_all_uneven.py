"""Do all agents reach `sync_all` equally often?

What
----
`sync_all` is a barrier of all cores. One agent reaches it less often than another: it stands in one section only, or
under a condition that differs.

Why it hurts
------------
The agents that arrive wait for ever for the one that does not.

Bad
---

    kernel one_sub_core_arrives():
        section cube:
            sync_all  # FP606

        section vector:
            if sub == 0:
                sync_all

Good
----

    kernel all_arrive():
        section cube:
            sync_all

        section vector:
            sync_all

Suppress
--------
`# fencepost: ignore[606] reason`; there is rarely one.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="606",
    name="sync-all-uneven",
    title="sync_all not reached equally often by all agents",
    row=Row.PARTICIPANTS,
    severity=Severity.ERROR,
    sentence="{detail}",
)
