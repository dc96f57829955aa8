"""Do comments accept exactly the findings that they name?"""

from __future__ import annotations

from dataclasses import replace

from fencepost.findings import Check, Finding, KernelReport, Report, Row, Severity, Verdict
from fencepost.ir import Span
from fencepost.suppress import apply, suppressions
from fencepost.verdicts import ExitStatus, exit_status


def finding(line: int, code: str = "206", file: str = "a.kir") -> Finding:
    return Finding(code, "name", Row.EVENT_POSITION, Severity.ERROR, "message", Span(file, line, 5, line, 9))


def kernel(*findings: Finding, line: int = 1, verdict: Verdict = Verdict.REFUTED) -> KernelReport:
    check = Check(Row.EVENT_POSITION, verdict, "")
    return KernelReport("k", "a.kir", line, "a5", verdict, 0.0, (), (), (check,), findings)


def codes(kernels: tuple[KernelReport, ...]) -> list[tuple[str, str | None]]:
    return [(f.code, f.suppressed) for k in kernels for f in k.findings]


def test_a_comment_on_the_line() -> None:
    text = "kernel k():\n    set 1 @ V  # fencepost: ignore[206] cleared at launch\n"
    (done,) = apply([kernel(finding(2))], text, "a.kir")
    assert codes((done,)) == [("206", "cleared at launch")]
    assert exit_status(Report((done,))) is ExitStatus.CLEAN


def test_a_comment_alone_speaks_of_the_next_line_of_code() -> None:
    text = "kernel k():\n    # fencepost: ignore[FP206] cleared\n\n    # more words\n    set 1 @ V\n"
    assert codes(apply([kernel(finding(5))], text, "a.kir")) == [("206", "cleared")]


def test_other_codes_and_other_lines_are_not_accepted() -> None:
    text = "set 1 @ V  # fencepost: ignore[302, 205] why\nset 2 @ V\n"
    done = apply([kernel(finding(1), finding(2, "302"))], text, "a.kir")
    assert codes(done) == [("206", None), ("302", None), ("002", None)]


def test_several_codes() -> None:
    text = "set 1 @ V  # fencepost: ignore[206, FP302] why\n"
    assert codes(apply([kernel(finding(1), finding(1, "302"))], text, "a.kir")) == [("206", "why"), ("302", "why")]


def test_a_suppression_without_a_reason_is_a_warning() -> None:
    done = apply([kernel(finding(1))], "set 1 @ V  # fencepost: ignore[206]\n", "a.kir")
    assert codes(done) == [("206", "no reason given"), ("001", None)]
    assert done[0].findings[1].severity is Severity.WARNING
    assert exit_status(Report(done)) is ExitStatus.CLEAN


def test_a_suppression_of_nothing_is_a_warning_unless_the_row_is_open() -> None:
    text = "set 1 @ V  # fencepost: ignore[206] why\n"
    (warning,) = apply([kernel(verdict=Verdict.PROVED)], text, "a.kir")[0].findings
    assert (warning.code, warning.span) == ("002", Span("a.kir", 1, 12, 1, 40))
    assert codes(apply([kernel(verdict=Verdict.UNKNOWN)], text, "a.kir")) == []


def test_a_suppression_without_codes_accepts_nothing() -> None:
    done = apply([kernel(finding(1))], "set 1 @ V  # fencepost: ignore everything\n", "a.kir")
    assert codes(done) == [("206", None), ("002", None)]


def test_codes_that_no_rule_has_are_told_also_beside_good_ones() -> None:
    text = "set 1 @ V  # fencepost: ignore[206, 999, FP2, 20x, 000] cleared\n"
    (done,) = apply([kernel(finding(1))], text, "a.kir")
    assert codes((done,)) == [("206", "cleared"), *[("002", None)] * 4]
    wrong, beginning, odd, undecided = (f.message for f in done.findings[1:])
    assert "no rule has the code FP999; did you mean FP9" in wrong
    assert "a comment names whole codes; FP2 is none" in beginning
    assert "no rule has the code FP20X; did you mean FP20" in odd
    assert "FP000 stands for undecided rows" in undecided


def test_a_comment_with_unknown_codes_only() -> None:
    done = apply([kernel(finding(1))], "set 1 @ V  # fencepost: ignore[999]\n", "a.kir")
    assert codes(done) == [("206", None), ("002", None)]


def test_a_call_site_accepts_what_the_helper_does() -> None:
    helper = replace(finding(9), span=Span("a.kir", 9, 1, 9, 5, via=(Span("a.kir", 1, 1, 1, 9),)))
    text = "set 1 @ V  # fencepost: ignore[206] why\n"
    assert codes(apply([kernel(helper)], text, "a.kir")) == [("206", "why")]


def test_one_comment_in_a_shared_helper_serves_two_kernels() -> None:
    text = "set 1 @ V  # fencepost: ignore[206] why\n"
    done = apply([kernel(finding(1)), kernel(line=5, verdict=Verdict.PROVED)], text, "a.kir")
    assert codes(done) == [("206", "why")]


def test_strings_are_not_comments() -> None:
    python = 'x = "# fencepost: ignore[206] no"\ny = 1  # fencepost: ignore[302] yes\n'
    assert [c.codes for c in suppressions(python, "a.py")] == [("302",)]
    kir = 'unsupported "# fencepost: ignore[206] no"  # fencepost: ignore[302] yes\n'
    assert [c.codes for c in suppressions(kir, "a.kir")] == [("302",)]
    assert suppressions('x = """ # fencepost: ignore[1]', "a.py") == ()


def test_the_warning_goes_to_the_kernel_around_the_comment() -> None:
    text = "\n" * 6 + "set 1 @ V  # fencepost: ignore[206] why\n"
    first, second = apply(
        [kernel(line=1, verdict=Verdict.PROVED), kernel(line=5, verdict=Verdict.PROVED)], text, "a.kir"
    )
    assert (len(first.findings), len(second.findings)) == (0, 1)
