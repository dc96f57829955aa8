"""What does a PyPTO-Pro kernel with an automatic pipeline become?"""

from __future__ import annotations

import pytest
from tests.frontends.pypto_pro import block, head, lowered, places, program, result, section, unread

from fencepost import ir
from fencepost.model.executor import run
from fencepost.model.functions import FunctionTable

TWO = """
@pl.pipeline.stage
def produce(i, src, m, c, v):
    if i == 0:
        pl.load(m, src, [0, 0])
    t = v.next()
    pl.move(t, c, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitM)

@pl.pipeline.stage
def consume(i, rounds, v, x, out):
    t = v.next()
    pl.exp(x, t)
    if i == rounds - 1:
        pl.store(out, x, [64 * pl.get_subblock_idx(), 0])
"""

KERNEL = """
n = a.shape[0]
v = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1], fwd_ids=READY, bwd_ids=[2, 3])
x = pl.make_tile_group(type=VEC, addrs=0x8000, mutex_ids=[6])
m = pl.make_tile_group(type=MAT, addrs=0, mutex_ids=[4])
c = pl.make_tile_group(type=ACC, addrs=0, mutex_ids=[5])
for i in pl.range(n):
    with pl.section_cube():
        produce(i, a, m.next(), c.next(), v)
    with pl.section_vector():
        consume(i, n, v, x.next(), out)
"""


def piped(body: str = KERNEL, before: str = TWO, config: str = "preload=1") -> ir.Kernel:
    text = program(body, f"READY = (0, 1)\n{before}", jit=f"pipeline=pl.pipeline.PipelineConfig({config})")
    return lowered(text)


def test_two_stages() -> None:
    kernel = piped()
    assert [line for line in head(kernel) if not line.startswith("buffer")] == [
        "assume n >= 0",
        "v_bwd_ids = (2, 3)",
        "READY = (0, 1)",
        "ring tasks[2](i)",
    ]
    assert section(kernel, "cube") == block(
        """
        task = 0
        for i in range(n):
            wait_cross_core v_bwd_ids[task % 2] @ FIX
            if i == 0:
                load m <- a @ MTE2
            t = v.next()
            move v[t] <- c @ FIX
            set_cross_core READY[task % 2] @ FIX
            task = task + 1
        wait_cross_core 2 @ FIX
        wait_cross_core 3 @ FIX
        """
    )
    assert section(kernel) == block(
        """
        task = 0
        set_cross_core 2 @ V
        set_cross_core 3 @ V
        for i in range(n):
            task_0 = task % 2
            tasks[task_0].i = i
            task_1 = (task + 1) % 2
            if task >= 1:
                wait_cross_core READY[(task + 1) % 2] @ V
                i_2 = tasks[task_1].i
                t_2 = v.next()
                exp x <- v[t_2] @ V
                if i_2 == n - 1:
                    store out <- x @ MTE3
                set_cross_core v_bwd_ids[(task + 1) % 2] @ V
            task = task + 1
        for beat in range(1):
            task_1 = (task + 1) % 2
            if task >= 1:
                wait_cross_core READY[(task + 1) % 2] @ V
                i_2 = tasks[task_1].i
                t_2 = v.next()
                exp x <- v[t_2] @ V
                if i_2 == n - 1:
                    store out <- x @ MTE3
                set_cross_core v_bwd_ids[(task + 1) % 2] @ V
            task = task + 1
        """
    )


def test_signals_stand_at_the_stage_calls_and_declarations() -> None:
    kernel = piped()
    text = program(KERNEL, f"READY = (0, 1)\n{TWO}").splitlines()
    call = next(i for i, line in enumerate(text, 1) if "consume(i, n" in line)
    group = next(i for i, line in enumerate(text, 1) if "bwd_ids=" in line)
    lines = [line for line, *_ in places(kernel, ir.SetCross)]
    assert lines.count(group) == 2 and lines.count(call) == 2


@pytest.mark.parametrize("config", ["preload=1", "preload=2", "preload=3", "sync_only=True", "1"])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 7])
def test_it_runs_without_a_fault(config: str, rounds: int) -> None:
    found = run(piped(config=config), {"n": rounds}, FunctionTable(), limit=100_000)
    assert not (found.blocked or found.leftovers or found.races or found.overflows or found.unwritten)


FOUR = """
@pl.pipeline.stage
def first(s, c, v):
    t = v.next()
    if s.round == 0:
        pl.move(t, c, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitM)
    else:
        pl.move(t, c, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitN)

@pl.pipeline.stage
def second(s, v, m, h):
    t = v.next()
    p = m.next()
    soften(h, t)
    pl.insert(p, h, [32 * pl.get_subblock_idx(), 0])

@pl.pipeline.stage
def third(s, m, left, c, w):
    p = m.next()
    t = w.next()
    pl.move(left, p)
    pl.matmul(c, left, left)
    pl.move(t, c, acc_to_vec_mode=pl.AccToVecMode.DualModeSplitM)

@pl.pipeline.stage
def fourth(s, w, y):
    t = w.next()
    pl.exp(y, t)

@pl.vector_function
def soften(dst, src):
    mask = vf.create_mask(pattern=pl.MaskPattern.ALL, dtype=pl.DT_FP16)
    vf.store_align(dst, vf.load_align(src, 0), mask)
"""

DEEP = """
n = a.shape[0]
v = pl.make_tile_group(type=VEC, addrs=0, mutex_ids=[0, 1], fwd_ids=[0, 1], bwd_ids=[2, 3])
w = pl.make_tile_group(type=VEC, addrs=0x8000, mutex_ids=[2, 3], fwd_ids=[4, 5], bwd_ids=[6, 7])
m = pl.make_tile_group(type=MAT, addrs=0, mutex_ids=[4, 5, 6], fwd_ids=[8, 9, 10])
c = pl.make_tile_group(type=ACC, addrs=0, mutex_ids=[7])
left = pl.make_tile_group(type=tile(pl.MemorySpace.Left), addrs=0, mutex_ids=[8])
with pl.section_vector():
    h = pl.make_tile_group(type=tile(pl.MemorySpace.Vec, 32), addrs=0x10000, mutex_ids=[8])
    y = pl.make_tile_group(type=VEC, addrs=0x20000, mutex_ids=[9])
with pl.section_cube():
    q = pl.make_tile_group(type=MAT, addrs=0x40000, mutex_ids=[10, 11])
s = pl.struct(round=0, last=0)
for j in pl.range(2):
    for i in pl.range(n):
        s.round = i
        s.last = n - 1
        with pl.section_cube():
            first(s, c.next(), v)
        with pl.section_vector():
            second(s, v, m, h.next())
        with pl.section_cube():
            third(s, m, left.next(), c.next(), w)
        with pl.section_vector():
            fourth(s, w, y.next())
"""


def test_four_stages_and_a_struct() -> None:
    kernel = piped(DEEP, FOUR, "preload=2")
    waits = [line.strip() for line in section(kernel, "cube") if "wait_cross_core" in line]
    assert waits == [
        "wait_cross_core v_bwd_ids[task % 2] @ FIX",
        "wait_cross_core m_fwd_ids[(task + 1) % 3] @ MTE1",
        "wait_cross_core w_bwd_ids[task % 2] @ FIX",
        "wait_cross_core m_fwd_ids[(task + 1) % 3] @ MTE1",
        "wait_cross_core w_bwd_ids[task % 2] @ FIX",
        *(f"wait_cross_core {i} @ FIX" for i in (2, 3, 6, 7)),
    ]
    sets = [line.strip() for line in section(kernel) if "set_cross_core" in line]
    assert sets[:4] == [f"set_cross_core {i} @ V" for i in (2, 3, 6, 7)]
    assert "set_cross_core m_fwd_ids[(task + 2) % 3] @ MTE3" in sets


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_four_stages_run_without_a_fault(rounds: int) -> None:
    found = run(piped(DEEP, FOUR, "preload=2"), {"n": rounds}, FunctionTable(), limit=100_000)
    assert not (found.blocked or found.leftovers or found.races or found.overflows)


def test_a_tile_picked_outside_of_the_loop() -> None:
    before = TWO.replace("    pl.exp(x, t)", "    pl.exp(x, x)\n    pl.exp(x, t)")
    body = KERNEL.replace(
        "for i in", "for j in pl.range(3):\n  with pl.section_vector():\n    y = g.next()\n  for i in"
    )
    body = body.replace("x = pl", "g = pl").replace("mutex_ids=[6]", "mutex_ids=[6, 7]")
    lines = body.replace("v, x.next(), out)", "v, y, out)").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("  for i in"))
    text = "\n".join([*lines[: at + 1], *("  " + line for line in lines[at + 1 :])])
    kernel = piped(text, before)
    found = section(kernel)
    assert "    g_slot = (g_slot + 1) % 2" in found
    assert any(line.strip() == "tasks[task_0].g_slot = g_slot" for line in found)
    stripped = [line.strip() for line in found]
    assert "exp g[x] <- g[x] @ V" in stripped and "x = tasks[task_1].g_slot" in stripped


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            ("    with pl.section_vector():\n        consume(i, n, v, x.next(), out)\n", ""),
            "must pass from one stage to one stage",
        ),
        (("with pl.section_vector", "with pl.section_cube"), "stages must change the core each time"),
        (
            ("    with pl.section_vector():\n        consume", "    if True:\n        consume"),
            "called under a condition",
        ),
        (("x.next(), out)", "x.next(), out=out)"), "keyword arguments"),
        (("for i in pl.range(n):", "for i in pl.range(n):\n    n = n - 1"), "with a fixed end"),
        (("bwd_ids=[2, 3]", "bwd_ids=[2, 3, 4]"), "out of turn"),
        (("fwd_ids=READY", "fwd_ids=[0, 99]"), "the ids of a tile group must be numbers"),
        (("addrs=0x8000", "addrs=0x100"), "v and x share memory"),
        (("produce(i, a", "other(i, a"), "must pass from one stage to one stage"),
    ],
)
def test_pipelines_that_cannot_be_read(change: tuple[str, str], reason: str) -> None:
    text = program(
        KERNEL.replace(*change), f"READY = (0, 1)\n{TWO}", jit="pipeline=pl.pipeline.PipelineConfig(preload=1)"
    )
    (kernel,) = result(text).kernels
    assert any(reason in line for line in unread(kernel)), unread(kernel)


def test_a_pipeline_without_stages() -> None:
    text = program("with pl.section_vector():\n    pl.system.bar_v()", jit="pipeline=pl.pipeline.PipelineConfig()")
    assert "no loop calls a @pl.pipeline.stage function" in unread(result(text).kernels[0])[0]
    text = program(KERNEL, f"READY = (0, 1)\n{TWO}", jit="pipeline=CONFIG")
    assert "is not a known pl.pipeline.PipelineConfig" in unread(result(text).kernels[0])[0]
