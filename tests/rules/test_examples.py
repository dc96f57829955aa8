"""Does every bad example raise exactly its own code where it is marked, and is every good example proved?

A bad example may also raise the codes that its page lists as consequences, and must raise each of them.
"""

from __future__ import annotations

import pytest

from fencepost.checking import check
from fencepost.findings import Finding, Verdict
from fencepost_rules import rules
from fencepost_rules.page import without_marks
from fencepost_rules.rule import Rule

EVERY = pytest.mark.parametrize("known", rules(), ids=lambda known: known.code)


def findings(text: str, prove: bool = False) -> tuple[Verdict, tuple[Finding, ...]]:
    report = check(text, prove=prove)
    assert not report.errors
    (kernel,) = report.kernels
    return kernel.verdict, kernel.findings


@EVERY
def test_bad_example_raises_its_code_on_the_marked_lines(known: Rule) -> None:
    page = known.page()
    _, found = findings(page.bad)
    own = sorted((f.span.line, f.severity.value) for f in found if f.code == known.code)
    assert own == [(line, known.severity.value) for line in page.marked_lines(known.code)], listing(found)
    assert {f.code for f in found if f.code != known.code} == set(page.consequences), listing(found)


@EVERY
def test_good_example_is_proved(known: Rule) -> None:
    verdict, found = findings(known.page().good, prove=True)
    assert not found, listing(found)
    assert verdict is Verdict.PROVED


@EVERY
def test_marks_are_only_comments(known: Rule) -> None:
    bad = known.page().bad
    assert "# FP" not in without_marks(bad)
    with_marks, without = findings(bad), findings(without_marks(bad))
    assert [(f.code, f.span.line, f.message) for f in with_marks[1]] == [
        (f.code, f.span.line, f.message) for f in without[1]
    ]


def listing(found: tuple[Finding, ...]) -> str:
    return "\n".join(f"line {f.span.line}: FP{f.code} {f.message}" for f in found) or "no finding"
