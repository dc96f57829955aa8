"""How does a report look as SARIF 2.1.0, for code scanning services and editors?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from urllib.parse import quote

from fencepost import __version__
from fencepost.baseline import fingerprint
from fencepost.codes import UNDECIDED
from fencepost.explanations import pages
from fencepost.findings import Finding, InputError, KernelReport, Report, Severity, Step, Undecided
from fencepost.ir import Span
from fencepost.report import wording
from fencepost.report.lanes import agents
from fencepost.selection import EXTERNAL

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_UNDECIDED = f"FP{UNDECIDED}"

Json = dict[str, object]


def render(report: Report) -> str:
    """Return the SARIF log; every rule in it carries its page."""
    codes = {finding.code for kernel in report.kernels for finding in kernel.findings}
    return json.dumps(to_dict(report, pages(codes)), indent=2, ensure_ascii=False) + "\n"


def to_dict(report: Report, explanations: Mapping[str, str]) -> Json:
    """Return the SARIF log as plain dictionaries and lists.

    `explanations` maps codes ("206") to the rule's page; a code without one is described by its name alone.
    """
    rules = _rules(report, explanations)
    index = {str(rule["id"]): i for i, rule in enumerate(rules)}
    results: list[Json] = []
    for kernel in report.kernels:
        results.extend(_result(f, kernel, index) for f in kernel.findings)
        results.extend(_undecided(u, kernel, index) for u in wording.undecided(kernel))
    run: Json = {
        "tool": {"driver": {"name": "fencepost", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not report.errors,
                "toolExecutionNotifications": [_notification(error) for error in report.errors],
            }
        ],
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rules(report: Report, explanations: Mapping[str, str]) -> list[Json]:
    seen: dict[str, Finding] = {}
    for kernel in report.kernels:
        for finding in kernel.findings:
            seen.setdefault(finding.code, finding)
    rules = [_rule(finding, explanations.get(code)) for code, finding in sorted(seen.items())]
    if any(wording.undecided(kernel) for kernel in report.kernels):
        text = "A row of the report could not be decided; it counts as not clean."
        rules.append(
            {
                "id": _UNDECIDED,
                "name": "Undecided",
                "shortDescription": {"text": text},
                "defaultConfiguration": {"level": "warning"},
            }
        )
    return rules


def _rule(finding: Finding, page: str | None) -> Json:
    rule: Json = {
        "id": wording.code(finding),
        "name": "".join(word.capitalize() for word in finding.name.replace("-", " ").split()),
        "shortDescription": {"text": finding.name},
        "defaultConfiguration": {"level": _LEVEL[finding.severity]},
        "properties": {"tags": ["synchronisation", finding.row.title]},
    }
    if page:
        rule["help"] = {"text": page, "markdown": f"```text\n{page}\n```"}
    return rule


def _result(finding: Finding, kernel: KernelReport, index: Mapping[str, int]) -> Json:
    identity = wording.code(finding)
    values = f" Smallest: {wording.witness(finding)}." if finding.witness is not None else ""
    result: Json = {
        "ruleId": identity,
        "ruleIndex": index[identity],
        "level": _LEVEL[finding.severity],
        "message": {"text": wording.sentence(finding.message) + values},
        "locations": [_location(finding.span, kernel)],
        "partialFingerprints": {"fencepost/v1": fingerprint(finding, kernel)},
    }
    related = [(r.span, r.message) for r in finding.related]
    related += [(site, "called from here") for site in finding.span.via]
    if related:
        result["relatedLocations"] = [
            {"id": i, **_location(span, kernel), "message": {"text": text}} for i, (span, text) in enumerate(related, 1)
        ]
    if finding.trace:
        result["codeFlows"] = [_code_flow(finding.trace, finding, kernel)]
    if finding.suppressed is not None:
        kind = "external" if finding.suppressed in EXTERNAL else "inSource"
        result["suppressions"] = [{"kind": kind, "justification": finding.suppressed}]
    return result


def _undecided(undecided: Undecided, kernel: KernelReport, index: Mapping[str, int]) -> Json:
    return {
        "ruleId": _UNDECIDED,
        "ruleIndex": index[_UNDECIDED],
        "level": "warning",
        "message": {"text": f"{undecided.row.title} of {kernel.name} is undecided: {undecided.reason}"},
        "locations": [_location(undecided.span, kernel)],
    }


def _code_flow(trace: Iterable[Step], finding: Finding, kernel: KernelReport) -> Json:
    """One thread per agent; `executionOrder` tells how the threads interleave."""
    steps = list(enumerate(trace, 1))
    flows = [
        {
            "id": agent,
            "locations": [
                {
                    "executionOrder": order,
                    "location": {
                        **_location(step.span, kernel),
                        "message": {"text": _step_text(step)},
                    },
                    "importance": "important" if step.state != "done" else "unimportant",
                }
                for order, step in steps
                if step.agent == agent
            ],
        }
        for agent in agents([step for _, step in steps])
    ]
    return {"message": {"text": f"replay of {wording.witness(finding)}"}, "threadFlows": flows}


def _step_text(step: Step) -> str:
    return f"{step.pipe}: {step.text}" + ("" if step.state == "done" else f" ({step.state})")


def _location(span: Span, kernel: KernelReport) -> Json:
    """A location; code scanning refuses results without one, so the kernel's own place stands in."""
    if not span.line:
        span = Span(kernel.file, max(kernel.line, 1))
    region: Json = {"startLine": span.line}
    if span.column:
        region["startColumn"] = span.column
    if span.end_line:
        region["endLine"] = span.end_line
        if span.column and span.end_column:
            region["endColumn"] = span.end_column
    return {
        "physicalLocation": {"artifactLocation": artifact(span.file), "region": region},
        "logicalLocations": [{"name": kernel.name, "kind": "function"}],
    }


def artifact(file: str) -> Json:
    """An artifact location: relative to the source root, or an absolute file URI."""
    path = PurePath(file)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(path.as_posix(), safe="/"), "uriBaseId": "%SRCROOT%"}


def _notification(error: InputError) -> Json:
    notification: Json = {"level": "error", "message": {"text": error.message}}
    place: Json = {"artifactLocation": artifact(error.file)}
    if error.line:
        place["region"] = {"startLine": error.line, **({"startColumn": error.column} if error.column else {})}
    notification["locations"] = [{"physicalLocation": place}]
    return notification
