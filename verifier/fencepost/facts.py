"""Facts: what was observed about a kernel that a rule can turn into a finding?

A fact names the code of the rule that words it and fills the blanks of the rule's sentence.  Facts come from concrete
runs (`fencepost.diagnose`), from the text of the kernel, or from the comparison of several shapes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from fencepost.findings import Related, Severity
from fencepost.ir import Span


@dataclass(frozen=True, slots=True)
class Fact:
    """One observed defect.

    `values` fill the blanks of the rule's sentence.  `cause` is equal for facts (of several rows) with one cause.
    `severity` overrides the rule's own (a pairing that is only suspicious, say).  `static`: true of the text itself,
    whatever the parameters.

    Two fields tie a fact to the run that shows it: `operations` are the operations involved, as (agent, number in its
    program), the one that goes wrong last; `faults` the faults of the run (`diagnose.repair.signature`) that it names.
    """

    code: str
    span: Span
    values: tuple[tuple[str, str], ...]
    related: tuple[Related, ...] = ()
    cause: Hashable = None
    severity: Severity | None = None
    static: bool = False
    operations: tuple[tuple[str, int], ...] = ()
    faults: frozenset[Hashable] = frozenset()

    @property
    def key(self) -> tuple[str, Hashable]:
        """Equal for the same defect seen at different parameter values: the cause, or else the place."""
        return self.code, self.span if self.cause is None else self.cause
