"""Random TileLang programs through our reading and through the real compiler's passes.

Needs TileLang (`pip install tilelang==0.1.15`; no GPU is used) and is skipped without it.  A program goes through the
planning pass and the pipeline pass for a CUDA target.  Compared are acceptance, the schedule that the compiler chooses
for `num_stages`, the copies that it makes asynchronous, and the versions of every buffer.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fencepost.frontends.tilelang import read
from fencepost.pipeline.accept import Reading, resolve
from fencepost.pipeline.build import build
from fencepost.pipeline.check import pipelines
from fencepost.pipeline.model import Annotations, Loop
from fencepost.pipeline.planned import Unplanned, plan_stages
from fencepost.pipeline.surroundings import find

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tilelang") is None, reason="TileLang is not installed")

HEADER = """\
import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((64, 1024), T.float16),
    B: T.Tensor((64, 1024), T.float16),
    C: T.Tensor((64, 1024), T.float16),
    D: T.Tensor((64, 1024), T.float16),
    I: T.Tensor((64, 1024), T.int32),
):
    with T.Kernel(1, threads=128) as bx:
        idx = T.alloc_shared((64,), T.int32)
        s0 = T.alloc_shared((64, 64), T.float16)
        s1 = T.alloc_shared((64, 64), T.float16)
        f0 = T.alloc_fragment((64, 64), T.float16)
        f1 = T.alloc_fragment((64, 64), T.float16)
        row = T.alloc_fragment((64,), T.float16)
        for k in T.Pipelined(16, {notes}):
"""


def _body(r: Random) -> str:
    shared, fragments = ("s0", "s1"), ("f0", "f1")
    lines: list[str] = []
    for _ in range(r.randint(2, 5)):
        every = r.choice(shared + fragments)
        lines += r.choice(
            (
                [f"T.copy({r.choice('AB')}[0, k * 64], {r.choice(shared)})"],
                [f"T.copy({r.choice('AB')}[0, k * 64], {r.choice(shared)})"],
                [f"T.copy({r.choice(shared)}, {r.choice(fragments)})"],
                [f"T.clear({every})"],
                [f"T.gemm({r.choice(shared)}, {r.choice(shared)}, {r.choice(fragments)})"],
                ["for i, j in T.Parallel(64, 64):", f"    f0[i, j] = f0[i, j] * 2 + {every}[i, j]"],
                ["for i, j in T.Parallel(64, 64):", f"    {r.choice(shared)}[i, j] = A[i, k * 64 + j]"],
                [f"T.reduce_sum({every}, row, dim=1)"],
                [f"T.copy({r.choice(fragments)}, C[0, k * 64])"],
                ["for i in range(2):", f"    T.copy(A[0, k * 64 + i], {r.choice(shared)})"],
                ["for i in range(2):", f"    T.copy({r.choice(fragments)}, C[i, k * 64])"],
            )
        )
    return _text(lines)


def _text(lines: list[str]) -> str:
    return "".join(f"            {line}\n" for line in lines)


def _gathering(r: Random) -> str:
    """Statements that read an index from a buffer which the loop fills: in subscripts, bounds and conditions."""
    shared = ("s0", "s1")
    place = r.choice(("idx[0]", "idx[i]", "T.max(idx[0], 1)", "I[0, idx[0]]"))
    once = place.replace("[i]", "[3]")
    lines = ["T.copy(I[0, k * 64], idx)"]
    for _ in range(r.randint(1, 4)):
        lines += r.choice(
            (
                [f"T.copy(A[{once}, k * 64], {r.choice(shared)})"],
                [f"T.copy(A[0:64, {once} : {once} + 64], {r.choice(shared)})"],
                [f"T.copy({r.choice('AB')}[0, k * 64], {r.choice(shared)})"],
                [f"T.copy({r.choice(shared)}, C[{once}, k * 64])"],
                ["for i, j in T.Parallel(64, 64):", f"    {r.choice(shared)}[i, j] = A[{place}, k * 64 + j]"],
                ["for i, j in T.Parallel(64, 64):", f"    f0[i, j] = A[{place}, j] + {r.choice(shared)}[i, j]"],
                ["for i, j in T.Parallel(64, 64):", f"    C[{place}, j] += {r.choice(shared)}[i, j]"],
                [f"for i, j in T.Parallel({once}, 64):", f"    C[i, j] = {r.choice(shared)}[i, j]"],
                [f"for i in T.serial({once}):", f"    s = {place}", f"    C[i, 0] = {r.choice(shared)}[s, 0]"],
                [f"if {once} > 2:", f"    T.copy({r.choice(shared)}, C[0, k * 64])"],
                ["if k > 2:", f"    s = {once}", f"    T.copy({r.choice(shared)}, C[s, 0])"],
                [f"T.gemm({r.choice(shared)}, s1, f1)"],
                ["T.copy(f0, C[0, k * 64])"],
            )
        )
    pointers = (  # the compiler does not see what they write: nothing else uses D
        f"T.atomic_add(D[{once}, 0], A[0, 1])",
        f"T.atomic_add(D[0, 0], A[{once}, 1])",
        f"T.call_extern('handle', 'f', T.access_ptr(D[{once}, 0], 'w', 64), T.address_of(A[0, 1]))",
        f"T.call_extern('handle', 'f', T.address_of(D[{once}, 0]))",
    )
    return _text([*lines, r.choice(pointers)] if r.random() < 0.4 else lines)


def _guarded(r: Random) -> str:
    """Branches that copy, alone or beside something else: do they count as copies?"""
    shared = ("s0", "s1")
    lines: list[str] = []
    for target in shared:
        lines += ["if k > 2:"] if r.random() < 0.7 else ["if I[0, k] > 2:"]
        lines.append(f"    T.copy({r.choice('AB')}[0, k * 64], {target})")
        if r.random() < 0.6:
            lines += r.choice(
                (
                    [f"    T.copy({target}, C[0, k * 64])"],
                    [f"    T.copy({target}, f0)"],
                    ["    T.copy(B[0, k * 64], f0)"],
                    ["    T.clear(f0)"],
                    [f"    T.gemm({target}, {target}, f1)"],
                    [f"    T.reduce_sum({target}, row, dim=1)"],
                    ["    for i, j in T.Parallel(64, 64):", "        f0[i, j] = f0[i, j] * 2"],
                    ["else:", f"    T.clear({target})"],
                    ["else:", f"    T.copy(A[0, 0], {target})"],
                )
            )
        if r.random() < 0.3:
            break
    return _text([*lines, *r.choice((["T.gemm(s0, s1, f1)"], ["T.copy(s0, C[0, k * 64])"], ["T.gemm(s1, s1, f1)"]))])


def _passes(text: str) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Annotations after planning, and versions after the pipeline pass; raises what the passes raise."""
    import tilelang
    from tilelang import tvm

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("program", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        mod = tvm.IRModule.from_expr(module.main.with_attr("global_symbol", "main"))
    mod = tvm.tirx.transform.BindTarget(tvm.target.Target({"kind": "cuda", "arch": "sm_80"}))(mod)
    mod = tilelang.transform.PipelinePlanning()(mod)
    notes: dict[str, tuple[int, ...]] = {}
    versions: dict[str, int] = {}

    def visit(node: Any) -> None:
        if isinstance(node, tvm.tirx.For) and "software_pipeline_stage" in node.annotations:
            for key, value in node.annotations.items():
                if key.startswith("software_pipeline_") and "tma" not in key:
                    notes[key.removeprefix("software_pipeline_")] = tuple(int(v) for v in value)
        for buffer in getattr(node, "alloc_buffers", ()):
            deep = len(buffer.shape) > (1 if str(buffer.name) in ("row", "idx") else 2)
            versions[str(buffer.name)] = int(buffer.shape[0]) if deep else 1

    tvm.tirx.stmt_functor.post_order_visit(mod["main"].body, visit)
    planned = dict(notes)
    mod = tilelang.transform.InjectSoftwarePipeline()(mod)
    tvm.tirx.stmt_functor.post_order_visit(mod["main"].body, visit)
    return planned, versions


def _loop(text: str) -> Loop:
    (kernel,) = read(text, "p.py").kernels
    (loop,) = pipelines(kernel)
    return build(loop, find(loop, kernel))


def _listed(notes: Annotations) -> dict[str, tuple[int, ...]]:
    pairs = {
        "stage": notes.stage,
        "order": notes.order,
        "async_producers": notes.async_producers,
        "async_producer_groups": notes.async_producer_groups,
    }
    return {key: value for key, value in pairs.items() if value is not None}


def _compare(text: str, loop: Loop, reading: Reading) -> None:
    try:
        planned, versions = _passes(text)
    except Exception as error:  # the passes raise errors of many classes
        assert "Multiple writes" in str(error) or reading.errors, f"{error}\n{text}"
        return
    assert reading.plan is not None, f"the compiler accepts this\n{text}"
    ours = _listed(loop.annotations)
    assert {key: planned.get(key) for key in ours} == ours, text
    for name, count in reading.plan.versions.items():
        if not name.endswith("_frag"):
            assert versions.get(name, 1) == count, f"{name}\n{text}"


FIRST = int(os.environ.get("FENCEPOST_SEED", "0"))


@pytest.mark.parametrize("body", [_body, _gathering, _guarded])
def test_chosen_schedules(body: Callable[[Random], str]) -> None:
    for seed in range(FIRST, FIRST + 60):
        r = Random(seed)
        text = HEADER.format(notes=f"num_stages={r.randint(1, 4)}") + body(r)
        read_loop = _loop(text)
        if body is _gathering and read_loop.annotations.num_stages is None:  # what the compiler plans is not claimed
            continue
        try:
            loop = plan_stages(read_loop)
        except Unplanned:
            with pytest.raises(Exception):  # noqa: B017  (the passes raise errors of many classes)
                _passes(text)
            continue
        _compare(text, loop, resolve(loop))


@pytest.mark.parametrize("make", [_body, _gathering])
def test_written_schedules(make: Callable[[Random], str]) -> None:
    for seed in range(FIRST, FIRST + 60):
        r = Random(seed)
        body = make(r)
        count = len(_loop(HEADER.format(notes="stage=[0], order=[0]") + body).statements)
        stage = sorted(r.randint(0, 3) for _ in range(count))
        order = list(range(count))
        if r.random() < 0.4:
            r.shuffle(order)
        text = HEADER.format(notes=f"stage={stage}, order={order}") + body
        loop = _loop(text)
        _compare(text, loop, resolve(loop))
