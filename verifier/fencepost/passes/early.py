"""What is asked of a value that is kept for later?  It is asked when the value is stored, and the answer kept.

`prev = k` and, a trip later, `if prev == 0` become `first = k == 0` and `if first`.  Small answers take the place of
counters that a prover would have to carry along and compare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from fencepost import ir
from fencepost.passes.aliases import changes
from fencepost.passes.slices import reads
from fencepost.rewrite import constant, rebuild

_PREFIX = "early~"
_ROUNDS = 60  # answers that are kept in one program


@dataclass(frozen=True, slots=True)
class Early:
    """The pass: comparisons and residues of kept scalars and record fields."""

    def run(self, kernel: ir.Kernel) -> ir.Kernel:
        """Return the kernel with answers in the place of questions about kept values."""
        fixed = {*kernel.parameters, *ir.BUILTINS, *(c.name for c in kernel.constants)}
        outside = {n for item in kernel.body if not isinstance(item, ir.Section) for n in changes(item)}
        rings = {ring.name: ring for ring in kernel.rings}
        items: list[ir.Section | ir.Stmt] = []
        for item in kernel.body:
            if isinstance(item, ir.Section):
                item = replace(item, body=_Program(fixed, outside, rings).run(item.body))
            items.append(item)
        return replace(kernel, rings=tuple(rings[ring.name] for ring in kernel.rings), body=tuple(items))


class _Program:
    def __init__(self, fixed: set[str], outside: set[str], rings: dict[str, ir.Ring]) -> None:
        self.fixed = fixed
        self.outside = outside
        self.rings = rings
        self.refused: set[ir.Expr] = set()
        self.made = 0
        self.answers: dict[tuple[str, ir.Node], tuple[str, bool]] = {}  # by record, and question but for the slot

    def run(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        for _ in range(_ROUNDS):
            for question in _questions(body):
                if question in self.refused:
                    continue
                changed = self._answered(body, question)
                if changed is not None:
                    body = changed
                    break
                self.refused.add(question)
            else:
                break
        return body

    def _answered(self, body: tuple[ir.Stmt, ...], question: ir.Expr) -> tuple[ir.Stmt, ...] | None:
        """The program with the answer to a question kept, or None if it cannot be."""
        kept = reads(question) - self.fixed
        if kept & self.outside:
            return None
        fields = [n for n in ir.walk(question) if isinstance(n, ir.Field)]
        if not fields:
            return self._scalars(body, question, kept) if kept else None
        first = fields[0]
        index = reads(first.index)
        if any(f.ring != first.ring or f.index != first.index for f in fields) or any("." in name for name in index):
            return None
        if kept - index != {f"{f.ring}.{f.field}" for f in fields} or _outside_index(question) - self.fixed:
            return None
        return self._record(body, question, first, tuple(dict.fromkeys(f.field for f in fields)))

    # ------------------------------------------------------------------------------------------ scalars

    def _scalars(self, body: tuple[ir.Stmt, ...], question: ir.Expr, kept: set[str]) -> tuple[ir.Stmt, ...] | None:
        if any(isinstance(n, ir.Item) for n in ir.walk(question)):
            return None
        answer = f"{_PREFIX}{self.made}"
        self.made += 1
        storing = _Storing(kept, question, answer)
        try:
            changed = storing.block(body)
        except _Refused:
            return None
        if not storing.stored:
            return None
        name = ir.Name(answer)
        return tuple(_exchanged(s, question, name) for s in changed)

    # ------------------------------------------------------------------------------------------ records

    def _record(
        self, body: tuple[ir.Stmt, ...], question: ir.Expr, first: ir.Field, names: tuple[str, ...]
    ) -> tuple[ir.Stmt, ...] | None:
        zero = rebuild(question, lambda n: ir.Int(0) if isinstance(n, ir.Field) else n)
        start = _folded(zero)  # type: ignore[arg-type]
        negated = isinstance(question, ir.Compare) and start == ir.Int(1)
        if start != ir.Int(0) and not negated:
            return None
        same = first.ring, rebuild(question, lambda n: replace(n, index=ir.Int(0)) if isinstance(n, ir.Field) else n)
        changed = body
        if same not in self.answers:
            ring = self.rings[first.ring]
            answer = f"{_PREFIX}{len(ring.fields)}"
            try:
                changed = _Recording(first.ring, names, question, answer, negated).block(body)
            except _Refused:
                return None
            self.rings[first.ring] = replace(ring, fields=(*ring.fields, answer))
            self.answers[same] = answer, negated
        answer, negated = self.answers[same]
        new: ir.Expr = ir.Field(first.ring, first.index, answer)
        if negated:
            new = ir.Compare(new, (("==", ir.Int(0)),))
        return tuple(_exchanged(s, question, new) for s in changed)


class _Refused(Exception):
    """The values are not stored in a way that lets the answer be kept."""


def _folded(expr: ir.Expr) -> ir.Expr:
    """The expression with the values of its constant parts."""

    def change(node: ir.Node) -> ir.Node:
        match node:
            case ir.Binary(left=ir.Int(), right=ir.Int()):
                value = constant(node, {})
                return node if value is None else ir.Int(value, span=node.span)
            case ir.Compare(first=ir.Int(value=a), rest=((op, ir.Int(value=b)),)):
                results = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}
                return ir.Int(int(results[op]), span=node.span)
            case ir.Call(function="min" | "max" as function, arguments=arguments):
                values = [a.value for a in arguments if isinstance(a, ir.Int)]
                if len(values) == len(arguments):
                    return ir.Int(min(values) if function == "min" else max(values), span=node.span)
        return node

    return rebuild(expr, change)  # type: ignore[return-value]


def asked(question: ir.Expr) -> set[str]:
    """The scalars and fields that a question is about."""
    fields = {f"{n.ring}.{n.field}" for n in ir.walk(question) if isinstance(n, ir.Field)}
    return fields | _outside_index(question)


def _outside_index(question: ir.Expr) -> set[str]:
    """The names that a question reads, but for the indices of records."""
    return reads(rebuild(question, lambda n: ir.Int(0) if isinstance(n, ir.Field) else n))


def _exchanged(stmt: ir.Stmt, question: ir.Expr, answer: ir.Expr) -> ir.Stmt:
    return cast(ir.Stmt, rebuild(stmt, lambda node: answer if node == question else node))


def _questions(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    """The residues and comparisons of a program."""
    residues: dict[ir.Expr, None] = {}
    comparisons: dict[ir.Expr, None] = {}
    for stmt in body:
        for node in ir.walk(stmt):
            match node:
                case ir.Binary(op="%", right=ir.Int()) if _simple(node):
                    residues.setdefault(node)
                case ir.Compare(rest=(_,)) if _simple(node) and not all(map(_answer, asked(node))):
                    comparisons.setdefault(node)
    yield from residues
    yield from comparisons


def _simple(question: ir.Expr) -> bool:
    return all(
        not isinstance(n, ir.Logic | ir.Choose) and (not isinstance(n, ir.Call) or n.function in ir.INTERPRETED)
        for n in ir.walk(question)
    )


def _answer(name: str) -> bool:
    """Whether a scalar or field holds an answer already."""
    return name.rpartition(".")[2].startswith(_PREFIX)


def _windows(body: Sequence[ir.Stmt]) -> Iterator[tuple[int, int]]:
    """The longest runs of scalar assignments in a block."""
    start = None
    for k, stmt in enumerate([*body, None]):
        if isinstance(stmt, ir.Assign | ir.StoreField):
            start = k if start is None else start
        elif start is not None:
            yield start, k
            start = None


@dataclass(slots=True)
class _Storing:
    """Stores the answer to a question wherever the scalars that it asks about are assigned, all at one place."""

    kept: set[str]
    question: ir.Expr
    answer: str
    stored: int = 0

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        before: dict[int, ir.Assign] = {}
        inside: set[int] = set()
        for start, end in _windows(body):
            places = [k for k in range(start, end) if self._assigns(body[k])]
            if places:
                before[places[0]] = self._store(body, places)
                inside |= set(places)
        found: list[ir.Stmt] = []
        for k, stmt in enumerate(body):
            if k in before:
                found.append(before[k])
            found.append(self._inner(stmt))
        return tuple(found)

    def _assigns(self, stmt: ir.Stmt) -> bool:
        return isinstance(stmt, ir.Assign) and stmt.name in self.kept

    def _inner(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.For(var=var, body=body):
                if var in self.kept:
                    raise _Refused
                return replace(stmt, body=self.block(body))
            case ir.If(branches=branches, orelse=orelse):
                arms = tuple((condition, self.block(arm)) for condition, arm in branches)
                return replace(stmt, branches=arms, orelse=self.block(orelse))
            case ir.Cursor(name=name) | ir.Bind(name=name) | ir.Pop(value=name) if name in self.kept:
                raise _Refused
            case ir.Pipelined():
                raise _Refused
        return stmt

    def _store(self, body: tuple[ir.Stmt, ...], places: list[int]) -> ir.Assign:
        values: dict[str, ir.Expr] = {}
        changed: set[str] = set()
        for k in range(places[0], places[-1] + 1):
            stmt = body[k]
            assert isinstance(stmt, ir.Assign | ir.StoreField)
            if any(n == self.question for n in ir.walk(stmt)):
                raise _Refused
            if isinstance(stmt, ir.Assign):
                if k in places:
                    if reads(stmt.value) & (changed | self.kept) or stmt.name in values:
                        raise _Refused
                    values[stmt.name] = stmt.value
                changed.add(stmt.name)
            else:
                changed.add(f"{stmt.ring}.{stmt.field}")
        if set(values) != self.kept:
            raise _Refused
        self.stored += 1
        value = rebuild(self.question, lambda n: values.get(n.id, n) if isinstance(n, ir.Name) else n)
        return ir.Assign(self.answer, _folded(value), span=body[places[0]].span)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Recording:
    """Stores the answer in the record wherever the fields that it asks about are stored, all at one place."""

    ring: str
    names: tuple[str, ...]
    question: ir.Expr
    answer: str
    negated: bool

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        after: dict[int, ir.StoreField] = {}
        for start, end in _windows(body):
            places = [k for k in range(start, end) if self._stores(body[k])]
            while places:
                taken = places[: len(self.names)]
                after[taken[-1]] = self._store(body, taken)
                places = places[len(taken) :]
        found: list[ir.Stmt] = []
        for k, stmt in enumerate(body):
            match stmt:
                case ir.For(body=inner):
                    stmt = replace(stmt, body=self.block(inner))
                case ir.If(branches=branches, orelse=orelse):
                    arms = tuple((condition, self.block(arm)) for condition, arm in branches)
                    stmt = replace(stmt, branches=arms, orelse=self.block(orelse))
                case ir.Pipelined():
                    raise _Refused
            found.append(stmt)
            if k in after:
                found.append(after[k])
        return tuple(found)

    def _stores(self, stmt: ir.Stmt) -> bool:
        return isinstance(stmt, ir.StoreField) and stmt.ring == self.ring and stmt.field in self.names

    def _store(self, body: tuple[ir.Stmt, ...], places: list[int]) -> ir.StoreField:
        values: dict[str, ir.Expr] = {}
        first = body[places[0]]
        assert isinstance(first, ir.StoreField)
        changed: set[str] = set()
        for k in range(places[0], places[-1] + 1):
            stmt = body[k]
            if any(n == self.question for n in ir.walk(stmt)):
                raise _Refused
            if k in places:
                assert isinstance(stmt, ir.StoreField)
                if stmt.index != first.index or stmt.field in values:
                    raise _Refused
                values[stmt.field] = stmt.value
            changed.add(stmt.name if isinstance(stmt, ir.Assign) else f"{stmt.ring}.{stmt.field}")  # type: ignore[union-attr]
        needed = {name for value in values.values() for name in reads(value)} | reads(first.index)
        if set(values) != set(self.names) or needed & changed:
            raise _Refused
        value = rebuild(self.question, lambda n: values[n.field] if isinstance(n, ir.Field) else n)
        if self.negated:
            value = ir.Compare(value, (("==", ir.Int(0)),))  # type: ignore[arg-type]
        return ir.StoreField(self.ring, first.index, self.answer, _folded(value), span=first.span)  # type: ignore[arg-type]
