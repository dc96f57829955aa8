"""What do the synchronisation statements of a PyPTO-Pro kernel become?"""

from __future__ import annotations

import pytest
from tests.frontends.pypto_pro import block, cube, lowered, program, result, section, unread, vector


def test_signals() -> None:
    body = """
        pl.system.set_cross_core(pipe=pl.PipeType.MTE3, event_id=3)
        pl.system.wait_cross_core(pl.PipeType.S, a.shape[0] % 4)
        pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=1, sync_mode=pl.CrossCoreMode.INTER_SUBBLOCK)
        pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=1, sync_mode=pl.CrossCoreMode.INTER_BLOCK)
    """
    assert vector(body) == [
        "set_cross_core 3 @ MTE3",
        "wait_cross_core a_dim0 % 4 @ S",
        "set_cross_core 1 @ V mode = INTER_SUBBLOCK",
        "wait_cross_core 1 @ V mode = INTER_BLOCK",
    ]


def test_signals_to_one_sub_core() -> None:
    ids = ("5", "21", "(3, 4)[a.shape[0] % 2]", "(16, 18)[a.shape[0] % 2]")
    calls = [
        f"pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id={i}, sync_mode=pl.CrossCoreMode.UNICAST_BLOCK)"
        for i in (*ids, "a.shape[0]")
    ]
    assert cube("\n".join(calls[:4])) == [
        "set_cross_core 5 @ FIX mode = UNICAST_BLOCK lane = 0",
        "set_cross_core 5 @ FIX mode = UNICAST_BLOCK lane = 1",
        "set_cross_core items[a_dim0 % 2] @ FIX mode = UNICAST_BLOCK lane = 0",
        "set_cross_core items_2[a_dim0 % 2] - 16 @ FIX mode = UNICAST_BLOCK lane = 1",
    ]
    (kernel,) = result(program(f"with pl.section_cube():\n    {calls[4]}")).kernels
    assert "the sub-core that this signal is for is not known" in unread(kernel)[0]


def test_flags_between_pipes() -> None:
    body = """
        pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=2)
        pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=2)
    """
    assert vector(body) == ["sync_src 2: MTE2 -> V", "sync_dst 2: MTE2 -> V"]


def test_locks_and_barriers() -> None:
    body = """
        pl.system.mutex_lock(pipe=pl.PipeType.V, mutex_id=7)
        pl.system.mutex_unlock(pipe=pl.PipeType.V, mutex_id=7)
        pl.system.bar_mte2()
        pl.system.bar_all()
        pl.system.sync_all()
    """
    assert vector(body) == ["mutex_lock 7 @ V", "mutex_unlock 7 @ V", "barrier MTE2", "barrier ALL", "sync_all"]


@pytest.mark.parametrize(("kind", "event"), [("AIV_ONLY", 12), ("AIC_ONLY", 11)])
def test_barriers_of_one_kind_of_core(kind: str, event: int) -> None:
    body = f"pl.system.sync_all(core_type=pl.SyncCoreType.{kind})"
    lines = vector(body) if kind == "AIV_ONLY" else cube(body)
    assert lines == [
        "barrier ALL",
        f"set_cross_core {event} @ S mode = INTER_BLOCK",
        f"wait_cross_core {event} @ S mode = INTER_BLOCK",
    ]


def test_phases() -> None:
    body = """
        c = pl.make_tile(ACC, addr=0)
        l = pl.make_tile(tile(pl.MemorySpace.Left), addr=0)
        r = pl.make_tile(tile(pl.MemorySpace.Right), addr=0)
        v = pl.make_tile(VEC, addr=0)
        pl.matmul(c, l, r, phase=pl.AccPhase.Partial)
        pl.matmul_acc(c, c, l, r, phase=pl.AccPhase.Final)
        pl.move(v, c, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitM, phase=pl.STPhase.Final)
        pl.store(out, c, [0, 0], phase=pl.AccPhase.Final)
        pl.store(out, c, [0, 0], phase=pl.STPhase.Unspecified)
    """
    assert cube(body) == [
        "matmul c <- l, r @ M phase = AccPhase.Partial",
        "matmul_acc c <- c, l, r @ M phase = AccPhase.Final",
        "move v <- c @ FIX phase = STPhase.Final",
        "store out <- c @ FIX phase = AccPhase.Final",
        "store out <- c @ FIX",
    ]


def test_a_kernel_without_automatic_locks() -> None:
    assert not lowered(program("with pl.section_vector():\n    pl.system.bar_v()", jit="auto_mutex=False")).auto_mutex


def test_bad_arguments() -> None:
    body = """
with pl.section_vector():
    pl.system.set_cross_core(pipe=pl.PipeType.ALL, event_id=1)
    pl.system.set_cross_core(pipe=pl.PipeType.V)
    pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=1, sync_mode=pl.CrossCoreMode.SOMETHING)
    pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=1.5)
    pl.system.unheard_of()
"""
    (kernel,) = result(program(body)).kernels
    reasons = [line.split(": ", 1)[1] for line in unread(kernel)]
    assert reasons[0].startswith("pipe must be one of pl.PipeType.S, MTE1")
    assert reasons[2] == "SOMETHING is no mode of cross-core signals"
    assert reasons[3].startswith("an integer is needed here")
    assert reasons[1::3] == ["event_id is missing", "pl.system.unheard_of is not known"]


def test_ids_outside_of_the_range_are_kept() -> None:
    assert vector("pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=40)") == ["set_cross_core 40 @ V"]


def test_a_guard_around_the_data_with_signals_outside() -> None:
    body = """
x = pl.make_tile(VEC, addr=0)
with pl.section_cube():
    pl.system.set_cross_core(pipe=pl.PipeType.FIX, event_id=0)
with pl.section_vector():
    pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=0)
    if pl.get_subblock_idx() == 0:
        pl.exp(x, x)
    pl.system.set_cross_core(pipe=pl.PipeType.V, event_id=1)
"""
    assert section(lowered(program(body))) == block(
        """
        wait_cross_core 0 @ V
        if sub == 0:
            exp x <- x @ V
        set_cross_core 1 @ V
        """
    )
