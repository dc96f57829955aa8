"""Does every consumer wait for one asynchronous stage only?

What
----
A statement reads what two asynchronous stages have brought in. A wait names one of them.

Why it hurts
------------
The compiler rejects the loop. It does not look at consumers that are asynchronous themselves.

Bad
---

    kernel copies_in_two_stages(n):
        buffer left in Mat
        buffer right in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 1, 2), order = (0, 1, 2), async_stages = (0, 1)):
                copy left <- a @ S
                copy right <- b @ S
                gemm c <- left, right @ S  # FP909

Good
----

    kernel copies_in_one_stage(n):
        buffer left in Mat
        buffer right in Mat
        buffer c in Acc

        section cube:
            for k in pipelined(0, n, stage = (0, 0, 1), order = (0, 1, 2), async_stages = (0)):
                copy left <- a @ S
                copy right <- b @ S
                gemm c <- left, right @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[909] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="909",
    name="two-async-stages",
    title="consumer of two async stages",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
