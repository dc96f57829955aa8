"""Where does a pipelined loop stand in its kernel, and what does the rest of the kernel do with its buffers?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from fencepost import ir
from fencepost.pipeline.forms import Scope

After: TypeAlias = Literal["nothing", "rounds", "executions"]
"""What loops around a loop do after an execution of it: no more rounds, rounds without the loop, or any rounds."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The kernel around a loop.

    `enclosing` are the loops and branches around it, outermost first, each with the number of the branch that holds
    the loop (0 for loops, -1 for else).  `read` are the buffers that the rest of the kernel may read as the loop left
    them; `written` those that it writes, `overwritten` those that it may write after the loop.  `repeated`: the loop
    may run several times; `after` says what may come after the execution that is looked at.  `refilled` are the
    buffers that are surely written between two executions of the loop.  `others` is what is not before the loop:
    behind it, and in other sections.  `jumps` says whether a round of a loop around may end early; where the loop is
    reached, none of the conditions `passed` held in that round.
    """

    kernel: ir.Kernel
    enclosing: tuple[tuple[ir.For | ir.If | ir.Pipelined, int], ...]
    read: frozenset[str]
    written: frozenset[str]
    overwritten: frozenset[str]
    repeated: bool
    after: After
    refilled: frozenset[str]
    others: tuple[ir.Section | ir.Stmt, ...]
    jumps: bool
    passed: tuple[ir.Expr, ...]

    @property
    def followed(self) -> bool:
        """Whether the loop may run again after the execution that is looked at."""
        return self.repeated and self.after == "executions"

    def slots(self, buffer: str, written: bool) -> frozenset[int] | None:
        """The slots of a buffer that are read, or `written`, after the loop or beside it; None if it may be any."""
        accesses: list[ir.Access] = []
        for node in (n for item in self.others for n in ir.walk(item)):
            match node:
                case ir.DataOp(writes=writes, reads=reads):
                    accesses += (a for a in (writes if written else reads) if a.name == buffer)
                case ir.Name(name) | ir.Item(name, _) | ir.Call(name, _) | ir.Push(value=name) if name == buffer:
                    return None
                case ir.Free(value=name) | ir.Pop(value=name) | ir.Field(name, _, _) if name == buffer:
                    return None
        slots = frozenset(a.index.value for a in accesses if isinstance(a.index, ir.Int) and a.part is None)
        known = all(isinstance(a.index, ir.Int) and a.part is None for a in accesses)
        again = self.repeated and self.after != "nothing"
        return slots if accesses and known and not again else None

    def scope(self, loop: ir.Pipelined) -> Scope:
        """What names mean in the body of the loop, before the body itself is looked at."""
        return Scope(loop.var, loop.start, loop.stop, {c.name: c.value for c in self.kernel.constants})


def find(loop: ir.Pipelined, kernel: ir.Kernel, after: After = "executions") -> Surroundings:
    """Locate `loop` in `kernel`.

    Args:
        after: what may come after the execution of the loop that is looked at.

    Raises:
        ValueError: the loop is not there.
    """
    path = _path(loop, kernel)
    enclosing: list[tuple[ir.For | ir.If | ir.Pipelined, int]] = []
    flow = _Flow(loop)
    written, later = set[str](), set[str]()
    repeated, jumps = False, False
    passed: list[ir.Expr] = []
    for owner, branch, before, behind in reversed(path):
        flow.run(behind)
        written |= {name for stmt in (*before, *behind) for name in written_by(stmt)}
        later |= {name for stmt in behind for name in written_by(stmt)}
        if isinstance(owner, (ir.For, ir.Pipelined)):
            repeated = True
            if after != "nothing":
                later |= {name for stmt in owner.body for name in written_by(stmt, loop)}
            flow.next_round(owner, last=after == "nothing")
        if not isinstance(owner, (ir.Kernel, ir.Section)):
            enclosing.insert(0, (owner, branch))
    for place, (_, _, before, behind) in enumerate(path):
        if any(isinstance(owner, (ir.For, ir.Pipelined)) for owner, *_ in path[: place + 1]):
            jumps = jumps or any(may_jump(stmt) for stmt in (*before, *behind))
            inside = {o.var for o, *_ in path[place + 1 :] if isinstance(o, (ir.For, ir.Pipelined))}
            leaving = (condition for stmt in before for condition in _leaving(stmt))
            passed += [c for c in leaving if not inside & set(read_by(c))]
    own = {id(owner) for owner, *_ in path}
    others = [item for item in kernel.body if id(item if isinstance(item, ir.Section) else kernel) not in own]
    elsewhere = {name for item in others for name in written_by(item)}
    written |= elsewhere
    exposed = flow.exposed | _elsewhere(others, loop, {b.name for b in kernel.buffers})
    refilled = frozenset(set.intersection(*flow.arrivals)) if flow.arrivals else frozenset()
    return Surroundings(
        kernel,
        tuple(enclosing),
        frozenset(exposed),
        frozenset(written),
        frozenset(later | elsewhere),
        repeated,
        after,
        refilled,
        (*(stmt for _, _, _, behind in path for stmt in behind), *others),
        jumps,
        tuple(passed),
    )


def may_jump(stmt: ir.Stmt) -> bool:
    """Whether a statement may leave the loop around it, or the round."""
    match stmt:
        case ir.Break() | ir.Continue():
            return True
        case ir.If(branches, orelse):
            return any(may_jump(inner) for arm in (*(arm for _, arm in branches), orelse) for inner in arm)
    return False


def _leaving(stmt: ir.Stmt) -> Iterator[ir.Expr]:
    """The conditions under which a branch surely leaves the round."""
    if not isinstance(stmt, ir.If):
        return
    others: tuple[ir.Expr, ...] = ()
    for condition, arm in (*stmt.branches, (ir.Int(1), stmt.orelse)):
        if any(isinstance(inner, (ir.Break, ir.Continue)) for inner in arm):
            yield ir.Logic("and", (*others, condition)) if others else condition
        others += (ir.Unary("not", condition),)


def _elsewhere(items: list[ir.Section | ir.Stmt], loop: ir.Pipelined, buffers: set[str]) -> set[str]:
    """What programs beside that of the loop may read of what it left: buffers, and names that they do not define."""
    plain = _Flow(loop)
    exposed = {name for item in items for name in read_by(item)} & buffers
    for item in items:
        if isinstance(item, ir.Section):
            section = plain.copy()
            section.run(item.body)
            exposed |= section.exposed
        else:
            plain.run((item,))
    return exposed | plain.exposed


def read_by(node: ir.Node) -> Iterator[str]:
    """The names that a statement reads anywhere: buffers, values, scalars, functions, rings."""
    for inner in ir.walk(node):
        match inner:
            case ir.Name(name) | ir.Item(name, _) | ir.Call(name, _) | ir.Field(name, _, _):
                yield name
            case ir.DataOp(reads=reads):
                yield from (a.name for a in reads)
            case ir.Push(value=name) | ir.Free(value=name):
                yield name
            case _:
                pass


def written_by(node: ir.Node, without: ir.Node | None = None) -> Iterator[str]:
    """The names of buffers, values and scalars that a statement gives contents anywhere, except in `without`."""
    left_out = set[int]() if without is None else set(map(id, ir.walk(without)))
    for inner in ir.walk(node):
        match inner:
            case _ if id(inner) in left_out:
                pass
            case ir.DataOp(writes=writes):
                yield from (a.name for a in writes)
            case ir.Assign(name=name) | ir.Bind(name=name) | ir.Cursor(name=name) | ir.Pop(value=name):
                yield name
            case ir.For(var=name) | ir.Pipelined(var=name):
                yield name
            case _:
                pass


@dataclass
class _Flow:
    """What a piece of program, run in order, reads of what `loop` left; when it comes to the loop again, it ends.

    `exposed` are the names whose old contents may be read; `filled` are surely overwritten on every path to this place
    (`live`: there is one).  `rounds` and `exits` hold what was filled at jumps to the next round, and out of the loop
    around; `arrivals` what was filled when the loop was reached.
    """

    loop: ir.Pipelined
    exposed: set[str] = field(default_factory=set)
    filled: set[str] = field(default_factory=set)
    live: bool = True
    rounds: list[set[str]] = field(default_factory=list)
    exits: list[set[str]] = field(default_factory=list)
    arrivals: list[set[str]] = field(default_factory=list)

    def copy(self) -> _Flow:
        """This place, for one of several ways on; all of them share what was found so far."""
        return replace(self, filled=set(self.filled))

    def run(self, body: tuple[ir.Stmt, ...]) -> None:
        for stmt in body:
            if not self.live:
                return
            if stmt is self.loop:
                self.arrivals.append(set(self.filled))
                self.live = False
                return
            self._statement(stmt)

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.If(branches, orelse):
                for condition, _ in branches:
                    self._read(condition)
                self._branches([*(arm for _, arm in branches), orelse])
            case ir.For(body=inner) | ir.Pipelined(body=inner):
                for bound in ir.children(stmt):
                    if not isinstance(bound, get_args(ir.Stmt)):
                        self._read(bound)
                once = replace(self.copy(), rounds=[], exits=[])  # there may be no round, so nothing is surely filled
                once.filled.add(stmt.var)
                once.run(inner)
            case ir.Break():
                self.exits.append(self.filled)
                self.live = False
            case ir.Continue():
                self.rounds.append(self.filled)
                self.live = False
            case _:
                self._read(stmt)
                partly = isinstance(stmt, ir.DataOp) and stmt.lanes != "both"
                parts = {a.name for a in stmt.writes if _in_part(a)} if isinstance(stmt, ir.DataOp) else set[str]()
                self.filled |= set() if partly else set(written_by(stmt)) - parts

    def _read(self, node: ir.Node) -> None:
        self.exposed |= set(read_by(node)) - self.filled

    def _branches(self, arms: list[tuple[ir.Stmt, ...]]) -> None:
        ends = [self.copy() for _ in arms]
        for end, arm in zip(ends, arms, strict=True):
            end.run(arm)
        filled = [end.filled for end in ends if end.live]
        self.live = bool(filled)
        self.filled = set.intersection(*filled) if filled else set()

    def next_round(self, owner: ir.For | ir.Pipelined, last: bool) -> None:
        """From the end of the body of `owner`, which holds the loop: run further rounds, and go on behind them.

        There are none if this round is the `last`.
        """
        ends = [*self.rounds, *([self.filled] if self.live else [])]
        exits = [*ends, *self.exits]
        self.rounds.clear()
        self.exits.clear()
        if ends and not last:
            again = replace(self, filled=set.intersection(*ends) | {owner.var}, live=True, rounds=[], exits=[])
            again.run(owner.body)
        self.live = bool(exits)
        self.filled = set.intersection(*exits) if exits else set()


def _in_part(access: ir.Access) -> bool:
    return access.index is not None or access.part is not None


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
