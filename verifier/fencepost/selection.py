"""Which findings count, by the wish of the command line or the configuration?

Findings that do not count stay in the report, marked with one of the reasons below.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fencepost.findings import Finding, KernelReport, Severity
from fencepost.options import CheckOptions

NOT_SELECTED = "not selected"
IGNORED = "ignored by configuration"
IN_BASELINE = "in the baseline"
EXTERNAL = frozenset({NOT_SELECTED, IGNORED, IN_BASELINE})
"""Reasons that do not come from a comment in the source."""


def select(kernel: KernelReport, options: CheckOptions) -> KernelReport:
    """Mark the findings that `select` and `ignore` leave out."""

    def mark(finding: Finding) -> Finding:
        if finding.suppressed is not None:
            return finding
        if options.select and not _matches(finding.code, options.select):
            return replace(finding, suppressed=NOT_SELECTED)
        if _matches(finding.code, options.ignore):
            return replace(finding, suppressed=IGNORED)
        return finding

    return replace(kernel, findings=tuple(map(mark, kernel.findings)))


def apply_severities(kernel: KernelReport, options: CheckOptions) -> KernelReport:
    """Replace the severities of the codes that the user gave one."""
    wanted = dict(options.severity)

    def level(finding: Finding) -> Severity:
        """That of the code, or of its longest beginning."""
        found = (wanted.get(finding.code[:n]) for n in (3, 2, 1))
        return next((severity for severity in found if severity is not None), finding.severity)

    if not wanted:
        return kernel
    return replace(kernel, findings=tuple(replace(f, severity=level(f)) for f in kernel.findings))


def _matches(code: str, prefixes: Iterable[str]) -> bool:
    return any(code.startswith(prefix) for prefix in prefixes)
