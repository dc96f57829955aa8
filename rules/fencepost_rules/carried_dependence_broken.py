"""Does every iteration find what earlier ones left, and nothing of later ones?

What
----
A value goes from one iteration to another through a buffer, or a later iteration overwrites a cell before an earlier
one has read it. Buffers that are local to the loop get several versions; parameters and global memory do not.

Why it hurts
------------
The compiler accepts the loop. From a few trips on statements read the value of the wrong iteration.

Bad
---

    kernel one_cell_in_global_memory(n):
        buffer g in GM

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy g <- a @ S
                store out <- g @ S  # FP921

Good
----

    kernel two_cells_in_global_memory(n):
        buffer g[2] in GM

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy g[k % 2] <- a @ S
                store out <- g[k % 2] @ S

Suppress
--------
`# fencepost: ignore[921] reason`
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="921",
    name="carried-dependence-broken",
    title="loop-carried dependence broken",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
