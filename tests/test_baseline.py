"""Does a baseline accept the old findings and no new one?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import baseline
from fencepost.findings import Report
from fencepost.verdicts import ExitStatus, exit_status


def only_refuted(report: Report) -> Report:
    return Report((replace(report.kernels[0], checks=(), unknown=()),))


def test_old_findings_are_accepted_wherever_they_moved(tmp_path: Path, sample_report: Report) -> None:
    report = only_refuted(sample_report)
    path = tmp_path / "base.json"
    assert baseline.write(report, path) == 2, "the suppressed finding is accepted already"
    kernel = report.kernels[0]
    moved = replace(
        kernel,
        source="# a new line\n" + kernel.source,
        findings=tuple(
            replace(f, span=replace(f.span, line=f.span.line + 1, end_line=f.span.end_line + 1))
            for f in kernel.findings
        ),
    )
    accepted = baseline.apply(Report((moved,)), baseline.read(path))
    assert [f.suppressed for f in accepted.kernels[0].findings] == [baseline.IN_BASELINE] * 2 + ["lanes are equal"]
    assert exit_status(accepted) is ExitStatus.CLEAN


def test_a_second_finding_on_an_equal_line_is_new(tmp_path: Path, sample_report: Report) -> None:
    report = only_refuted(sample_report)
    path = tmp_path / "base.json"
    baseline.write(report, path)
    kernel = report.kernels[0]
    twice = Report((replace(kernel, findings=(kernel.findings[0], *kernel.findings)),))
    accepted = baseline.apply(twice, baseline.read(path))
    assert [f.suppressed is None for f in accepted.kernels[0].findings] == [False, True, False, False]
    assert exit_status(accepted) is ExitStatus.FINDINGS


def test_what_another_baseline_accepts_is_written_too(tmp_path: Path, sample_report: Report) -> None:
    report = only_refuted(sample_report)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    baseline.write(report, first)
    assert baseline.write(baseline.apply(report, baseline.read(first)), second) == 2
    assert second.read_text() == first.read_text()


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "nonsense", '{"fencepost_baseline": 1, "findings": [1]}', "[" * 100000]
)
def test_another_file_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="is not a baseline"):
        baseline.read(path)
