"""Do the examples give the reports that stand beside them, and do help and documents say what is true of them?"""

from __future__ import annotations

import re
import shlex
import shutil
from functools import cache
from pathlib import Path

import pytest

import fencepost
from fencepost import ir
from fencepost.cli import main
from fencepost.commands import COMMANDS
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


def shown_in(page: str) -> list[str]:
    """What stands in fences without a language on a page of the documentation."""
    return re.findall(r"^```\n(.*?)^```$", (ROOT / "docs" / page).read_text("utf-8"), re.M | re.S)


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


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The examples in a folder of their own, where commands may write files."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(command: str, capsys: pytest.CaptureFixture[str]) -> int:
    """The status of a command line as a person types it; it must find all that it names."""
    verb, *arguments = shlex.split(command, comments=True)
    assert verb == "fencepost"
    status = main(arguments)
    err = capsys.readouterr().err
    assert status in (0, 1), f"{command}: {err}"
    return status


def test_the_examples_of_the_help(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = [c.NAME for c in COMMANDS if ran(c.EXAMPLE, capsys)]
    assert failing == ["check"], "some examples are wrong on purpose"


def test_the_examples_of_the_readme(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (use,) = re.findall(r"^```\n(fencepost .*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    shutil.copy("examples/scores.kir", "old.kir")
    shutil.copy("examples/scores.kir", "new.kir")
    assert len(use.splitlines()) >= 10
    for command in use.splitlines():
        ran(command, capsys)


def test_the_readme_counts_the_refuted_examples() -> None:
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"ends with {words[len(FAULTY)]} refuted\nkernels and exit status 1" in readme


def test_the_pipeline_of_the_documentation(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = shown_in("pipelines.md")
    loop = next(block for block in blocks if "pipelined(" in block)
    shown = next(block for block in blocks if block.startswith("prologue:"))
    loop = loop.replace("order = (0, 1, 2)", "order = (0, 1, 2), async_stages = (0)")
    buffers = "".join(f"    buffer {name} in {space}\n" for name, space in (("a", "Mat"), ("b", "Mat"), ("acc", "Acc")))
    body = "".join(f"        {line}\n" for line in loop.splitlines())
    Path("doc.kir").write_text(f"kernel doc(n):\n{buffers}    section cube:\n{body}")
    assert main(["lower", "doc.kir"]) == 0
    comments = [line.removeprefix("#     ") for line in capsys.readouterr().out.splitlines() if line.startswith("#  ")]
    assert comments == shown.splitlines()


def test_the_kernel_of_the_page_on_pipelines_is_proved() -> None:
    (kernel,) = (block for block in shown_in("pipelines.md") if block.startswith("kernel "))
    assert fencepost.check(kernel).proved


@pytest.mark.parametrize("kernel", shown_in("kernel-ir.md"), ids=lambda text: text.split("(")[0].split()[-1])
def test_the_kernels_of_the_reference_are_proved(kernel: str) -> None:
    report = fencepost.check(kernel, timeout=120)
    assert report.proved, report.text()


def test_the_kernels_of_the_reference_show_every_form() -> None:
    kernels = [fencepost.parse(text) for text in shown_in("kernel-ir.md")]
    shown = {type(node) for kernel in kernels for node in ir.walk(kernel)}
    forms = {form for form in vars(ir).values() if isinstance(form, type) and issubclass(form, ir.Node)}
    assert forms - shown == {ir.Node, ir.Unsupported}, "nothing is proved of a kernel that can't be read"
