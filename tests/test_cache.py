"""Does the cache give back exactly what was decided, and never an answer to another question?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost import cache
from fencepost.checking import Outcome, check_source
from fencepost.discover import Source
from fencepost.findings import InputError, Report, Severity
from fencepost.options import CheckOptions

KERNEL = """\
kernel one():
    section cube:
        set_cross_core 0 @ FIX
        set_cross_core 0 @ FIX
    section vector:
        wait_cross_core 0 @ V
"""


class Counted:
    """`check_source` that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: object) -> Outcome:
        self.calls += 1
        return check_source(*arguments)  # type: ignore[arg-type]


def test_encoding_keeps_everything(sample_report: Report) -> None:
    outcome = Outcome(sample_report, ("traceback",), frozenset({"k", "l"}), frozenset({"n"}))
    assert cache.decode(Outcome, json.loads(json.dumps(cache.encode(outcome)))) == outcome


def test_the_second_time_nothing_is_checked() -> None:
    check, source = Counted(), Source("k.kir", KERNEL)
    first = cache.through(check, source, CheckOptions(), ())
    second = cache.through(check, source, CheckOptions(), ())
    assert check.calls == 1
    assert first == second
    assert second.report.kernels[0].source == KERNEL


@pytest.mark.parametrize(
    ("source", "options", "only"),
    [
        (Source("other.kir", KERNEL), CheckOptions(), ()),
        (Source("k.kir", KERNEL + "\n"), CheckOptions(), ()),
        (Source("k.kir", KERNEL), CheckOptions(target="a3"), ()),
        (Source("k.kir", KERNEL), CheckOptions(severity=(("302", Severity.NOTE),)), ()),
        (Source("k.kir", KERNEL), CheckOptions(), ("one",)),
    ],
)
def test_another_question_is_checked(source: Source, options: CheckOptions, only: tuple[str, ...]) -> None:
    check = Counted()
    cache.through(check, Source("k.kir", KERNEL), CheckOptions(), ())
    cache.through(check, source, options, only)
    assert check.calls == 2


def test_another_tool_is_another_question(monkeypatch: pytest.MonkeyPatch) -> None:
    check, source = Counted(), Source("k.kir", KERNEL)
    cache.through(check, source, CheckOptions(), ())
    monkeypatch.setattr(cache, "_tool", lambda: "a later version")
    cache.through(check, source, CheckOptions(), ())
    assert check.calls == 2


def test_errors_and_undecided_rows_are_not_kept(sample_report: Report) -> None:
    source = Source("k.kir", KERNEL)
    refuted = check_source(source, CheckOptions()).report
    for report in (replace(refuted, errors=(InputError("k.kir", 1, 1, "m"),)), sample_report, Report()):
        cache.through(lambda *_, report=report: Outcome(report), source, CheckOptions(), ())  # type: ignore[misc]
        assert not list(cache.folder().glob("*"))


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"report": 1}', "[" * 100_000, '{"report": {"kernels": [{}]}}']
)
def test_a_spoilt_entry_is_ignored(text: str) -> None:
    check, source = Counted(), Source("k.kir", KERNEL)
    cache.through(check, source, CheckOptions(), ())
    (entry,) = cache.folder().glob("*.json")
    entry.write_text(text)
    assert cache.through(check, source, CheckOptions(), ()).report.kernels
    assert check.calls == 2


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "file" / "below"))
    assert cache.through(check_source, Source("k.kir", KERNEL), CheckOptions(), ()).report.kernels
