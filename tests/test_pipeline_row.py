"""Does the report say what is right and wrong about annotated pipelines, and nothing more?"""

from __future__ import annotations

from textwrap import dedent

from fencepost.checking import check
from fencepost.findings import KernelReport, Row, Verdict

TILELANG = '''
import tilelang
import tilelang.language as T

@T.prim_func
def scale(A: T.Tensor((1024, 64), "float16"), B: T.Tensor((1024, 64), "float16")):
    with T.Kernel(1) as bx:
        tile = T.alloc_shared((64, 64), "float16")
        for k in T.Pipelined(16, STAGES):
            T.copy(A[k * 64, 0], tile)
            T.copy(tile, B[k * 64, 0])
'''


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
