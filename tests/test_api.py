"""Does the Python API do what the README promises?"""

from __future__ import annotations

from pathlib import Path

import pytest

import fencepost
from fencepost.options import CheckOptions
from fencepost.reading import InvalidSource, parse_assume
from fencepost.replay import Excluded, Refused

TEXT = """\
kernel pair(n):
    assume n >= 0 and n <= 1
    section cube:
        for t in range(n):
            set_cross_core 0 @ FIX
    section vector:
        for t in range(n):
            wait_cross_core 0 @ V
"""
BAD = TEXT.replace("        for t in range(n):\n            wait", "        if n > 3:\n            wait")


def test_check_takes_a_path_a_folder_text_and_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "pair.kir"
    path.write_text(TEXT)
    reports = [fencepost.check(what) for what in (path, str(path), tmp_path, TEXT, fencepost.parse(TEXT))]
    verdicts = [[(check.row, check.verdict) for check in report.kernels[0].checks] for report in reports]
    assert verdicts == [verdicts[0]] * 5
    assert [report.kernels[0].file for report in reports] == [str(path)] * 3 + ["<text>"] * 2


def test_a_refuted_kernel_is_not_proved_and_prints_its_report() -> None:
    report = fencepost.check(BAD)
    assert not report.proved
    assert "FP302" in report.text()
    assert "set_cross_core 0 @ FIX" in report.text()


def test_bad_input_stands_in_the_report(tmp_path: Path) -> None:
    for what in ("kernel k(:\n", tmp_path / "gone.kir"):
        report = fencepost.check(what)
        assert report.errors
        assert not report.proved


def test_options() -> None:
    both = TEXT + BAD.replace("pair", "other")
    assert [k.name for k in fencepost.check(both, kernel="other").kernels] == ["other"]
    assert fencepost.check(BAD, values={"n": 0}).kernels[0].findings == ()
    assert fencepost.check(BAD, assume=["n < 1"]).kernels[0].findings == ()
    assert fencepost.check(BAD, target="a3").kernels[0].target == "a3"
    marked = fencepost.check(BAD, ignore=["FP3", "4", "5"]).kernels[0].findings
    assert marked
    assert all(finding.suppressed for finding in marked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "par"}, "no kernel 'par'; did you mean 'pair'?"),
        ({"values": {"m": 1}}, "no parameter 'm'"),
        ({"assume": ["m > 0"]}, "no parameter 'm'"),
        ({"assume": ["n >"]}, "'n >' is not a fact about parameters"),
        ({"select": ["x"]}, "'x' is not a code"),
        ({"ignore": ["999"]}, "no rule has the code FP999"),
        ({"severity": {"206": "fatal"}}, "'fatal' is not a severity"),
        ({"target": "a9"}, "target 'a9': expected one of a5, a3, a2"),
        ({"timeout": -1}, "timeout -1: expected a positive number of seconds"),
        ({"timeout": float("nan")}, "timeout nan: expected a positive number"),
        ({"timeout": "5"}, "timeout '5': expected a positive number"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r"no |is not|expected") as caught:
        fencepost.check(TEXT, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": 1}, "kernel: expected a name, not int"),
        ({"values": {"n": 2.5}}, "n = 2.5 is not an integer"),
        ({"values": {"n": "x"}}, "n = 'x' is not an integer"),
        ({"assume": "n > 0"}, "assume: expected a list of texts, not 'n > 0'"),
        ({"select": "206"}, "select: expected a list of texts, not '206'"),
        ({"ignore": [206]}, "ignore: expected a list of texts, not [206]"),
    ],
)
def test_options_of_a_wrong_type(options: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        fencepost.check(TEXT, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("what", [b"x", None, 3, ["a.kir"]])
def test_what_is_neither_path_nor_text_nor_kernel(what: object) -> None:
    with pytest.raises(TypeError, match="expected a path, a source text or a Kernel, not "):
        fencepost.check(what)  # type: ignore[arg-type]
    for verb in (fencepost.parse, fencepost.run, fencepost.skew):
        with pytest.raises(TypeError, match="expected the text of a kernel, not "):
            verb(what)  # type: ignore[operator]


def test_the_options_themselves_are_judged() -> None:
    fact = parse_assume("n > 2")
    assert CheckOptions(assume=(fact,), values=(("n", True),)).assume == (fact,)
    for wrong, message in (
        ({"assume": ("n > 2",)}, "'n > 2' is not an expression of the IR; `parse_assume` reads a text"),
        ({"values": (("n", 0.5),)}, "n = 0.5 is not an integer"),
        ({"severity": (("206", "note"),)}, "206 = 'note' is not a Severity"),
    ):
        with pytest.raises(TypeError) as caught:
            CheckOptions(**wrong)  # type: ignore[arg-type]
        assert message in str(caught.value)


def test_severities_may_be_words() -> None:
    findings = fencepost.check(BAD, severity={"FP3": "note"}).kernels[0].findings
    assert {f.severity.value for f in findings if f.code.startswith("3")} == {"note"}


def test_a_report_prints_itself() -> None:
    report = fencepost.check(BAD)
    assert str(report) == report.text()


def test_parse() -> None:
    assert fencepost.parse(TEXT).parameters == ("n",)
    assert fencepost.parse(TEXT + BAD.replace("pair", "other"), kernel="other").name == "other"
    for text in (TEXT + BAD.replace("pair", "other"), "kernel k(:\n", "x = 1\n", TEXT.replace("range(n)", "range(m)")):
        with pytest.raises(InvalidSource) as caught:
            fencepost.parse(text)
        assert caught.value.errors


def test_run() -> None:
    replay = fencepost.run(TEXT, n=1)
    assert replay.clean
    assert "clean" in replay.text()
    assert [step.agent for step in replay.timeline().steps] == ["aic", "aiv0", "aiv1"]
    assert len(replay.timeline().links) == 2
    assert [step.agent for step in replay.timeline(last=1).steps] == ["aiv1"]
    assert not fencepost.run(fencepost.parse(BAD), n=1).clean
    with pytest.raises(Excluded, match="the kernel assumes n >= 0 and n <= 1"):
        fencepost.run(TEXT, n=2)
    with pytest.raises(Refused, match="needs values for n"):
        fencepost.run(TEXT)
    for value in (2.5, "x", None):
        with pytest.raises(TypeError, match=f"n = {value!r} is not an integer"):
            fencepost.run(TEXT, n=value)  # type: ignore[arg-type]


def test_a_run_prints_what_came_of_it() -> None:
    assert str(fencepost.run(TEXT, n=1)) == "pair, n = 1: clean"
    head, first, *_ = str(fencepost.run(BAD, n=1)).splitlines()
    assert head == "pair, n = 1: 1 leftover"
    assert first.startswith("  leftover: event 0 cube -> aiv0: 1 signal left at the end")
    assert len(repr(fencepost.run(BAD, n=1))) < 2000


def test_skew() -> None:
    text = """\
kernel k():
    fifo f: cube -> vector, slots = 4
    fifo b: vector -> cube, slots = 4
    section cube:
        for i in pipeline(0, 8, 1, stage = 2):
            load a <- g @ MTE2
            tpush_to_aiv a
            r <- tpop_from_aiv
            store o <- r @ FIX
    section vector:
        for i in range(8):
            a <- tpop_from_aic
            tfree_to_aic a
            tpush_to_aic a
"""
    skewed = fencepost.skew(text)
    assert skewed != fencepost.parse(text)
    assert fencepost.skew(skewed) == skewed
