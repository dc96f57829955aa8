"""How does a report look as a page of its own, in a browser, on a phone, or printed?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fencepost import __version__
from fencepost.findings import Finding, InputError, KernelReport, Report, Verdict
from fencepost.report import svg, wording
from fencepost.report.excerpt import call_path, caret, excerpt
from fencepost.report.style import Style, safe
from fencepost.resources import resource

_LINES = 4000  # a longer source is not shown in full

View = dict[str, object]


def render(report: Report) -> str:
    """Return the page."""
    import jinja2
    import markupsafe

    loader = jinja2.FileSystemLoader(resource("reports/templates"))
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("report.html.j2").render(
        summary=wording.summary(report),
        kernels=[_kernel(kernel, f"kernel-{number}") for number, kernel in enumerate(report.kernels, 1)],
        errors=[_error(error) for error in report.errors],
        sources=list(_sources(report)),
        lane_style=markupsafe.Markup(svg.STYLE),
        version=__version__,
    )


def _tone(verdict: Verdict) -> str:
    return "na" if verdict is Verdict.NOT_APPLICABLE else verdict.value


def _kernel(kernel: KernelReport, anchor: str) -> View:
    return {
        "anchor": anchor,
        "name": safe(kernel.name),
        "place": safe(f"{kernel.file}:{kernel.line}"),
        "target": kernel.target,
        "tone": _tone(kernel.verdict),
        "headline": safe(wording.headline(kernel)),
        "seconds": wording.seconds(kernel.seconds),
        "assumptions": [safe(text) for text in wording.further_assumptions(kernel)],
        "rows": [
            {
                "label": wording.row_label(check),
                "tone": _tone(check.verdict),
                "verdict": check.verdict.value,
                "evidence": safe(check.evidence),
            }
            for check in kernel.checks
        ],
        "undecided": [
            safe(f"{titles} ({wording.place(span)}): {reason}")
            for span, reason, titles in wording.undecided_together(kernel)
        ],
        "findings": [_finding(finding, kernel) for finding in kernel.findings],
    }


def _finding(finding: Finding, kernel: KernelReport) -> View:
    import markupsafe

    lines = [*excerpt(finding, kernel.file, kernel.source, Style()), *call_path(finding.span)]
    return {
        "code": wording.code(finding),
        "severity": finding.severity.value,
        "counts": wording.counts(finding),
        "name": safe(finding.name),
        "message": safe(finding.message),
        "place": safe(wording.place(finding.span)),
        "witness": safe(wording.witness(finding)) if finding.witness is not None else "",
        "suppressed": None if finding.suppressed is None else safe(finding.suppressed),
        "excerpt": "\n".join(lines),
        "drawing": markupsafe.Markup(svg.drawing(finding.trace, finding.links)) if finding.trace else "",
    }


def _error(error: InputError) -> View:
    where = f"{error.file}:{error.line}:{error.column}" if error.line else error.file
    return {
        "place": safe(where),
        "message": safe(error.message),
        "caret": "\n".join(caret(error.excerpt, error.column)),
    }


def _sources(report: Report) -> Iterator[View]:
    """Each file that has findings, once, with the codes on their lines."""
    texts: dict[str, str] = {}
    codes: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for kernel in report.kernels:
        for finding in kernel.findings:
            if finding.span.file == kernel.file and kernel.source:
                texts[kernel.file] = kernel.source
                codes[kernel.file][finding.span.line].add(wording.code(finding))
    for file, text in texts.items():
        lines = text.split("\n")
        if len(lines) > _LINES:
            continue
        margin = len(str(len(lines)))
        yield {
            "file": safe(file),
            "lines": [
                {
                    "text": f"{number:>{margin}} | {safe(line.replace(chr(9), '    '))}",
                    "codes": " ".join(sorted(codes[file].get(number, ()))),
                }
                for number, line in enumerate(lines, 1)
            ],
        }
