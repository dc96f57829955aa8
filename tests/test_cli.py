"""Does the command line do what its help says, with the exit statuses that scripts rely on?"""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest

from fencepost import checking
from fencepost.cli import main

GOOD = """\
kernel one_shot():
    buffer p in Vec
    section cube:
        move p <- acc @ FIX
        set_cross_core 0 @ FIX
    section vector:
        wait_cross_core 0 @ V
        relu y <- p @ V
"""
BAD = GOOD.replace("one_shot", "leftover").replace(
    "        set_cross_core 0 @ FIX\n", "        set_cross_core 0 @ FIX\n" * 2
)
OPEN = """\
kernel many(n, m):
    assume n >= 0 and m >= 0
    section cube:
        for t in range(n * m * m):
            set_cross_core 0 @ FIX
            wait_cross_core 1 @ FIX
    section vector:
        for t in range(m * n * m):
            wait_cross_core 0 @ V
            set_cross_core 1 @ V
"""
MALFORMED = "kernel broken():\n    section cube:\n        set_cross_core 0 @ Q\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def files(here: Path) -> Path:
    (here / "good.kir").write_text(GOOD)
    (here / "bad.kir").write_text(BAD)
    (here / "broken.kir").write_text(MALFORMED)
    return here


def fencepost(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command line; return its status, output and messages."""
    status = main(arguments)
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    return status, captured.out, captured.err


# ------------------------------------------------------------------------------------------------ exit statuses


def test_status_0_when_all_rows_are_proved(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = fencepost(capsys, "check", "good.kir")
    assert (status, err) == (0, "")
    assert re.search(r"^one_shot   good.kir:1   a5   PROVED", out)


def test_status_1_for_an_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = fencepost(capsys, "check", "bad.kir", "good.kir")
    assert status == 1
    assert "FP302" in out
    assert "PROVED" in out


def test_status_2_for_malformed_input_and_the_rest_is_checked(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = fencepost(capsys, "check", ".", "gone.kir")
    assert status == 2
    assert "broken.kir:3:28: error: " in out
    assert "gone.kir: error: can't read the file: No such file" in out
    assert "leftover" in out
    assert "one_shot" in out


def test_status_3_when_something_is_open(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "open.kir").write_text(OPEN)
    status, out, _ = fencepost(capsys, "check", "open.kir", "--no-prove")
    assert status == 3
    assert "UNKNOWN" in out


def test_exit_zero_forgives_findings_not_bad_input(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fencepost(capsys, "check", "bad.kir", "--exit-zero")[0] == 0
    assert fencepost(capsys, "check", "bad.kir", "broken.kir", "--exit-zero")[0] == 2


def test_status_130_when_interrupted(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fencepost.engine.check_kernel", interrupted)
    status, _, err = fencepost(capsys, "check", "good.kir", "-j1")
    assert status == 130
    assert "interrupted after 0 of 1 files" in err


def test_a_defect_of_the_tool_names_the_kernel_and_spares_the_others(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = checking.engine.check_kernel

    def failing(kernel, options):  # type: ignore[no-untyped-def]
        if kernel.name == "one_shot":
            raise ZeroDivisionError("inside")
        return real(kernel, options)

    monkeypatch.setattr("fencepost.engine.check_kernel", failing)
    status, out, _ = fencepost(capsys, "check", "good.kir", "bad.kir", "-j1")
    assert status == 2
    assert "internal error while checking kernel one_shot (ZeroDivisionError: inside)" in out
    assert "please report it" in out
    assert "FP302" in out
    assert main(["check", "good.kir", "--verbose"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: fencepost"),
        (["chek", "x"], "invalid choice: 'chek'"),
        (["check"], "the following arguments are required: PATH"),
        (["check", "good.kir", "--format", "yaml"], "invalid choice: 'yaml'"),
        (["check", "good.kir", "--report", "sarif"], "'sarif' is not FORMAT=FILE"),
        (["check", "good.kir", "-p", "n"], "'n' is not NAME=VALUE"),
        (["check", "good.kir", "-p", "n=1.5"], "'1.5' is not an integer"),
        (["check", "good.kir", "-p", "n=1", "-p", "n=2"], "-p n is given twice"),
        (["check", "good.kir", "-p", "n=1"], "-p: no parameter 'n'"),
        (["check", "good.kir", "--assume", "n >"], "--assume: 'n >' is not a fact about parameters"),
        (["check", "good.kir", "--assume", "n > 0"], "--assume: no parameter 'n'"),
        (["check", "good.kir", "--kernel", "one_shoot"], "no kernel 'one_shoot'; did you mean 'one_shot'?"),
        (["check", "good.kir", "--select", "two"], "'two' is not a code"),
        (["check", "good.kir", "--severity", "206=fatal"], "'fatal' is not a severity"),
        (["check", "good.kir", "--timeout", "0"], "'0' is not a positive number of seconds"),
        (["check", "good.kir", "--jobs", "-1"], "'-1' is not a number of processes"),
        (["check", "good.kir", "--baseline", "gone.json"], "can't read the baseline gone.json"),
        (["check", "good.kir", "-o", "no/such/folder.txt"], "can't write"),
        (["run", "."], ". is a folder; name one file"),
        (["run", "good.kir", "-p", "n=1"], "no parameter 'n'"),
        (["run", "many.kir", "--all", "m=0..2", "--all", "k=0..1"], "no parameter 'k'; there are m, n"),
        (["run", "many.kir", "--all", "n=0..1", "--all", "n=2..3"], "--all n is given twice"),
        (["run", "many.kir", "--all", "n=0..1", "-p", "n=1"], "n is given by -p and by --all"),
        (["run", "many.kir", "-p", "m=1", "-p", "k=1"], "no parameter 'k'; there are m, n"),
        (["run", "good.kir", "--last", "3"], "choose one with --timeline"),
        (["run", "good.kir", "--json", "--timeline", "svg"], "two formats for one output"),
        (["run", "good.kir", "--all", "n=0..1", "--timeline", "text"], "--timeline shows one run"),
        (["run", "good.kir", "-p", "need(0)=1"], "no unknown function 'need'; there is none"),
        (["run", "call.kir", "-p", "nead(0)=1"], "no unknown function 'nead'; did you mean 'need'?"),
        (["run", "call.kir", "-p", "min(0)=1"], "no unknown function 'min'"),
        (["run", "call.kir", "-p", "need(0)=1"], "need(0): 'need' takes 2 arguments, not 1"),
        (["run", "call.kir", "-p", "need(0,1)=1", "-p", "need(0, 1)=2"], "-p need(0, 1) is given twice, as 1 and 2"),
        (["skew", "good.kir", "--verify", "--timeout", "-1"], "'-1' is not a positive number of seconds"),
        (["certify", "good.kir", "--timeout", "nan"], "'nan' is not a positive number of seconds"),
        (["lower", "gone.kir"], "gone.kir: can't read the file"),
        (["explain", "FP299"], "no rule"),
        (["explain", "206x"], "no rule '206x'; did you mean FP206"),
        (["explain", "FP2061"], "no rule 'FP2061'; did you mean FP206"),
        (["explain", "release-not-awaitd"], "did you mean FP206"),
    ],
)
def test_status_2_and_a_message_for_wrong_usage(
    files: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (files / "many.kir").write_text(OPEN)
    calling = GOOD.replace("        set_cross", "        if need(0, 1) > 0:\n            set_cross")
    (files / "call.kir").write_text(calling)
    status, _, err = fencepost(capsys, *arguments)
    assert status == 2
    assert message in err


# ------------------------------------------------------------------------------------------------ what is checked


def test_a_file_without_a_kernel(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "plain.py").write_text("print('hello')\n")
    (here / "good.kir").write_text(GOOD)
    status, out, _ = fencepost(capsys, "check", "plain.py")
    assert status == 2
    assert "plain.py: error: no kernel in this file" in out
    assert fencepost(capsys, "check", "plain.py", "--allow-empty")[0] == 0
    assert fencepost(capsys, "check", ".")[0] == 0
    assert fencepost(capsys, "check", "plain.py", "good.kir")[0] == 0


def test_a_folder_without_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = fencepost(capsys, "check", ".")
    assert (status, out) == (0, "no kernels\n")
    assert "no file that could hold a kernel" in err


def test_a_folder_without_kernels(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "plain.py").write_text("print('hello')\n")
    assert fencepost(capsys, "check", ".") == (0, "no kernels\n", "fencepost: no kernel in 1 file\n")
    assert fencepost(capsys, "check", ".", "--allow-empty") == (0, "no kernels\n", "")


def test_standard_input(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    status, out, _ = fencepost(capsys, "check", "-", "--stdin-filename", "buffer.kir", "--format", "concise")
    assert status == 1
    assert out.startswith("buffer.kir:6:9: FP302 error: ")


def test_kernels_can_be_chosen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "two.kir").write_text(GOOD + "\n" + BAD)
    assert fencepost(capsys, "check", "two.kir")[0] == 1
    assert fencepost(capsys, "check", "two.kir", "--kernel", "one_*")[0] == 0
    assert fencepost(capsys, "lower", "two.kir", "--kernel", "one_*")[1].count("kernel ") == 1


def test_several_processes_keep_the_order(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(6):
        (files / f"k{number}.kir").write_text(GOOD.replace("one_shot", f"k{number}"))
    alone = fencepost(capsys, "check", ".", "-j1", "--format", "json")
    together = fencepost(capsys, "check", ".", "-j3", "--format", "json")
    assert alone[0] == together[0] == 2
    assert re.sub(r'"seconds": [0-9.]+', "", alone[1]) == re.sub(r'"seconds": [0-9.]+', "", together[1])


def test_values_assumes_and_target_reach_the_engine(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "open.kir").write_text(OPEN)
    seen = []
    real = checking.engine.check_kernel

    def spy(kernel, options):  # type: ignore[no-untyped-def]
        seen.append(options)
        return real(kernel, options)

    monkeypatch.setattr("fencepost.engine.check_kernel", spy)
    fencepost(capsys, "check", "open.kir", "-p", "n=0x2", "--assume", "m % 2 == 0", "--target", "a3", "--timeout", "7")
    (options,) = seen
    assert (options.values, options.target, options.timeout) == ((("n", 2),), "a3", 7.0)
    assert len(options.assume) == 1


# ------------------------------------------------------------------------------------------------ which findings count


def test_select_and_ignore(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fencepost(capsys, "check", "bad.kir", "--ignore", "302,401,206")[0] == 0
    assert fencepost(capsys, "check", "bad.kir", "--ignore", "FP3", "--ignore", "4,2")[0] == 0
    status, out, _ = fencepost(capsys, "check", "bad.kir", "--select", "302", "--format", "concise")
    assert status == 1
    assert set(re.findall(r"FP\d+", out)) == {"FP302"}


@pytest.mark.parametrize("option", [["--ignore", "302,999"], ["--select", "FP39"], ["--severity", "399=note"]])
def test_codes_that_no_rule_has(option: list[str], files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = fencepost(capsys, "check", "bad.kir", *option)
    assert status == 2
    assert "no rule has the code FP" in err and "did you mean FP" in err


def test_severity_from_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [f"--severity={code}=warning" for code in ("FP302", "401", "206")]
    status, out, _ = fencepost(capsys, "check", "bad.kir", *arguments, "--format", "concise")
    assert status == 0
    assert "FP302 warning:" in out


def test_severity_of_codes_with_one_beginning(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest beginning counts."""
    arguments = ["--severity=3=note", "--severity=302=warning", "--severity=4=note"]
    assert main(["check", "bad.kir", *arguments]) == 0
    out = capsys.readouterr().out
    assert "FP302 warning" in out and "FP401 note" in out


def test_the_configuration_and_the_command_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "pyproject.toml").write_text('[tool.fencepost]\nignore = ["2", "3", "4"]\nexclude = ["broken.kir"]\n')
    assert fencepost(capsys, "check", ".")[0] == 0
    assert fencepost(capsys, "check", ".", "--ignore", "9")[0] == 1
    (files / "pyproject.toml").write_text("[tool.fencepost]\nignor = []\n")
    status, _, err = fencepost(capsys, "check", ".")
    assert status == 2
    assert "did you mean 'ignore'?" in err


def test_a_comment_suppresses(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = BAD.splitlines()
    codes = "[302, 401, 206]"
    lines[5] += f"  # fencepost: ignore{codes} counters are cleared at launch"
    (here / "bad.kir").write_text("\n".join(lines))
    status, out, _ = fencepost(capsys, "check", "bad.kir")
    assert status == 0
    assert "FP302 suppressed at line 6: counters are cleared at launch" in out


def test_a_baseline_accepts_the_old_findings(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = fencepost(capsys, "check", "bad.kir", "--write-baseline", "base.json")
    assert status == 0
    assert re.search(r"base.json accepts [1-9]", err)
    assert fencepost(capsys, "check", "bad.kir", "--baseline", "base.json")[0] == 0
    (files / "bad.kir").write_text("# moved\n\n" + BAD)
    assert fencepost(capsys, "check", "bad.kir", "--baseline", "base.json")[0] == 0
    (files / "bad.kir").write_text(BAD.replace("set_cross_core 0", "set_cross_core 7"))
    assert fencepost(capsys, "check", "bad.kir", "--baseline", "base.json")[0] == 1


def test_a_new_baseline_accepts_what_the_active_one_accepts(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fencepost(capsys, "check", "bad.kir", "--write-baseline", "base.json")
    first = (files / "base.json").read_text()
    status, _, err = fencepost(capsys, "check", "bad.kir", "--baseline", "base.json", "--write-baseline", "c.json")
    assert status == 0 and re.search(r"c.json accepts [1-9]", err)
    assert (files / "c.json").read_text() == first
    fencepost(capsys, "check", "bad.kir", "--baseline", "base.json", "--write-baseline", "base.json")
    assert (files / "base.json").read_text() == first


@pytest.mark.parametrize("there", [None, "", '{"fencepost_baseline": 0, "findings": []}'])
def test_a_configured_baseline_is_made_and_renewed(
    files: Path, capsys: pytest.CaptureFixture[str], there: str | None
) -> None:
    (files / "pyproject.toml").write_text('[tool.fencepost]\nbaseline = "base.json"\n')
    if there is not None:
        (files / "base.json").write_text(there)
    assert fencepost(capsys, "check", "bad.kir")[0] == 2, "without it, a check says that it can't be read"
    for _ in range(2):
        status, _, err = fencepost(capsys, "check", "bad.kir", "--write-baseline", "./base.json")
        assert status == 0 and re.search(r"base.json accepts [1-9]", err)
        assert fencepost(capsys, "check", "bad.kir")[0] == 0


def test_a_baseline_that_is_named_and_missing_is_an_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("check", "bad.kir", "--baseline", "gone.json", "--write-baseline")
    assert fencepost(capsys, *arguments, "new.json")[0] == 2
    assert not (files / "new.json").exists()
    assert fencepost(capsys, *arguments, "gone.json")[0] == 0


# ------------------------------------------------------------------------------------------------ output


def test_several_reports_at_once(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = fencepost(
        capsys, "check", "bad.kir", "--format", "json", "-o", "out.json", "--report", "sarif=out.sarif", "--report",
        "junit=out.xml",
    )  # fmt: skip
    assert (status, out) == (1, "")
    assert json.loads((files / "out.json").read_text())["kernels"][0]["verdict"] == "refuted"
    assert json.loads((files / "out.sarif").read_text())["runs"][0]["results"]
    assert "<testsuites" in (files / "out.xml").read_text()


def test_sarif_rules_carry_their_pages(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = fencepost(capsys, "check", "bad.kir", "--format", "sarif")
    rules = json.loads(out)["runs"][0]["tool"]["driver"]["rules"]
    assert rules
    assert all("Why it hurts" in rule["help"]["text"] for rule in rules)


def test_a_kernel_with_nothing_to_check_is_not_counted_as_proved(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "empty.kir").write_text("kernel empty():\n    section cube:\n        add x <- y @ V\n")
    status, out, _ = fencepost(capsys, "check", "empty.kir", "good.kir")
    assert status == 0
    assert re.search(r"^empty .* NOTHING TO CHECK", out, re.MULTILINE)
    assert out.endswith("2 kernels: 1 proved, 1 with nothing to check\n")


def test_statistics(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = fencepost(capsys, "check", "bad.kir", "--statistics", "--quiet")
    assert re.search(r"^ +1  FP302  ", out, re.MULTILINE)
    _, out, err = fencepost(capsys, "check", "bad.kir", "--statistics", "--format", "json")
    json.loads(out)
    assert "FP302" in err


def test_quiet_says_nothing_about_clean_kernels(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fencepost(capsys, "check", "good.kir", "--quiet") == (0, "", "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that takes no text")
@pytest.mark.parametrize(
    "command",
    ["check good.kir", "check good.kir --format json", "run good.kir", "lower good.kir", "rules", "--version", "--help",
     "run --help"],
)  # fmt: skip
def test_output_that_cannot_be_written(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        status = main(command.split())
    assert status == 2
    assert capsys.readouterr().err == "fencepost: can't write the output: No space left on device\n"
    with open("/dev/full", "w") as out, open("/dev/full", "w") as err:
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr("sys.stderr", err)
        assert main(command.split()) == 2


def test_streams_that_are_closed(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as closed:
        closed.setattr("sys.stdout", None)
        assert main(["check", "bad.kir"]) == 1
    with monkeypatch.context() as closed:
        closed.setattr("sys.stderr", None)
        assert main(["check", "bad.kir", "--kernel", "bad"]) == 2
    monkeypatch.setattr("sys.stdin", None)
    status, out, _ = fencepost(capsys, "check", "-")
    assert status == 2
    assert "<stdin>: error: can't read standard input: it is closed" in out


def test_a_reader_that_goes_away(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.MonkeyPatch.context() as patch, open(write, "w") as gone:
        patch.setattr("sys.stdout", gone)
        status = main(["rules"])
    assert (status, capsys.readouterr().err) == (2, "")


def test_color(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in fencepost(capsys, "check", "good.kir")[1]
    assert "\x1b[" in fencepost(capsys, "check", "good.kir", "--color", "always")[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b[" in fencepost(capsys, "check", "good.kir")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in fencepost(capsys, "check", "good.kir")[1]
    assert "\x1b[" in fencepost(capsys, "check", "good.kir", "--color", "always")[1]


# ------------------------------------------------------------------------------------------------ other verbs


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("FP206", "206"):
        status, out, _ = fencepost(capsys, "explain", name)
        assert status == 0
        assert "FP206" in out
        assert "Why it hurts" in out


@pytest.mark.parametrize("code", ["FP000", "000", "FP001", "002"])
def test_explain_knows_the_codes_that_are_no_rules(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = fencepost(capsys, "explain", code)
    assert status == 0
    assert out.startswith(f"FP{code[-3:]}  ")


def test_rules_lists_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = fencepost(capsys, "rules")
    _, listed, _ = fencepost(capsys, "rules", "--json")
    codes = [rule["code"] for rule in json.loads(listed)]
    assert [line[2:5] for line in out.splitlines()] == codes
    assert {"101", "206", "306", "401"} <= set(codes)


def test_lower_prints_kernel_ir_that_reads_back(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fencepost.reading import parse

    status, out, _ = fencepost(capsys, "lower", "good.kir")
    assert status == 0
    assert parse(out) == parse(GOOD)
    assert "# 4" in out, "the line of the source"


def test_run_one_shape(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fencepost(capsys, "run", "good.kir")[:2] == (0, fencepost(capsys, "run", "good.kir")[1])
    status, out, _ = fencepost(capsys, "run", "bad.kir", "--timeline", "text")
    assert status == 1
    assert "leftover: event 0 cube -> aiv0: 1 signal left" in out
    assert "4: FIX move p <- acc" in out


def test_run_as_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = fencepost(capsys, "run", "bad.kir", "--json", "--timeline", "text")
    data = json.loads(out)
    assert (status, data["clean"], data["kernel"]) == (1, False, "leftover")
    assert {fault["kind"] for fault in data["faults"]} == {"leftover"}
    assert [c["sets"] for c in data["channels"]] == [2, 2]
    assert {step["agent"] for step in data["timeline"]} == {"aic", "aiv0", "aiv1"}


def test_run_a_grid(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "open.kir").write_text(OPEN)
    status, out, _ = fencepost(capsys, "run", "open.kir", "--all", "n=-1..2", "--all", "m=0..1")
    assert status == 0
    assert out.splitlines()[-1] == "6 runs: 6 clean, 0 not, 2 excluded by the assumes"
    status, _, err = fencepost(capsys, "run", "open.kir", "--all", "n=0..9999", "--all", "m=0..9999")
    assert (status, err) == (2, "fencepost run: --all makes 100,000,000 runs; 100,000 are the limit\n")


@pytest.mark.parametrize("kind", ["svg", "html", "perfetto"])
def test_run_draws_a_timeline(files: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    from xml.etree import ElementTree

    status, out, _ = fencepost(capsys, "run", "bad.kir", "--timeline", kind)
    assert status == 1
    if kind == "perfetto":
        events = json.loads(out)["traceEvents"]
        assert sum(e["ph"] == "s" for e in events) == sum(e["ph"] == "f" for e in events) == 2
    else:
        svg = ElementTree.fromstring(out[out.index("<svg") : out.index("</svg>") + 6])
        assert len([e for e in svg.iter() if e.get("class") == "arrow"]) == 2


def test_a_run_of_10_to_the_9_is_refused_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "open.kir").write_text(OPEN)
    status, _, err = fencepost(capsys, "run", "open.kir", "-p", "n=1000000000", "-p", "m=1", "--limit", "10000")
    assert status == 2
    assert "executes more than 10,000 instructions" in err


def test_unknown_functions_take_values(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD.replace("        set_cross", "        for t in range(need(0, 1)):\n            set_cross")
    (here / "f.kir").write_text(text)
    assert fencepost(capsys, "run", "f.kir")[0] == 0
    status, out, _ = fencepost(capsys, "run", "f.kir", "-p", "need(0, 1)=2")
    assert status == 1
    assert "need(0, 1) = 2" in out
