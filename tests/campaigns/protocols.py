"""Which kernels look like kernels?  Random software pipelines of a cube core and its vector sub-cores, as text.

A kernel passes tasks through a chain of stages that alternate between the cores; every hand-over is a *stream* with
slots and a scheme of signals (credits issued ahead, bare back-pressure, READY only, or a message ring).  Both sides
walk the same loops, each stage with a lag of its own.  Most of them are right by design; a random flaw in depth,
lag, drain, pipe or order, or a mutation (`mutations`), makes the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from fencepost import ir
from fencepost.reading import parse

Scheme = Literal["credit", "bare", "ready", "messages"]
Index = Literal["task", "counter", "cursor", "ring"]


@dataclass
class Stream:
    """One hand-over.  `lag` is how many iterations behind its side's loop each end is: (producer, consumer)."""

    number: int
    producer: ir.Core
    depth: int
    scheme: Scheme
    index: Index
    lag: tuple[int, int]
    ready: tuple[int, ...] = ()
    release: tuple[int, ...] = ()
    pipes: tuple[str, str] = ("FIX", "V")
    slots: int = 2
    lane: int | None = None
    annotated: bool = False
    drained: bool = True

    @property
    def name(self) -> str:
        return f"s{self.number}"

    @property
    def consumer(self) -> ir.Core:
        return "vector" if self.producer == "cube" else "cube"

    def core(self, end: int) -> ir.Core:
        return self.producer if end == 0 else self.consumer


@dataclass
class Writer:
    """Lines of kernel text under a growing indent."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1

    def add(self, *lines: str) -> None:
        self.lines += ["    " * self.depth + line for line in lines]

    def open(self, line: str) -> None:
        self.add(line)
        self.depth += 1

    def close(self, count: int = 1) -> None:
        self.depth -= count


@dataclass
class Loops:
    """The loops that both sides walk.

    `kind` "flat": one loop.  "step": one loop in steps.  "nest": two loops, all tasks counted.  "data": an inner
    bound read from memory.  "guard": a condition read from memory selects tasks.  "last": two loops, the last outer
    trip runs longer to drain.  "restart": two loops, slots by the inner index.  "two": two loops one after another.
    """

    kind: Literal["flat", "step", "nest", "data", "guard", "last", "restart", "two"]
    start: int = 0
    step: int = 1
    bound: str = "n"
    inner: str = "m"

    def parameters(self) -> list[str]:
        text = f"{self.bound} {self.inner if self.nested else ''} {'m' if self.kind == 'two' else ''}"
        words = re.findall(r"\w+", text)
        return ["n", *(p for p in ("m", "k") if p in words)]

    @property
    def nested(self) -> bool:
        return self.kind in ("nest", "restart", "last")

    def lags(self) -> bool:
        """Whether stages may lag behind the loop."""
        return self.kind in ("flat", "last")


class Pipeline:
    """One random kernel."""

    def __init__(self, random: Random) -> None:
        self.random = r = random
        self.loops = self.choose_loops()
        self.block = r.random() < 0.12 and self.loops.kind in ("flat", "nest")  # a sum over blocks with phases
        self.blocks = r.choice(("3", "q", "2", "1") if len(self.loops.parameters()) < 3 else ("1", "2", "3"))
        self.flags = r.random() < 0.2
        self.streams = self.choose_streams()
        self.text = self.render()

    # ------------------------------------------------------------------------------------------ choices

    def choose_loops(self) -> Loops:
        r = self.random
        kinds = ["flat"] * 9 + ["step", "step", "nest", "nest", "data", "guard", "last", "last", "restart", "two"]
        loops = Loops(r.choice(kinds))  # type: ignore[arg-type]
        if loops.kind == "step":
            loops.step = r.choice((2, 3))
            loops.start = r.choice((0, 1))
        if loops.kind == "flat" and r.random() < 0.3:
            loops.bound = r.choice(("n + 1", "min(n, 5)", "2 * n", "max(n - 1, 0)", "n // 2", "7"))
        if loops.nested:
            loops.inner = r.choice(("m", "m", "m", "2", "3", "i", "m + i", "min(m, k)"))
            if loops.kind == "last" and loops.inner != "2":
                loops.inner = "m"
        return loops

    def choose_streams(self) -> list[Stream]:
        r = self.random
        count = r.choice((1, 1, 2, 2, 2, 3, 3))
        start: ir.Core = r.choice(("cube", "cube", "vector"))
        other: ir.Core = "vector" if start == "cube" else "cube"
        lags = {"cube": 0, "vector": 0}
        ids = list(range(16))
        if r.random() < 0.3:
            r.shuffle(ids)
        found: list[Stream] = []
        fresh = r.random() < 0.75  # each stream goes on where the one before ended, or all start at the same side
        for number in range(count):
            producer = (start if number % 2 == 0 else other) if fresh else r.choice((start, other))
            stream = self.choose_stream(number, producer, lags, ids)
            found.append(stream)
        return found

    def choose_stream(self, number: int, producer: ir.Core, lags: dict[str, int], ids: list[int]) -> Stream:
        r = self.random
        consumer = "vector" if producer == "cube" else "cube"
        if self.loops.lags() and r.random() < 0.45:
            lags[consumer] += r.choice((1, 1, 2))
        lag = (lags[producer], lags[consumer])
        depth = r.choice((1, 2, 2, 2, 3, 3, 4))
        scheme: Scheme = r.choice(("credit",) * 6 + ("bare", "ready", "ready", "messages"))
        index: Index = r.choice(("task", "task", "task", "counter", "cursor", "ring"))
        if self.loops.kind not in ("flat", "restart") and index == "task":
            index = "counter"
        if self.loops.kind != "flat" and index == "ring":
            index = "counter"
        if scheme == "bare" and self.loops.kind not in ("flat",):
            scheme = "credit"
        while 2 * depth > len(ids) and depth > 1:
            depth -= 1
        if len(ids) < 2:
            scheme = "messages"
        stream = Stream(number, producer, depth, scheme, index, lag)
        if scheme != "messages":
            stream.ready = tuple(ids.pop(0) for _ in range(depth))
            if scheme != "ready":
                stream.release = tuple(ids.pop(0) for _ in range(depth))
        pipes = {"cube": ("FIX", "FIX", "FIX", "MTE1"), "vector": ("V", "V", "MTE3", "MTE2")}
        stream.pipes = (r.choice(pipes[producer]), r.choice(pipes[consumer]))
        stream.slots = r.choice((1, 2, 2, 4, 4, 6, 8, 3, 5))
        if scheme != "messages" and producer == "cube" and r.random() < 0.08:
            stream.lane = r.choice((0, 1))
        stream.annotated = index == "task" and r.random() < 0.4
        stream.drained = r.random() < 0.97
        return stream

    # ------------------------------------------------------------------------------------------ text

    def render(self) -> str:
        w = Writer(depth=0)
        parameters = self.loops.parameters()
        if self.block and self.blocks == "q":
            parameters.append("q")
        w.open(f"kernel pipeline({', '.join(parameters)}):")
        for p in parameters:
            low = 1 if p == "q" or self.random.random() < 0.06 else 0
            high = self.random.choice((15, 6)) if self.random.random() < 0.06 else None
            w.add(f"assume {p} >= {low}" if high is None else f"assume {low} <= {p} <= {high}")
        self.declare(w)
        for core in ("cube", "vector"):
            w.add("")
            w.open(f"section {core}:")
            self.section(w, core)  # type: ignore[arg-type]
            w.close()
        return "\n".join(w.lines) + "\n"

    def declare(self, w: Writer) -> None:
        for s in self.streams:
            if s.scheme == "messages":
                w.add(f"fifo f{s.number}: {s.producer} -> {s.consumer}, slots = {s.slots}, id = {s.number}")
                continue
            w.add(f"R{s.number} = {_tuple(s.ready)}")
            if s.release:
                w.add(f"B{s.number} = {_tuple(s.release)}")
            space = "Vec" if s.producer == "cube" else "Mat"
            w.add(f"buffer {s.name}[{s.depth}] in {space}")
            if s.index == "ring":
                w.add(f"ring r{s.number}[{s.depth + max(s.lag)}](slot)")
        w.add("buffer keep_c in Mat mutex (0)", "buffer keep_v in Vec mutex (0)")
        if self.block:
            w.add("buffer acc in Acc")
        if self.flags:
            w.add("buffer tile in Vec")

    def section(self, w: Writer, core: ir.Core) -> None:
        mine = [(s, end) for s in self.streams for end in (0, 1) if s.core(end) == core]
        mine = self.order(mine)
        w.add(f"load {'keep_c' if core == 'cube' else 'keep_v'} <- x @ MTE2")
        for s, end in mine:
            ahead = range(s.depth if s.scheme == "credit" and end == 1 else 0)
            if s.lane is not None and core == "vector" and ahead:
                w.open(f"if sub == {s.lane}:")
            for k in ahead:
                self.sync(w, "set", s, 1, f"B{s.number}[{k}]")
            if s.lane is not None and core == "vector" and ahead:
                w.close()
            if self.counts(s):
                w.add(f"c{s.number} = 0")
        if self.flags and core == "vector":
            w.add("sync_src 1: V -> MTE2")
        self.walk(w, core, mine)
        if self.flags and core == "vector":
            w.add("sync_dst 1: V -> MTE2")
        for s, end in mine:
            if end == 0 and s.drained and s.release:
                self.drain(w, s)

    def order(self, mine: list[tuple[Stream, int]]) -> list[tuple[Stream, int]]:
        """Within one iteration: mostly in the order of the chain, sometimes shuffled."""
        if self.random.random() < 0.2:
            self.random.shuffle(mine)
        return mine

    def drain(self, w: Writer, s: Stream) -> None:
        guard = s.lane is not None and s.producer == "vector"
        if guard:
            w.open(f"if sub == {s.lane}:")
        if s.scheme == "credit":
            for k in range(s.depth):
                self.sync(w, "wait", s, 0, f"B{s.number}[{k}]")
        else:
            total = self.loops.bound
            w.open(f"for e in range(max({total} - {s.depth}, 0), {total}):")
            self.sync(w, "wait", s, 0, f"B{s.number}[e % {s.depth}]")
            w.close()
        if guard:
            w.close()

    def walk(self, w: Writer, core: ir.Core, mine: list[tuple[Stream, int]]) -> None:
        loops = self.loops
        extra = max((s.lag[end] for s, end in mine), default=0)
        match loops.kind:
            case "flat":
                w.open(f"for t in range({loops.bound}{f' + {extra}' if extra else ''}):")
                self.body(w, core, mine, extra, loops.bound)
                w.close()
            case "step":
                w.open(f"for t in range({loops.start}, n, {loops.step}):")
                self.body(w, core, mine, 0, "n")
                w.close()
            case "guard":
                w.open(f"for t in range({loops.bound}):")
                w.open("if need(t) > 0:")
                self.body(w, core, mine, 0, "n")
                w.close(2)
            case "data":
                w.open("for i in range(n):")
                w.open("for t in range(size(i)):")
                self.body(w, core, mine, 0, "n")
                w.close(2)
            case "nest" | "restart":
                w.open("for i in range(n):")
                w.open(f"for t in range({loops.inner}):")
                self.body(w, core, mine, 0, "n")
                w.close(2)
            case "two":
                for bound in ("n", "m"):
                    w.open(f"for t in range({bound}):")
                    self.body(w, core, mine, 0, bound)
                    w.close()
            case "last":
                w.add("g = 0")
                w.open("for i in range(n):")
                w.open(f"for t in range({loops.inner}{f' + ({extra} if i == n - 1 else 0)' if extra else ''}):")
                self.body(w, core, mine, extra, loops.inner)
                w.add("g = g + 1")
                w.close(2)

    def body(self, w: Writer, core: ir.Core, mine: list[tuple[Stream, int]], extra: int, bound: str) -> None:
        before = len(w.lines)
        if self.flags and core == "vector":
            w.add(
                "sync_dst 1: V -> MTE2", "load tile <- x @ MTE2", "sync_src 0: MTE2 -> V", "sync_dst 0: MTE2 -> V",
                "add y <- tile @ V", "sync_src 1: V -> MTE2",
            )  # fmt: skip
        for s, end in mine:
            opened = 0
            if s.lane is not None and core == "vector":
                w.open(f"if sub == {s.lane}:")
                opened += 1
            if extra:
                w.open(f"if {self.guard(s.lag[end], extra, bound)}:")
                opened += 1
            self.stage(w, s, end)
            w.close(opened)
        if len(w.lines) == before:
            w.add("pass")

    def guard(self, lag: int, extra: int, bound: str) -> str:
        if self.loops.kind == "last":
            # the last outer trip runs on; earlier ones have no extra iterations
            late = f"t < {bound}{f' + {lag}' if lag else ''}"
            if self.random.random() < 0.2:
                late = f"(i < n - 1 or {late})"
            return late if lag == 0 else f"g >= {lag}" if lag == extra else f"g >= {lag} and {late}"
        upper = f"t < {bound}{f' + {lag}' if lag else ''}"
        if lag == extra:
            return f"t >= {lag}"
        return upper if lag == 0 else f"t >= {lag} and {upper}"

    # ------------------------------------------------------------------------------------------ one stage

    def task(self, s: Stream, end: int) -> str:
        """The number of the task that this end handles now, as an expression."""
        if self.counts(s):
            return f"c{s.number}"
        return f"t - {s.lag[end]}" if s.lag[end] else "t"

    def slot(self, w: Writer, s: Stream, end: int) -> str:
        task = self.task(s, end)
        if s.index == "cursor":
            w.add(f"e{s.number} = {s.name}.next()")
            return f"e{s.number}"
        where = f"({task}) % {s.depth}" if " " in task else f"{task} % {s.depth}"
        if s.depth == 1 and self.random.random() < 0.5:
            return "0"
        if s.index == "ring":
            size = s.depth + max(s.lag)
            at = f"r{s.number}[({task}) % {size}].slot"
            w.add(f"{at} = {where}")
            return at
        return where

    def stage(self, w: Writer, s: Stream, end: int) -> None:
        core = s.core(end)
        keep = "keep_c" if core == "cube" else "keep_v"
        if s.scheme == "messages":
            self.message(w, s, end, keep)
            return
        slot = self.slot(w, s, end)
        pipe = s.pipes[end]
        task = f" task = {self.task(s, end)}" if s.annotated else ""
        if end == 0:
            if self.block and core == "cube":
                self.sum(w)
            if s.scheme == "bare":
                w.open(f"if {self.task(s, end)} >= {s.depth}:")
                self.sync(w, "wait", s, 0, f"B{s.number}[{slot}]")
                w.close()
            elif s.scheme == "credit":
                self.sync(w, "wait", s, 0, f"B{s.number}[{slot}]")
            if core == "cube":
                lanes = f" lanes = {s.lane}" if s.lane is not None else ""
                w.add(f"move {s.name}[{slot}] <- {keep} @ {pipe}{lanes}{task}")
            else:
                w.add(f"insert {s.name}[{slot}] part sub of 2 <- {keep} @ {pipe}{task}")
            self.sync(w, "set", s, 0, f"R{s.number}[{slot}]")
        else:
            self.sync(w, "wait", s, 1, f"R{s.number}[{slot}]")
            w.add(f"take {keep} <- {s.name}[{slot}] @ {pipe}{task}")
            if s.release:
                self.sync(w, "set", s, 1, f"B{s.number}[{slot}]")
        if self.counts(s):
            w.add(f"c{s.number} = c{s.number} + 1")

    def counts(self, s: Stream) -> bool:
        return s.index == "counter" or self.loops.kind in ("data", "guard")

    def sum(self, w: Writer) -> None:
        """A sum over blocks, handed over by phases."""
        k = self.blocks
        w.open(f"for b in range({k}):")
        for test, op, phase in (
            (f"if b == 0 and b == {k} - 1:", "matmul acc <- a", "Final"),
            ("elif b == 0:", "matmul acc <- a", "Partial"),
            (f"elif b == {k} - 1:", "matmul_acc acc <- acc, a", "Final"),
            ("else:", "matmul_acc acc <- acc, a", "Partial"),
        ):
            w.open(test)
            w.add(f"{op} @ M phase = {phase}")
            w.close()
        w.close()
        w.add("store o <- acc @ FIX phase = Final")

    def message(self, w: Writer, s: Stream, end: int, keep: str) -> None:
        to, name = ("aiv" if s.producer == "cube" else "aic"), f"x{s.number}"
        sender = "aic" if s.producer == "cube" else "aiv"
        if end == 0:
            w.add(f"make {name} <- {keep} @ {s.pipes[0]}", f"tpush_to_{to} {name} id = {s.number}")
        else:
            w.add(f"{name} <- tpop_from_{sender} id = {s.number}", f"use {keep} <- {name} @ {s.pipes[1]}")
            w.add(f"tfree_to_{sender} {name} id = {s.number}")
        if self.counts(s):
            w.add(f"c{s.number} = c{s.number} + 1")

    def sync(self, w: Writer, kind: str, s: Stream, end: int, ident: str) -> None:
        mode = ""
        if s.lane is not None:
            mode = " mode = UNICAST_BLOCK" + (f" lane = {s.lane}" if s.core(end) == "cube" else "")
        w.add(f"{kind}_cross_core {ident} @ {s.pipes[end]}{mode}")


def _tuple(ids: tuple[int, ...]) -> str:
    return f"({ids[0]},)" if len(ids) == 1 else f"({', '.join(map(str, ids))})"


def pipeline(seed: int | str) -> ir.Kernel:
    """The pipeline with this number."""
    return parse(Pipeline(Random(f"pipeline {seed}")).text)
