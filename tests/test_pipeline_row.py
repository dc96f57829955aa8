"""Does the report say what is right and wrong about annotated pipelines, and nothing more?"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from fencepost.checking import check
from fencepost.cli import main
from fencepost.findings import KernelReport, Row, Verdict

TILELANG = """
import tilelang
import tilelang.language as T

@T.prim_func
def scale(A: T.Tensor((1024, 64), "float16"), B: T.Tensor((1024, 64), "float16")):
    with T.Kernel(1) as bx:
        tile = T.alloc_shared((64, 64), "float16")
        for k in T.Pipelined(16, STAGES):
            T.copy(A[k * 64, 0], tile)
            T.copy(tile, B[k * 64, 0])
"""


def report(text: str) -> KernelReport:
    result = check(dedent(text))
    assert not result.errors, result.errors
    (kernel,) = result.kernels
    return kernel


def loops(*notes: str, tail: str = "") -> KernelReport:
    """A kernel with a copy and a store in each of several annotated loops."""
    text = "kernel several(n):\n    buffer tile in Mat\n    buffer out in GM\n    section cube:\n"
    for note in notes:
        text += f"        for k in pipelined(0, n, {note}):\n"
        text += "            copy tile <- a @ S\n            copy out <- tile @ S\n"
    return report(text + tail)


def row(kernel: KernelReport) -> tuple[Verdict, str]:
    return next((c.verdict, c.evidence) for c in kernel.checks if c.row is Row.PIPELINE)


def test_loops_of_which_the_same_holds_are_told_together() -> None:
    good = "stage = (0, 1), order = (0, 1)"
    assert row(loops(good, good))[1].startswith("depth 2, tile 2 versions; every flow")
    verdict, told = row(loops(good, good, "stage = (0, 0), order = (0, 1)"))
    assert verdict is Verdict.PROVED
    assert told.startswith("lines 5, 8: depth 2") and "line 11: depth 1" in told


def test_a_loop_without_stage_and_order() -> None:
    verdict, told = row(report(TILELANG.replace(", STAGES", "")))
    assert (verdict, told) == (Verdict.NOT_APPLICABLE, "the loop has neither stage nor order")


def test_a_witness_shows_both_statement_instances() -> None:
    kernel = report("""
        kernel one_cell(n):
            buffer g in GM
            section cube:
                for k in pipelined(0, n, stage = (0, 1), order = (0, 1)):
                    copy g <- a @ S
                    store out <- g @ S
    """)
    verdict, told = row(kernel)
    assert (verdict, told) == (Verdict.REFUTED, "FP921 (n = 2)")
    (finding,) = [f for f in kernel.findings if f.row is Row.PIPELINE]
    assert finding.replayed and str(finding.witness) == "n = 2"
    assert [(s.agent, s.text) for s in finding.trace] == [
        ("stage 0", "copy to g of iteration 0"),
        ("stage 0", "copy to g of iteration 1"),
        ("stage 1", "store to out of iteration 0"),
    ]
    assert finding.links == ((1, 2),)
    assert [r.message for r in finding.related] == ["copy to g"]


def test_a_rejected_loop_needs_no_witness() -> None:
    kernel = loops("stage = (1, 0), order = (0, 1)")
    assert row(kernel) == (Verdict.REFUTED, "FP903")
    assert [(f.code, f.witness, f.replayed) for f in kernel.findings] == [("903", None, False)]


def test_what_could_not_be_read_leaves_runs_undecided() -> None:
    gap = '        unsupported "a call of unknown meaning"\n'
    good = loops("stage = (0, 1), order = (0, 1)", tail=gap)
    assert row(good) == (Verdict.UNKNOWN, "line 8 could not be read: a call of unknown meaning")
    rejected = loops("stage = (1, 0), order = (0, 1)", tail=gap)
    assert row(rejected)[0] is Verdict.REFUTED


def test_a_program_without_cores_has_the_pipeline_row_only() -> None:
    kernel = report(TILELANG.replace("STAGES", "stage=[0, 1], order=[0, 1]"))
    assert kernel.target == "gpu" and kernel.verdict is Verdict.PROVED
    assert {c.verdict for c in kernel.checks if c.row is not Row.PIPELINE} == {Verdict.NOT_APPLICABLE}
    assert row(kernel)[0] is Verdict.PROVED


def test_another_target_does_not_give_it_cores() -> None:
    (kernel,) = check(TILELANG.replace("STAGES", "stage=[1, 0], order=[0, 1]"), target="a3").kernels
    assert kernel.target == "gpu" and row(kernel)[0] is Verdict.REFUTED


def test_a_right_schedule_is_suggested() -> None:
    text = "kernel t(n):\n    buffer tile in Mat\n    section cube:\n        for k in pipelined(0, n, NOTES):\n"
    text += "            copy tile <- a @ S\n            store out <- tile @ S\n"
    (kernel,) = check(text.replace("NOTES", "stage = (1, 0), order = (0, 1)"), suggest=True).kernels
    assert row(kernel)[1] == "FP903 · line 4: stage = (0, 1), order = (0, 1) is right"
    (kernel,) = check(text.replace(", NOTES", ""), suggest=True).kernels
    assert row(kernel)[1].endswith("nor order · line 4: stage = (0, 1), order = (0, 1) is right")
    (kernel,) = check(text.replace("NOTES", "stage = (0, 1), order = (0, 1)"), suggest=True).kernels
    assert row(kernel)[0] is Verdict.PROVED and "is right" not in row(kernel)[1]


PIPELINES = """\
kernel two(n, m):
    buffer tile in Mat
    section cube:
        for q in range(m):
            for k in pipelined(q, n, stage = (0, 2), order = (0, 1)):
                copy tile <- a @ S
                store out <- tile @ S
        for k in pipelined(1, n, stage = (0, 1), order = (0, 1)):
            copy tile <- a @ S
            store out <- tile @ S
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("two.kir").write_text(PIPELINES)
    return "two.kir"


def test_lower_shows_the_rewritten_program(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lower", file]) == 0
    out = capsys.readouterr().out
    assert "# line 5: the loop over k, pipelined at depth 3:\n#     prologue:\n#         copy to tile (0)\n" in out
    assert "#     body, for t in 1 .. trips - 1:\n#         copy to tile (t)\n#         store to out (t - 1)\n" in out
    assert main(["lower", "--plain", file]) == 0
    assert "#" not in capsys.readouterr().out


def test_run_shows_the_steps(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", file, "-p", "n=3", "-p", "m=1"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-6:] == [
        "line 5: the loop over k: its trips depend on more than the parameters",
        "line 8: the loop over k, 2 trips at depth 2 (iteration of each statement):",
        "    step        copy to tile  store to out",
        "    prologue 0  0",
        "    body 1      1             0",
        "    epilogue 2                1",
    ]
    assert main(["run", file, "-p", "n=90", "-p", "m=0"]) == 0
    assert "89 trips, more than are shown (64)" in capsys.readouterr().out
