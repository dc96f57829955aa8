"""Do both vector sub-cores take part where the cube needs both?

What
----
In `INTRA_BLOCK` a wait of the cube takes one signal from each vector sub-core, and a set of the cube gives one to
each. A sub-core that skips its set or wait, mostly under `if sub == 0`, breaks the pair. With `UNICAST_BLOCK` only
the named sub-core counts.

Why it hurts
------------
The cube waits for ever for the missing half, or the idle sub-core keeps signals that nobody takes.

Bad
---

    kernel only_one_signals():
        FULL = 0
        buffer p in Mat

        section vector:
            if sub == 0:
                insert p <- h @ MTE3
                set_cross_core FULL @ MTE3  # FP601

        section cube:
            wait_cross_core FULL @ MTE1
            move left <- p @ MTE1

Consequences: 301, 401

Good
----

    kernel one_writes_both_signal():
        FULL = 0
        buffer p in Mat

        section vector:
            if sub == 0:
                insert p <- h @ MTE3
            set_cross_core FULL @ MTE3

        section cube:
            wait_cross_core FULL @ MTE1
            move left <- p @ MTE1

Suppress
--------
`# fencepost: ignore[601] reason`; the hang in row 3 needs the same.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="601",
    name="sub-core-missing",
    title="a sub-core does not take part",
    row=Row.PARTICIPANTS,
    severity=Severity.ERROR,
    sentence=(
        "{agent} takes part in {channel} less often than {other_agent} ({count} against {other_count}), but both "
        "are needed"
    ),
)
