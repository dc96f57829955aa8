"""Does every `assert` of the kernel hold whenever it is reached?

What
----
An `assert` of the kernel text is reached with a condition that is false. Asserts are checked for all parameter
values, like everything else; `assume` is the way to state a fact that is taken for granted.

Why it hurts
------------
The author relied on something that the kernel does not guarantee. On the device asserts are usually compiled out.

Bad
---

    kernel whole_rows(n):
        assume n >= 0

        section vector:
            assert n % 2 == 0  # FP105
            add y <- x, one @ V

Good
----

    kernel whole_rows(n):
        assume n >= 0
        assume n % 2 == 0

        section vector:
            assert n % 2 == 0
            add y <- x, one @ V

Suppress
--------
If callers guarantee the condition, state it as `assume`, which the report prints. Otherwise:
`# fencepost: ignore[105] reason`.
"""

from fencepost.findings import Row, Severity
from fencepost_rules.rule import Rule

RULE = Rule(
    code="105",
    name="false-assert",
    title="assert is false",
    row=Row.SLOT_MAPPING,
    severity=Severity.ERROR,
    sentence="assertion fails on {agent}: {condition} is false",
)
