"""Checker: what does each agent of a kernel do, if the formulas that a certificate gives for its loops are right?

A second symbolic execution, on plain terms.  It finds no formula itself: at the head of every loop it takes the given
ones, and claims what proves them by induction.  A claim is a list of conditions that must not hold together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

from fencepost import ir
from fencepost.model.effects import Effect, Resolver
from fencepost.model.program import Compiled, constant, site_arguments
from fencepost.prove.plainterms import (
    Renaming,
    Term,
    add,
    both,
    conjuncts,
    either,
    eq,
    given,
    ite,
    le,
    lt,
    make,
    minus,
    no,
)

Claim = tuple[str, tuple[Term, ...]]
Formulas = Mapping[str, Term]
"""The values at the head of a loop as terms in its index; None: nothing is known of this one."""


class Rejected(Exception):
    """The certificate does not fit the kernel; the message says where."""


@dataclass(frozen=True, eq=False)
class Event:
    """One operation in one copy of an unrolled loop; its executions are the values of `indices` that satisfy `path`.

    `before` counts what its agent did earlier.  `does` holds everything that is counted, with its condition.  `place`
    orders the executions of an agent lexicographically.
    """

    name: str
    agent: str
    stmt: Any
    indices: tuple[str, ...]
    place: tuple[Term, ...]
    path: tuple[Term, ...]
    arguments: tuple[Term, ...]
    task: Term | None
    cases: tuple[tuple[Term, Effect], ...]
    before: Mapping[str, Term]
    does: Mapping[str, Term]

    @property
    def pipe(self) -> str:
        flag = {ir.SyncSrc: "source", ir.SyncDst: "target"}.get(type(self.stmt), "pipe")
        return "S" if isinstance(self.stmt, (ir.Barrier, ir.SyncAll)) else str(getattr(self.stmt, flag))


def numbers(kernel: ir.Kernel, agent: str) -> dict[int, int]:
    """The numbers of the statements of an agent in text order, by identity."""
    core = "cube" if agent == "aic" else "vector"
    mine = [item for item in kernel.body if not isinstance(item, ir.Section) or item.core == core]
    found = [node for item in mine for node in ir.walk(item) if isinstance(node, ir.Stmt)]
    return {id(node): number for number, node in enumerate(found)}


@dataclass
class Walk:
    """Executes one agent's statements.  The environment holds scalars, records, cursors, and counters ("set 0")."""

    compiled: Compiled
    agent: str
    resolver: Resolver
    loops: dict[str, Formulas]
    operands: dict[str, list[tuple[int, ...]]]
    claims: list[Claim] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    env: dict[str, Term] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _path: tuple[Term, ...] = ()
    _depth: int = 0  # how much of the path holds for the whole trip of the innermost loop
    _left: Term = "false"  # whether `continue` has ended the trip
    _changed: set[str] = field(default_factory=set)
    _indices: tuple[str, ...] = ()
    _place: tuple[Term, ...] = ()
    _copies: str = ""

    def __post_init__(self) -> None:
        self.env |= {p: parameter(p) for p in self.compiled.parameters}
        self.env |= {f"cursor of {name}": depth - 1 for name, depth in self.compiled.depths.items()}
        self.env["sub"] = int(self.agent == "aiv1")

    def run(self) -> Walk:
        """Execute everything."""
        self._numbers = numbers(self.compiled.kernel, self.agent)
        for item in self.compiled.kernel.body:
            if not isinstance(item, ir.Section):
                self._block((item,))
            elif (item.core == "cube") == (self.agent == "aic"):
                self._block(item.body)
        return self

    def claim(self, name: str, *conditions: Term) -> None:
        self.claims.append((f"{self.agent}: {name}", conditions))

    def demand(self, name: str, safe: Term) -> None:
        """Claim something of every value of the indices with which control is here."""
        self.claim(name, *self._path, no(safe))

    def _get(self, key: str) -> Term:
        return given(self._path, self.env.get(key, 0))

    def _put(self, values: Mapping[str, Term]) -> None:
        """Assign where control is here, and leave things alone elsewhere."""
        here = both(*self._path[self._depth :])
        self.env |= {key: ite(here, value, self.env.get(key, 0)) for key, value in values.items()}
        self._changed |= values.keys()

    # -------------------------------------------------------------------------------------------- statements

    def _block(self, body: tuple[ir.Stmt, ...]) -> None:
        path = self._path
        for stmt in body:
            if self._left != "false":
                self._path = (*path, no(self._left))
            if "false" not in self._path:
                self._statement(stmt)
        self._path = path

    def _statement(self, stmt: ir.Stmt) -> None:
        match stmt:
            case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                self._put({name: self.integer(value)})
            case ir.StoreField(ring=ring, index=index, field=name, value=value):
                where, new = self.integer(index), self.integer(value)
                records = self._records(ring, name, where)
                self._put({r: ite(eq(where, i), new, self._get(r)) for i, r in enumerate(records)})
            case ir.Cursor(name=name, buffer=buffer, move=move):
                cursor = f"cursor of {buffer}"
                step = {"next": 1, "previous": -1, "current": 0}[move]
                where = make("mod", add(self._get(cursor), step), self.compiled.depths[buffer])
                self._put({name: where, cursor: where} if move == "next" else {name: where})
            case ir.If(branches=branches, orelse=orelse):
                path = self._path
                for test, body in branches:
                    condition, before = self.truth(test), self._path
                    self._path = (*before, *conjuncts(condition))
                    self._block(body)
                    self._path = (*before, *conjuncts(no(condition)))
                self._block(orelse)
                self._path = path
            case ir.For():
                self._loop(stmt)
            case ir.Assert(condition=test):
                self.demand("assert", self.truth(test))
            case ir.Continue():
                self._left = either(self._left, both(*self._path[self._depth :]))
            case ir.Pass():
                pass
            case ir.Break() | ir.Unsupported() | ir.Pipelined():
                raise Rejected(f"{type(stmt).__name__.lower()} is not certified")
            case _:
                self._operation(stmt)

    def _operation(self, stmt: Any) -> None:
        number = self._numbers[id(stmt)]
        expressions = site_arguments(stmt, frozenset(self.compiled.depths))
        arguments, task = tuple(map(self.integer, expressions)), getattr(stmt, "task", None)
        name, cases = f"{self.agent}.{number}{self._copies}", []
        does: dict[str, Term] = {}
        for values in self.operands.pop(name, ()) if arguments else [()]:
            if len(values) != len(arguments):
                raise Rejected(f"operands {values} of {name}")
            effect = self.resolver.effect(self.agent, number, stmt, values)
            condition = both(*map(eq, arguments, values))
            cases.append((condition, effect))
            does |= {key: either(does.get(key, "false"), condition) for key in actions(effect)}
            if effect.illegal:
                self.demand(f"legal operands {values} of {name}", no(condition))
        if cases or not isinstance(stmt, ir.DataOp) or stmt.phase is not None:
            self.demand(f"operands of {name}", either(*(c for c, _ in cases)))
        renewed = (stmt.value,) if isinstance(stmt, ir.Pop) else (a.name for a in getattr(stmt, "writes", ()))
        does |= {f"run {name}": "true", **{f"renew {value}": "true" for value in renewed if value in self._popped()}}
        before = {key: self._get(key) for key in self.env}
        self.events.append(Event(
            name, self.agent, stmt, self._indices, (*self._place, number), self._path, arguments,
            None if task is None else self.integer(task), tuple(cases), before, does,
        ))  # fmt: skip
        for key, condition in does.items():
            if not key.startswith(UNCOUNTED):
                self.env[key] = add(self.env.get(key, 0), ite(both(*self._path[self._depth :], condition), 1, 0))
                self._changed.add(key)

    def _popped(self) -> set[str]:
        return {site.value for site in self.compiled.program(self.agent).sites if isinstance(site, ir.Pop)}

    def _loop(self, stmt: ir.For) -> None:
        lo, hi = self.integer(stmt.start), self.integer(stmt.stop)
        step = constant(stmt.step, self.compiled.scalars, "loop step")
        extent = make("div", add(minus(hi, lo) if step > 0 else minus(lo, hi), abs(step) - 1), abs(step))
        number, left = self._numbers[id(stmt)], self._left
        name = f"{self.agent}.{number}{self._copies}"
        formulas = self.loops.pop(name, None)
        if formulas is not None:
            self._symbolic(stmt, name, formulas, extent, lo, step)
        elif not isinstance(extent, int) or extent > 1_000:
            raise Rejected(f"nothing is said about loop {name}")
        else:
            copies, place = self._copies, self._place
            for k in range(extent):
                self._copies, self._place, self._left = f"{copies}.{k}", (*place, number, k), "false"
                self._put({stmt.var: add(lo, k * step)})
                self._block(stmt.body)
            self._copies, self._place = copies, place
        self._left = left

    def _symbolic(self, stmt: ir.For, name: str, formulas: Formulas, extent: Term, lo: Term, step: int) -> None:
        number = self._numbers[id(stmt)]
        x, indices, path, place = f"{plain(stmt.var)}@{number}{self._copies}", self._indices, self._path, self._place

        def at(trip: Term) -> dict[str, Term]:
            change, free = Renaming({x: trip}), (trip, *indices)
            return {key: (unknown(name, key), *free) if f is None else change(f) for key, f in formulas.items()}

        start, inside, end = at(0), at(x), at(add(x, 1))
        known = [key for key, term in formulas.items() if term is not None]
        for key in known:
            self.claim(f"start of loop {name}, {key}", *path, no(eq(start[key], self._get(key))))
        before, changed, depth = self.env, self._changed, self._depth
        self.env, self._changed = {**before, **inside, stmt.var: add(lo, make("*", x, step))}, set()
        self._path, self._indices, self._place = (*path, le(0, x), lt(x, extent)), (*indices, x), (*place, number, x)
        self._depth, self._left = len(self._path), "false"
        self._block(stmt.body)
        if inside.keys() != self._changed - {stmt.var}:
            raise Rejected(f"loop {name} changes other things: {sorted(inside.keys() ^ self._changed)}")
        for key in known:
            self.claim(f"step of loop {name}, {key}", *self._path, no(eq(end[key], self.env[key])))
        self.env, self._changed, self._depth = before, changed, depth
        self._path, self._indices, self._place = path, indices, place
        gone = (f"after.{name}", *indices) if indices else f"after.{name}"
        self._put({**at(ite(lt(0, extent), extent, 0)), stmt.var: gone})

    # -------------------------------------------------------------------------------------------- expressions

    def integer(self, expr: ir.Expr) -> Term:
        """The value of an expression, as the executor computes it; what it would refuse is claimed not to happen."""
        match expr:
            case ir.Int(value=value):
                return value
            case ir.Name(id=name):
                return self.integer(self.compiled.scalars[name]) if name in self.compiled.scalars else self._get(name)
            case ir.Item(name=name, index=index):
                return self._element([self.integer(e) for e in self.compiled.tuples[name]], self.integer(index))
            case ir.Field(ring=ring, index=index, field=name):
                where = self.integer(index)
                return self._element([self._get(record) for record in self._records(ring, name, where)], where)
            case ir.Unary(op="-", operand=operand):
                return minus(self.integer(operand))
            case ir.Binary(op=op, left=left, right=right):
                a, b = self.integer(left), self.integer(right)
                if op in ("%", "//"):
                    self.demand(f"operands of {op}", both(le(0, a), lt(0, b)))
                return arithmetic(op, a, b)
            case ir.Choose(condition=condition, then=then, other=other):
                c = self.truth(condition)
                return ite(c, self._under(c, then), self._under(no(c), other))
            case ir.Call(function="min" | "max" as f, arguments=arguments):
                found, *rest = map(self.integer, arguments)
                for term in rest:
                    found = ite(le(found, term), *((found, term) if f == "min" else (term, found)))
                return found
            case ir.Call(function=f, arguments=arguments):
                return (f"f.{plain(f)}", *map(self.integer, arguments)) if arguments else f"f.{plain(f)}"
        return ite(self.truth(expr), 1, 0)

    def truth(self, expr: ir.Expr) -> Term:
        """Whether an expression is true."""
        match expr:
            case ir.Unary(op="not", operand=operand):
                return no(self.truth(operand))
            case ir.Compare(first=first, rest=rest):
                found, left = "true", self.integer(first)
                for op, operand in rest:
                    right = self._under(found, operand)
                    found, left = both(found, comparison(op, left, right)), right
                return found
            case ir.Logic(op=op, operands=operands):
                found = "true" if op == "and" else "false"
                for operand in operands:
                    value = no(eq(self._under(found if op == "and" else no(found), operand), 0))
                    found = both(found, value) if op == "and" else either(found, value)
                return found
        return no(eq(self.integer(expr), 0))

    def _under(self, condition: Term, expr: ir.Expr) -> Term:
        """The value of an expression that is evaluated only where a condition holds."""
        path, self._path = self._path, (*self._path, *conjuncts(condition))
        found = self.integer(expr)
        self._path = path
        return found

    def _records(self, ring: str, name: str, index: Term) -> list[str]:
        size = self.compiled.program(self.agent).rings[ring][1]
        self.demand("record", both(le(0, index), lt(index, size)))
        return [f"{ring}[{i}].{name}" for i in range(size)]

    def _element(self, values: list[Term], at: Term) -> Term:
        self.demand("index", both(le(0, at), lt(at, len(values))))
        gaps = {b - a for a, b in pairwise(values)} if all(isinstance(v, int) for v in values) else set()
        if len(gaps) == 1:
            return add(values[0], make("*", gaps.pop(), at))
        return reduce(lambda found, i: ite(eq(at, i), values[i], found), reversed(range(len(values) - 1)), values[-1])


def plain(name: str) -> str:
    """A name of the kernel in the letters of SMT-LIB."""
    return "".join(c if c.isascii() else f"!{ord(c):x}!" for c in name)


def parameter(name: str) -> str:
    """The symbol of a parameter; nothing else is called so."""
    return f"${plain(name)}"


def unknown(loop: str, key: str) -> str:
    """The function that stands for a value at the head of a loop of which nothing is known."""
    return f"any.{loop}." + "".join(c if c.isalnum() and c.isascii() else f"!{ord(c):x}!" for c in key)


def arithmetic(op: str, a: Term, b: Term) -> Term:
    """Products and quotients of two unknowns are functions of which nothing is known."""
    if op in ("+", "-"):
        return add(a, b) if op == "+" else minus(a, b)
    if op == "*":
        return (
            make("*", a, b) if isinstance(a, int) or isinstance(b, int) else ("op.product", *sorted((a, b), key=repr))
        )
    if isinstance(b, int) and b > 0:
        return make("div" if op == "//" else "mod", a, b)
    return ("op.quotient" if op == "//" else "op.remainder", a, b)


def comparison(op: str, a: Term, b: Term) -> Term:
    if op in ("==", "!="):
        return eq(a, b) if op == "==" else no(eq(a, b))
    return lt(a, b) if op == "<" else lt(b, a) if op == ">" else le(a, b) if op == "<=" else le(b, a)


UNCOUNTED = ("acquire ", "leave ", "adds ")


def actions(effect: Effect) -> Iterator[str]:
    """Everything that an operation does, apart from touching memory."""
    yield from (f"set {c}" for c in effect.sets)
    yield from (f"wait {c}" for c in effect.waits)
    yield from (f"acquire {m}" for m in effect.locks)
    yield from (f"leave {m}" for m in effect.unlocks)
    if effect.phase is not None:
        role, final = effect.phase
        for cell in effect.phased:
            yield f"{role} {cell}"
            if final:
                yield f"{'raise' if role == 'produce' else 'lower'} {cell}"
            if role == "produce" and any(cell in touch.cells for touch in effect.reads):
                yield f"adds {cell}"
    match effect.stmt:
        case ir.MutexLock() | ir.MutexUnlock():
            yield f"{'lock' if effect.locks else 'unlock'} {effect.arguments[0]}"
        case ir.Push() | ir.Pop() | ir.Free():
            yield from (f"{type(effect.stmt).__name__.lower()} {ring} {lane}" for ring, lane in effect.rings)
        case ir.SyncAll():
            yield "meet 0"
