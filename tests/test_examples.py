"""Do the examples give the reports that stand beside them, and does the README show one of them?"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import fencepost
from fencepost.report import text
from fencepost.verdicts import ExitStatus, exit_status

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.suffix in (".kir", ".py"))
FAULTY = {"attention_two_slots", "early_ready", "nobody_starts", "row_sums", "running_maximum", "scores_not_drained"}
SHOWN = "scores_not_drained"
_BLOCK = re.compile(r"(?<=<!-- report -->\n```\n).*?(?=```\n<!-- end -->)", re.DOTALL)
_SECONDS = re.compile(r"   [\d.]+ s$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@cache
def report_of(path: Path) -> tuple[str, ExitStatus]:
    """The text report of an example without its times, as seen from the top of the checkout."""
    report = fencepost.check(path.relative_to(ROOT), timeout=300)
    return _SECONDS.sub("", text.render(report)), exit_status(report)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_recorded_report(path: Path, golden) -> None:  # type: ignore[no-untyped-def]
    found, _ = report_of(path)
    golden.check(path.with_suffix(".txt"), found)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_faulty_examples_are_refuted_and_the_others_proved(path: Path) -> None:
    _, status = report_of(path)
    assert status is (ExitStatus.FINDINGS if path.stem in FAULTY else ExitStatus.CLEAN)


def test_the_readme_shows_a_real_report(golden) -> None:  # type: ignore[no-untyped-def]
    found, _ = report_of(ROOT / "examples" / f"{SHOWN}.kir")
    readme = ROOT / "README.md"
    before = readme.read_text("utf-8")
    assert _BLOCK.search(before), "the README has lost its report"
    golden.check(readme, _BLOCK.sub(lambda _: found, before, count=1))
