"""Which findings were there before, so that only new ones fail the run?"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePath

from fencepost.findings import Finding, KernelReport, Report
from fencepost.selection import IN_BASELINE

_FORMAT = 1


def fingerprint(finding: Finding, kernel: KernelReport) -> str:
    """A name for a finding that survives edits elsewhere in the file: code, file, kernel and the text of its line."""
    lines = kernel.source.split("\n")
    inside = finding.span.file == kernel.file and 0 < finding.span.line <= len(lines)
    text = " ".join(lines[finding.span.line - 1].split()) if inside else finding.message
    key = "\0".join((finding.code, PurePath(finding.span.file).as_posix(), kernel.name, text))
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]


def write(report: Report, path: Path) -> int:
    """Write the findings of `report` as a baseline; return how many.  Raises OSError.

    Findings that another baseline accepts are written, too; those that comments or the selection leave out are not.
    """
    live = [(f, k) for k in report.kernels for f in k.findings if f.suppressed in (None, IN_BASELINE)]
    counted = Counter(fingerprint(f, k) for f, k in live)
    entries = {
        fingerprint(f, k): {"code": f.code, "file": f.span.file, "kernel": k.name, "message": f.message}
        for f, k in live
    }
    findings = [{"fingerprint": name, "count": counted[name], **entries[name]} for name in sorted(entries)]
    path.write_text(json.dumps({"fencepost_baseline": _FORMAT, "findings": findings}, indent=1) + "\n", "utf-8")
    return len(live)


def read(path: Path) -> Counter[str]:
    """Return how often each fingerprint stands in a baseline.  Raises OSError, and ValueError for another file."""
    try:
        data = json.loads(path.read_text("utf-8"))
        if data["fencepost_baseline"] != _FORMAT:
            raise ValueError(f"{path} is a baseline of another version of fencepost; write it again")
        return Counter({str(entry["fingerprint"]): int(entry["count"]) for entry in data["findings"]})
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError):
        raise ValueError(f"{path} is not a baseline written by fencepost") from None


def apply(report: Report, known: Counter[str]) -> Report:
    """Mark the findings that the baseline holds; each entry accepts as many findings as were counted."""
    left = Counter(known)
    kernels = []
    for kernel in report.kernels:
        findings = []
        for finding in kernel.findings:
            name = fingerprint(finding, kernel)
            if finding.suppressed is None and left[name] > 0:
                left[name] -= 1
                finding = replace(finding, suppressed=IN_BASELINE)
            findings.append(finding)
        kernels.append(replace(kernel, findings=tuple(findings)))
    return replace(report, kernels=tuple(kernels))
