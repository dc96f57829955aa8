"""Where does a pipelined loop stand in its kernel, and what does the rest of the kernel do with its buffers?"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencepost import ir
from fencepost.pipeline.forms import Scope


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The kernel around a loop.

    `enclosing` are the loops and branches around it, outermost first, each with the number of the branch that holds
    the loop (0 for loops, -1 for else).  `read` are the buffers that the rest of the kernel may read as the loop left
    them; `written` those that it writes.  `repeated`: the loop may run several times.  `refilled` are the buffers that
    are surely written between two executions of the loop.
    """

    kernel: ir.Kernel
    enclosing: tuple[tuple[ir.For | ir.If | ir.Pipelined, int], ...]
    read: frozenset[str]
    written: frozenset[str]
    repeated: bool
    refilled: frozenset[str]

    def scope(self, loop: ir.Pipelined) -> Scope:
        """What names mean in the body of the loop, before the body itself is looked at."""
        return Scope(loop.var, loop.start, loop.stop, {c.name: c.value for c in self.kernel.constants})


def find(loop: ir.Pipelined, kernel: ir.Kernel) -> Surroundings:
    """Locate `loop` in `kernel`.

    Raises:
        ValueError: the loop is not there.
    """
    path = _path(loop, kernel)
    enclosing: list[tuple[ir.For | ir.If | ir.Pipelined, int]] = []
    flow = _Flow()
    written: set[str] = set()
    refilled: set[str] = set()
    repeated = False
    inner: ir.Stmt = loop
    for owner, branch, before, after in reversed(path):
        flow.run(after)
        written |= _written((*before, *after))
        if isinstance(owner, (ir.For, ir.Pipelined)):
            again = flow.copy()
            again.run((*before, inner) if repeated else before)
            if not repeated:
                refilled = again.filled
            flow.exposed |= again.exposed
            repeated = True
        if not isinstance(owner, (ir.Kernel, ir.Section)):
            enclosing.insert(0, (owner, branch))
            inner = owner
    own = {id(owner) for owner, *_ in path}
    for item in kernel.body:
        if id(item if isinstance(item, ir.Section) else kernel) not in own:
            body = item.body if isinstance(item, ir.Section) else (item,)
            flow.exposed |= _read(body)
            written |= _written(body)
    return Surroundings(
        kernel, tuple(enclosing), frozenset(flow.exposed), frozenset(written), repeated, frozenset(refilled)
    )


@dataclass
class _Flow:
    """What a piece of program, run in order, reads of what was there before it.

    `exposed` are the buffers whose old contents may be read; `filled` are surely overwritten.
    """

    exposed: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)

    def copy(self) -> _Flow:
        return _Flow(set(self.exposed), set(self.filled))

    def run(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case ir.DataOp():
                    self.exposed |= {a.name for a in stmt.reads} - self.filled
                    self.filled |= {a.name for a in stmt.writes if a.index is None and a.part is None}
                case ir.If(branches, orelse):
                    self._branches([*(arm for _, arm in branches), orelse])
                case ir.For(body=inner) | ir.Pipelined(body=inner):
                    once = self.copy()
                    once.run(inner)
                    self.exposed |= once.exposed
                case _:
                    self.exposed |= _read((stmt,)) - self.filled

    def _branches(self, arms: list[tuple[ir.Stmt, ...]]) -> None:
        ends = []
        for arm in arms:
            end = self.copy()
            end.run(arm)
            self.exposed |= end.exposed
            ends.append(end.filled)
        self.filled = set.intersection(*ends)


_Owner = ir.Kernel | ir.Section | ir.For | ir.If | ir.Pipelined
_Level = tuple[_Owner, int, tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]
"""A block around the loop: its owner, the branch, the statements before the loop and those after it."""


def _path(loop: ir.Pipelined, kernel: ir.Kernel) -> list[_Level]:
    plain = tuple(s for s in kernel.body if not isinstance(s, ir.Section))
    stack: list[tuple[_Owner, int, tuple[ir.Stmt, ...], list[_Level]]] = [(kernel, 0, plain, [])]
    stack += [(s, 0, s.body, []) for s in kernel.body if isinstance(s, ir.Section)]
    while stack:
        owner, branch, body, above = stack.pop()
        for n, stmt in enumerate(body):
            here: list[_Level] = [*above, (owner, branch, body[:n], body[n + 1 :])]
            if stmt is loop:
                return here
            match stmt:
                case ir.For(body=inner) | ir.Pipelined(body=inner):
                    stack.append((stmt, 0, inner, here))
                case ir.If(branches, orelse):
                    stack += [(stmt, k, arm, here) for k, (_, arm) in enumerate(branches)]
                    stack.append((stmt, -1, orelse, here))
    raise ValueError(f"kernel {kernel.name} does not hold this loop")


def _operations(body: tuple[ir.Stmt, ...]) -> list[ir.DataOp]:
    return [n for s in body for n in ir.walk(s) if isinstance(n, ir.DataOp)]


def _read(body: tuple[ir.Stmt, ...]) -> set[str]:
    names = {a.name for op in _operations(body) for a in op.reads}
    binds = [n.value for s in body for n in ir.walk(s) if isinstance(n, (ir.Bind, ir.Assign))]
    names |= {n.id for value in binds for n in ir.walk(value) if isinstance(n, ir.Name)}
    names |= {n.name for value in binds for n in ir.walk(value) if isinstance(n, ir.Item)}
    messages = (n for s in body for n in ir.walk(s) if isinstance(n, ir.Push))
    return names | {m.value for m in messages}


def _written(body: tuple[ir.Stmt, ...]) -> set[str]:
    return {a.name for op in _operations(body) for a in op.writes}
