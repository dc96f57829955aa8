"""Does the loop have both lists?

What
----
The loop has `stage` or `order`, but not the other.

Why it hurts
------------
Raw annotations of this kind are rejected by the compiler. `T.Pipelined` drops a lone list without a word, and the
loop is not pipelined the way it says.

Bad
---

    kernel stage_alone(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1)):  # FP908
                copy s <- a @ S
                store out <- s @ S

Good
----

    kernel stage_and_order(n):
        buffer s in Mat

        section cube:
            for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                copy s <- a @ S
                store out <- s @ S

Suppress
--------
The compiler rejects the loop in any case. For another compiler: `# fencepost: ignore[908] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="908",
    name="lone-annotation",
    title="only one of stage and order",
    row=Row.PIPELINE,
    severity=Severity.ERROR,
    sentence="{detail}",
)
