"""Fresh random loops against the real pipeline pass.

Needs TileLang (`pip install tilelang==0.1.15`; no GPU is used) and is skipped without it.  Each loop is written as a
TileLang program, sent through the pass, and the emitted program is walked for 0 to 6 trips.  Compared are acceptance
and its code, versions, the executed statements in order, commits and waits.  As a script it takes the number of loops
and a first seed: ``PYTHONPATH=verifier python tests/pipeline/test_real_compiler.py 2000 0``.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from random_loops import random_loop

from fencepost.pipeline.accept import resolve
from fencepost.pipeline.emission import Commit, Run, Wait, emit, steps
from fencepost.pipeline.model import Access, At, Loop, Statement, Whole
from fencepost.pipeline.schedule import Plan
from fencepost.pipeline.sequence import ALWAYS

INSTALLED = importlib.util.find_spec("tilelang") is not None
TRIPS = range(7)
_FAR = 8  # arrays are read a little outside the loop's range

MESSAGES = {
    "cannot have the same order": "902",
    "in a later stage": "903",
    "cannot be reordered": "904",
    "used from a different pipeline stage": "905",
    "must be ordered before every consumer": "905",
    "with different size": "901",
    "Stage of the software pipeline": "908",
    "Order of the software pipeline": "908",
    "multiple async stages": "909",
    "no schedulable": "911",
    "marks scalar Bind": "912",
}


def usable(seed: int) -> Loop | None:
    """A random loop that can be written as a TileLang program with constant conditions."""
    loop = random_loop(seed)
    for s in loop.statements:
        if s.constant or any(a.buffer == "C" and isinstance(a.index, Whole) for a in (*s.reads, *s.writes)):
            return None
        if s.guard != ALWAYS:  # conditions on the end would need the trip count in the text
            return None
    return loop


def source(loop: Loop, trips: int) -> str:
    """The loop as a TileLang program."""
    start = loop.start or 0
    size = start + trips + 2 * _FAR
    lines = ["import tilelang.language as T", "from tilelang import tvm", "", "@T.prim_func", "def main("]
    lines += [
        f"    {b.name}: T.Tensor(({size if b.cells is None else b.cells},), T.float32),"
        for b in loop.buffers
        if not b.local
    ]
    lines += ["):", "    for tx in T.thread_binding(0, 1, thread='threadIdx.x'):"]
    lines += [
        f"        {b.name} = T.alloc_buffer(({b.cells},), dtype=T.float32, scope='shared')"
        for b in loop.buffers
        if b.local
    ]
    notes = ", ".join(f"{key!r}: {_literal(value)}" for key, value in _notes(loop))
    lines.append(f"        for i in T.serial({start}, {start + trips}, annotations={{{notes}}}):")
    for number, statement in enumerate(loop.statements):
        lines += [f"            {text}" for text in _statement(loop, number, statement)]
    return "\n".join(lines) + "\n"


def _notes(loop: Loop) -> list[tuple[str, Any]]:
    notes = loop.annotations
    pairs = [
        ("software_pipeline_stage", notes.stage),
        ("software_pipeline_order", notes.order),
        ("num_stages", notes.num_stages),
        ("software_pipeline_async_stages", notes.async_stages),
        ("software_pipeline_async_producers", notes.async_producers),
        ("software_pipeline_async_producer_groups", notes.async_producer_groups),
    ]
    return [(key, value) for key, value in pairs if value is not None]


def _literal(value: int | tuple[int, ...]) -> str:
    """Lists as they are; a number as an integer of the compiler, which does not see a plain one."""
    return str(list(value)) if isinstance(value, tuple) else f"T.int32({value})"


def _statement(loop: Loop, number: int, statement: Statement) -> list[str]:
    terms = [f"{a.buffer}[{place}]" for a in statement.reads for place in _places(loop, a)]
    terms += list(statement.uses)
    value = " + ".join((*terms, f"T.float32({1000 + number})", "T.cast(i, T.float32)"))
    if statement.bind is not None:
        return [f"{statement.bind}: T.float32 = {value}"]
    (write,) = statement.writes
    places = _places(loop, write)
    if len(places) == 1:
        return [f"{write.buffer}[{places[0]}] = {value}"]
    return [f"for c{number} in T.serial({len(places)}):", f"    {write.buffer}[c{number}] = {value}"]


def _places(loop: Loop, access: Access) -> list[str]:
    start = loop.start or 0
    match access.index:
        case Whole():
            return [str(n) for n in range(loop.buffer[access.buffer].cells or 0)]
        case At(cell) if cell.gain == 0 and cell.period == 1:
            return [str(cell.values[0])]
        case At(cell) if cell.period == 1:
            return [f"i + {cell.values[0] - start + _FAR}"]
        case At(cell):  # a table over the iteration
            text = str(cell.values[-1])
            for k, value in reversed(list(enumerate(cell.values[:-1]))):
                text = f"T.if_then_else((i - {start}) % {cell.period} == {k}, {value}, {text})"
            return [text]
        case _:
            raise ValueError(access)


def run_pass(text: str) -> Any:
    """The body of the program after the pass; raises what the pass raises."""
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
        return tilelang.transform.InjectSoftwarePipeline()(mod)["main"].body


class Walk:
    """Runs the emitted program and notes statements, commits and waits."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.versions: dict[str, int] = {}
        self.env: dict[Any, int] = {}

    def run(self, node: Any) -> None:
        kind = type(node).__name__
        match kind:
            case "SeqStmt":
                for child in node.seq:
                    self.run(child)
            case "SBlockRealize" | "BlockRealize":
                self.run(node.block)
            case "SBlock" | "Block":
                for buffer in node.alloc_buffers:
                    self._allocated(buffer)
                self.run(node.body)
            case "AllocBuffer":
                self._allocated(node.buffer)
            case "AttrStmt":
                self.run(node.body)
            case "For":
                first, count = self.value(node.min), self.value(node.extent)
                for k in range(first, first + count):
                    self.env[node.loop_var] = k
                    self.run(node.body)
            case "IfThenElse":
                if self.value(node.condition):
                    self.run(node.then_case)
                elif node.else_case is not None:
                    self.run(node.else_case)
            case "BufferStore":
                self._stored(node.value)
            case "Evaluate":
                self._call(node.value)
            case "Bind" | "DeclBuffer":
                pass
            case _:
                raise NotImplementedError(kind)

    def _allocated(self, buffer: Any) -> None:
        self.versions[str(buffer.name)] = int(buffer.shape[0]) if len(buffer.shape) > 1 else 1

    def _call(self, call: Any) -> None:
        name = getattr(getattr(call, "op", None), "name", "")
        if name.endswith("ptx_commit_group"):
            self.trace.append("c")
        elif name.endswith("ptx_wait_group"):
            self.trace.append(f"w{int(call.args[0])}")

    def _stored(self, value: Any) -> None:
        number, iteration = None, None
        stack = [value]
        while stack:
            node = stack.pop()
            match type(node).__name__:
                case "Add":
                    stack += [node.a, node.b]
                case "FloatImm" if float(node.value) >= 1000:
                    number = int(float(node.value)) - 1000
                case "Cast":
                    iteration = self.value(node.value)
        entry = f"{number}.{iteration}"
        if not self.trace or self.trace[-1] != entry:  # all cells of one statement count once
            self.trace.append(entry)

    def value(self, node: Any) -> int:
        match type(node).__name__:
            case "IntImm":
                return int(node.value)
            case "Var":
                return self.env[node]
            case "Add":
                return self.value(node.a) + self.value(node.b)
            case "Sub":
                return self.value(node.a) - self.value(node.b)
            case "Mul":
                return self.value(node.a) * self.value(node.b)
            case "And":
                return int(self.value(node.a) and self.value(node.b))
            case "LT":
                return int(self.value(node.a) < self.value(node.b))
            case "LE":
                return int(self.value(node.a) <= self.value(node.b))
            case kind:
                raise NotImplementedError(kind)


def our_trace(plan: Plan, trips: int) -> list[str]:
    """The same trace by our own emission."""
    start = plan.loop.start or 0
    trace: list[str] = []

    def run(item: Run, t: int) -> None:
        statement = plan.statement(item.slot)
        if statement.bind is None:
            trace.append(f"{item.slot.number}.{start + t - (item.slot.stage if plan.rewritten else 0)}")

    for _, t, items in steps(emit(plan, trips)):
        for item in items:
            match item:
                case Run():
                    run(item, t)
                case Commit(runs):
                    for each in runs:
                        run(each, t)
                    trace.append("c")
                case Wait(pending):
                    trace.append(f"w{pending}")
    return trace


def differences(loop: Loop) -> list[str]:
    """What the real pass does otherwise."""
    reading = resolve(loop)
    found = []
    for trips in TRIPS:
        try:
            body = run_pass(source(loop, trips))
        except Exception as error:  # the pass raises errors of many classes
            text = str(error)
            code = next((c for words, c in MESSAGES.items() if words in text), text[:200])
            ours = {c.code for c in reading.errors} - {"906"}
            if code not in ours:
                found.append(f"{trips} trips: the pass rejects with {code}, ours {sorted(ours)}")
            return found
        if reading.plan is None:
            return [f"{trips} trips: the pass accepts, ours {[c.code for c in reading.errors]}"]
        walk = Walk()
        walk.run(body)
        expected = our_trace(reading.plan, trips)
        if walk.trace != _once(expected):
            found.append(f"{trips} trips: {' '.join(walk.trace)}\n      ours {' '.join(expected)}")
        for buffer, versions in reading.plan.versions.items():
            if walk.versions.get(buffer, 1) != versions:
                found.append(f"{buffer} has {walk.versions.get(buffer, 1)} versions, ours {versions}")
    return found


def _once(trace: list[str]) -> list[str]:
    return [entry for n, entry in enumerate(trace) if n == 0 or entry != trace[n - 1] or entry[0] in "cw"]


@pytest.mark.skipif(not INSTALLED, reason="TileLang is not installed")
def test_fresh_loops() -> None:
    first = int(os.environ.get("FENCEPOST_SEED", "0"))
    tried = 0
    for seed in range(first, first + 400):
        loop = usable(seed)
        if loop is not None:
            tried += 1
            assert not differences(loop), f"seed {seed}: {differences(loop)}"
    assert tried > 50


def main() -> None:
    count, first = int(sys.argv[1]), int(sys.argv[2])
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        loop = usable(seed)
        if loop is None:
            counts["left out"] += 1
            continue
        found = differences(loop)
        counts["differs" if found else "agrees"] += 1
        for text in found[:2]:
            print(f"seed {seed}: {text}")
    print(dict(counts))


if __name__ == "__main__":
    main()
