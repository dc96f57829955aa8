"""Which small kernels mix every mechanism without any design?  Loop-free, a few operations per agent.

Most of these kernels hang, race or leave signals behind; they are there to compare models of the execution, not to
look like kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from fencepost import ir

Body = list[ir.Stmt]
CUBE: tuple[ir.Pipe, ...] = ("M", "FIX", "MTE1", "S")
VECTOR: tuple[ir.Pipe, ...] = ("V", "MTE3", "MTE2", "S")
MODES: tuple[ir.Mode, ...] = ("INTRA_BLOCK", "INTRA_BLOCK", "UNICAST_BLOCK", "INTER_SUBBLOCK", "INTER_BLOCK")


def number(value: int) -> ir.Int:
    return ir.Int(value)


@dataclass
class Chaos:
    """A generator of one kernel; `themes` says which mechanisms it mixes."""

    random: Random
    themes: set[str] = field(default_factory=set)

    def kernel(self) -> ir.Kernel:
        r = self.random
        pool = ["cross", "memory", "flags", "mutex", "phases", "fifo", "barrier", "sync_all", "modes", "alias", "parts"]
        self.themes = {"cross", "memory", *r.sample(pool, r.randint(1, 4))}
        if {"fifo", "phases"} <= self.themes:
            self.themes.discard("phases")
        cube, vector = self.body("cube", r.randint(2, 5)), self.body("vector", r.randint(1, 4))
        self.links(cube, vector)
        buffers = (
            ir.Buffer("qk", "Vec", number(2)),
            ir.Buffer("p", "Vec", None, mutex=((number(0),),)),
            ir.Buffer("mat", "Mat", number(2)),
            ir.Buffer("left", "Left", number(2), mutex=((number(0), number(1)), (number(1),))),
            ir.Buffer("acc", "Acc", None, mutex=((number(2),),)),
            ir.Buffer("rows_a", "Mat", None, (number(0),), number(2), number(4), number(2)),
            ir.Buffer("rows_b", "Mat", number(2), (number(2),), number(2), number(4), number(1)),
            ir.Buffer("flat", "Mat", number(3), (number(0),), number(2)),
        )
        fifos = ()
        if "fifo" in self.themes:
            fifos = (
                ir.Fifo("down", "cube", number(r.randint(1, 3)), lanes=r.choice((1, 2, 2))),
                ir.Fifo("up", "vector", number(r.randint(1, 3)), lanes=r.choice((1, 2, 2))),
            )
        return ir.Kernel(
            "chaos",
            target=r.choice(("a5", "a5", "a3")) if not self.themes & {"phases", "mutex", "modes"} else "a5",
            auto_mutex=r.random() < 0.8,
            buffers=buffers,
            fifos=fifos,
            body=(ir.Section("cube", tuple(cube)), ir.Section("vector", tuple(vector))),
        )

    # ------------------------------------------------------------------------------------------ pairs of operations

    def links(self, cube: Body, vector: Body) -> None:
        """Add pairs of operations that belong together, roughly in matching order; now and then one end is missing."""
        r = self.random
        for _ in range(r.randint(1, 3)):
            self.cross(cube, vector)
        for core, body in (("cube", cube), ("vector", vector)):
            pipes = CUBE if core == "cube" else VECTOR
            for theme, make in (("flags", self.flag), ("mutex", self.mutex)):
                for _ in range(r.randint(0, 2) if theme in self.themes else 0):
                    self.insert(body, *make(pipes))
        for _ in range(r.randint(1, 3) if "fifo" in self.themes else 0):
            self.message(cube, vector, down=r.random() < 0.5)

    def insert(self, body: Body, first: ir.Stmt, second: ir.Stmt) -> None:
        r = self.random
        a, b = sorted((r.randint(0, len(body)), r.randint(0, len(body))))
        if r.random() < 0.93:
            body.insert(b, second)
        if r.random() < 0.95:
            body.insert(a, first)

    def across(self, one: Body, two: Body, at: float, first: ir.Stmt, second: ir.Stmt) -> None:
        r = self.random
        there = min(1.0, max(0.0, at + r.uniform(-0.2, 0.3)))
        if r.random() < 0.97:
            one.insert(round(at * len(one)), first)
        if r.random() < 0.97:
            two.insert(round(there * len(two)), second)

    def cross(self, cube: Body, vector: Body) -> None:
        r = self.random
        ident, down = number(r.randint(0, 2)), r.random() < 0.5
        mode: ir.Mode = "INTRA_BLOCK"
        lane = None
        if "modes" in self.themes and r.random() < 0.4:
            mode, lane = "UNICAST_BLOCK", number(r.randint(0, 1))
        mine: ir.Stmt = (ir.SetCross if down else ir.WaitCross)(ident, r.choice(CUBE), mode, lane)
        theirs: ir.Stmt = (ir.WaitCross if down else ir.SetCross)(ident, r.choice(VECTOR), mode)
        if lane is not None:
            theirs = ir.If(((ir.Compare(ir.Name("sub"), (("==", lane),)), (theirs,)),))
        if down:
            self.across(cube, vector, r.random(), mine, theirs)
        else:
            self.across(vector, cube, r.random(), theirs, mine)

    def flag(self, pipes: tuple[ir.Pipe, ...]) -> tuple[ir.Stmt, ir.Stmt]:
        r = self.random
        ident = number(r.randint(0, 1))
        a, b = r.choice(((pipes[0], pipes[1]), (pipes[1], pipes[0]), (pipes[2], pipes[0])))
        return ir.SyncSrc(ident, a, b), ir.SyncDst(ident, a, b)

    def mutex(self, pipes: tuple[ir.Pipe, ...]) -> tuple[ir.Stmt, ir.Stmt]:
        ident, pipe = number(self.random.randint(0, 2)), self.random.choice(pipes)
        return ir.MutexLock(ident, pipe), ir.MutexUnlock(ident, pipe)

    def message(self, cube: Body, vector: Body, *, down: bool) -> None:
        r = self.random
        sender, receiver = (cube, vector) if down else (vector, cube)
        to: ir.Core = "vector" if down else "cube"
        of: ir.Core = "cube" if down else "vector"
        pipes = (CUBE if down else VECTOR, VECTOR if down else CUBE)
        one, two = (("S" if r.random() < 0.7 else p[0]) for p in pipes)
        at = r.random()
        pop: ir.Stmt = ir.Pop("x", of, pipe=two)
        self.across(sender, receiver, at, ir.Push("x", to, pipe=one), pop)
        place = next((i for i, s in enumerate(receiver) if s is pop), None)
        if place is not None and r.random() < 0.95:
            receiver.insert(r.randint(place + 1, len(receiver)), ir.Free("x", of, pipe=two))

    def body(self, core: ir.Core, count: int) -> Body:
        return [self.guarded(core, self.statement(core)) for _ in range(count)]

    def guarded(self, core: ir.Core, stmt: ir.Stmt) -> ir.Stmt:
        if core == "vector" and self.random.random() < 0.1:
            return ir.If(((ir.Compare(ir.Name("sub"), (("==", number(0)),)), (stmt,)),))
        return stmt

    def statement(self, core: ir.Core) -> ir.Stmt:
        r = self.random
        kinds = {
            "cross": 0, "memory": 8, "flags": 0, "mutex": 0, "phases": 6 if core == "cube" else 0, "fifo": 0,
            "barrier": 1, "sync_all": 0.5, "modes": 1, "alias": 6 if core == "cube" else 0, "parts": 4,
        }  # fmt: skip
        names = [k for k in sorted(self.themes) if kinds[k]]
        kind = r.choices(names, [kinds[k] for k in names])[0]
        if r.random() < 0.04:
            kind = "cross"
        return getattr(self, f"make_{kind}")(core, CUBE if core == "cube" else VECTOR)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------------------------------ one mechanism each

    def make_cross(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        r = self.random
        return r.choice((ir.SetCross, ir.WaitCross))(number(r.randint(0, 2)), r.choice(pipes))

    def make_modes(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        r = self.random
        mode = r.choice(MODES)
        lane = number(r.randint(0, 1)) if mode == "UNICAST_BLOCK" and core == "cube" and r.random() < 0.5 else None
        high = mode == "UNICAST_BLOCK" and core == "cube" and lane is None and r.random() < 0.5
        ident = number(r.randint(0, 2) + (16 if high else 0))
        return r.choice((ir.SetCross, ir.WaitCross))(ident, r.choice(pipes), mode, lane)

    def make_memory(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        r = self.random
        pool = ["qk", "qk", "mat"] + (["left", "acc"] if core == "cube" else ["p", "p"])
        write, read = r.choice(pool), r.choice(pool)
        lanes = r.choice(("both", "both", "0", "1")) if core == "cube" else "both"
        which = r.random()
        return ir.DataOp(
            "op",
            (self.access(write),) if which < 0.7 else (),
            (self.access(read),) if which > 0.4 else (),
            r.choice(pipes),
            lanes=lanes,  # type: ignore[arg-type]
        )

    def access(self, name: str) -> ir.Access:
        return ir.Access(name, None if name in ("p", "acc") else number(self.random.randint(0, 1)))

    def make_parts(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        r = self.random
        n = r.choice((2, 3))
        part: ir.Expr = ir.Name("sub") if core == "vector" and r.random() < 0.7 else number(r.randrange(n))
        access = ir.Access("mat", number(r.randint(0, 1)), part, number(n))
        write = r.random() < 0.6
        return ir.DataOp("half", (access,) if write else (), () if write else (access,), r.choice(pipes))

    def make_alias(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        r = self.random
        name = r.choice(("rows_a", "rows_b", "flat"))
        index = {"rows_a": None, "rows_b": number(r.randint(0, 1)), "flat": number(r.randint(0, 2))}[name]
        access = ir.Access(name, index)
        write = r.random() < 0.6
        return ir.DataOp("tile", (access,) if write else (), () if write else (access,), r.choice(pipes))

    def make_phases(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        r = self.random
        phase = r.choice(("Partial", "Final", "Final"))
        acc = ir.Access("acc")
        if r.random() < 0.55:
            reads = (acc,) if r.random() < 0.3 else ()
            return ir.DataOp("matmul", (acc,), reads, "M", phase)  # type: ignore[arg-type]
        return ir.DataOp("store", (), (acc,), r.choice(("FIX", "FIX", "FIX", "MTE1")), phase)  # type: ignore[arg-type]

    def make_barrier(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        return ir.Barrier(self.random.choice(("ALL", "ALL", pipes[0])))

    def make_sync_all(self, core: ir.Core, pipes: tuple[ir.Pipe, ...]) -> ir.Stmt:
        return ir.SyncAll()


def chaos(seed: int) -> ir.Kernel:
    """The kernel with this number."""
    return Chaos(Random(f"chaos {seed}")).kernel()
