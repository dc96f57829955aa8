"""Does each scheduled statement have one entry in each list?

What
----
`stage`, `order` and the lists of asynchronous producers have one entry for each statement at the top level of the
body. A bind that is computed again at each use has none; lists with an entry for each such bind too are accepted, and
those entries ignored.

Why it hurts
------------
The compiler rejects the loop. An entry too few often means that a statement was added to the body and not to the
lists.

Bad
---

    kernel one_entry_too_few(n):
        buffer s in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):  # FP901
                copy s <- a @ S
                gemm c <- s @ S
                store out <- c @ S

Good
----

    kernel an_entry_each(n):
        buffer s in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 1), order = (0, 1, 2)):
                copy s <- a @ S
                gemm c <- s @ S
                store out <- c @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[901] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="901",
    name="annotation-length",
    title="a list has the wrong length",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
