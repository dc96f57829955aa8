"""Do the examples give the reports that stand beside them, and does the README show one of them?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fencepost
from fencepost.report import text
from fencepost.verdicts import ExitStatus, exit_status

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.kir"))
SHOWN = "scores_not_drained"
_BLOCK = re.compile(r"(?<=<!-- report -->\n```\n).*?(?=```\n<!-- end -->)", re.DOTALL)
_SECONDS = re.compile(r"   \d+\.\d\d s$", re.MULTILINE)


def report_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ExitStatus]:
    """The text report of an example without its times, as seen from the top of the checkout."""
    monkeypatch.chdir(ROOT)
    report = fencepost.check(path.relative_to(ROOT))
    return _SECONDS.sub("", text.render(report)), exit_status(report)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_recorded_report(path: Path, golden, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    found, _ = report_of(path, monkeypatch)
    golden.check(path.with_suffix(".txt"), found)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_faulty_examples_are_refuted_and_no_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, status = report_of(path, monkeypatch)
    faulty = path.stem in {"scores_not_drained", "early_ready", "nobody_starts"}
    assert (status is ExitStatus.FINDINGS) == faulty


def test_the_readme_shows_a_real_report(golden, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    found, _ = report_of(ROOT / "examples" / f"{SHOWN}.kir", monkeypatch)
    readme = ROOT / "README.md"
    before = readme.read_text("utf-8")
    assert _BLOCK.search(before), "the README has lost its report"
    golden.check(readme, _BLOCK.sub(lambda _: found, before, count=1))
