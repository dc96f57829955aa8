"""Families: which channels serve one textual protocol, and what do the kernel's authors call them?

`RELEASE[0]`, `RELEASE[1]` and `RELEASE[t % 2]` are one hand-over of a tile with two slots: some operation uses both
ids.  A fault of both channels is then one fault.
"""

from __future__ import annotations

from collections.abc import Hashable

from fencepost import ir
from fencepost.model.effects import Channel
from fencepost.model.program import Compiled, ModelError, constant

Key = tuple[str, str, int]  # kind, direction, id

_MOST = 64  # values followed per expression


class Families:
    """The channels of one kernel, grouped by the statements that use several of them."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._parent: dict[Key, Key] = {}
        self._names: dict[Key, str] = {}
        self._bindings: dict[str, list[ir.Expr | frozenset[int]]] = {}
        for item in compiled.kernel.body:
            for node in ir.walk(item):
                self._bind(node)
        for item in compiled.kernel.body:
            cores: tuple[ir.Core, ...] = (item.core,) if isinstance(item, ir.Section) else ("cube", "vector")
            for node in ir.walk(item):
                if isinstance(node, (ir.SetCross, ir.WaitCross, ir.SyncSrc, ir.SyncDst)):
                    for core in cores:
                        self._use(node, core)

    def of(self, channel: Channel) -> Hashable:
        """What all channels of one family have in common; equal in every run of the kernel."""
        root = self._root(_key(channel))
        return min((k for k in self._parent if self._root(k) == root), default=root)

    def name(self, channel: Channel) -> str:
        """The name of its id in the text ("RELEASE"), or "" if the text has none."""
        return self._names.get(_key(channel), "")

    # ------------------------------------------------------------------------------------------------ grouping

    def _use(self, stmt: ir.SetCross | ir.WaitCross | ir.SyncSrc | ir.SyncDst, core: ir.Core) -> None:
        kind, direction = _direction(stmt, core)
        keys = [(kind, direction, i % 16 if kind == "cross" else i) for i in self.values(stmt.id) or ()]
        for key in keys:
            self._parent.setdefault(key, key)
            self._parent[self._root(key)] = self._root(keys[0])
            name = self._spelling(stmt.id)
            if name and (key not in self._names or isinstance(stmt, (ir.SetCross, ir.SyncSrc))):
                self._names[key] = name

    def _root(self, key: Key) -> Key:
        while self._parent.get(key, key) != key:
            key = self._parent[key]
        return key

    def _spelling(self, expr: ir.Expr) -> str:
        names = [n.name for n in ir.walk(expr) if isinstance(n, ir.Item)]
        if names:
            return names[0]
        return expr.id if isinstance(expr, ir.Name) and expr.id in self._compiled.scalars else ""

    # ------------------------------------------------------------------------------------------------ values

    def _bind(self, node: ir.Node) -> None:
        """Note what a name may hold."""
        match node:
            case ir.Assign(name=name, value=value) | ir.Bind(name=name, value=value):
                self._bindings.setdefault(name, []).append(value)
            case ir.Cursor(name=name, buffer=buffer):
                depth = self._compiled.depths[buffer]
                self._bindings.setdefault(name, []).append(frozenset(range(min(depth, _MOST + 1))))
            case ir.For(var=var, start=start, stop=stop, step=step):
                self._bindings.setdefault(var, []).append(self._trips(start, stop, step))

    def _trips(self, start: ir.Expr, stop: ir.Expr, step: ir.Expr) -> frozenset[int]:
        """The values of a loop variable; more than can be followed if the bounds are not constant."""
        scalars = self._compiled.scalars
        try:
            trips = range(*(constant(e, scalars, "loop bound") for e in (start, stop, step)))
        except (ModelError, ValueError):
            return frozenset(range(_MOST + 1))
        return frozenset(trips[: _MOST + 1])

    def values(self, expr: ir.Expr, inside: tuple[str, ...] = ()) -> frozenset[int] | None:
        """The values that an expression can take, or None if they cannot be told from the text."""
        found = self._evaluate(expr, inside)
        return None if found is None or len(found) > _MOST else found

    def _evaluate(self, expr: ir.Expr, inside: tuple[str, ...]) -> frozenset[int] | None:
        match expr:
            case ir.Int(value=value):
                return frozenset({value})
            case ir.Name(id="sub"):
                return frozenset({0, 1})
            case ir.Name(id=name) if name in self._compiled.scalars:
                return self.values(self._compiled.scalars[name], inside)
            case ir.Name(id=name) if name in self._bindings and name not in inside:
                parts = [
                    b if isinstance(b, frozenset) else self.values(b, (*inside, name)) for b in self._bindings[name]
                ]
                return _union(parts)
            case ir.Item(name=name, index=index):
                elements = self._compiled.tuples[name]
                indices = self.values(index, inside)
                chosen = [e for i, e in enumerate(elements) if indices is None or i in indices]
                return _union([self.values(e, inside) for e in chosen])
            case ir.Unary(op="-", operand=operand):
                values = self.values(operand, inside)
                return None if values is None else frozenset(-v for v in values)
            case ir.Binary(op="%", left=left, right=right):
                a, b = self.values(left, inside), self.values(right, inside)
                if b is None or min(b, default=0) <= 0:
                    return None
                return frozenset(range(min(max(b), _MOST + 1))) if a is None else frozenset(x % y for x in a for y in b)
            case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
                a, b = self.values(left, inside), self.values(right, inside)
                if a is None or b is None:
                    return None
                apply = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}[op]
                return frozenset(apply(x, y) for x in a for y in b)
            case ir.Choose(then=then, other=other):
                return _union([self.values(then, inside), self.values(other, inside)])
        return None


def _union(parts: list[frozenset[int] | None]) -> frozenset[int] | None:
    known = [p for p in parts if p is not None]
    return frozenset().union(*known) if known and len(known) == len(parts) else None


def _direction(stmt: ir.SetCross | ir.WaitCross | ir.SyncSrc | ir.SyncDst, core: ir.Core) -> tuple[str, str]:
    if isinstance(stmt, (ir.SyncSrc, ir.SyncDst)):
        return "flag", f"{core} {stmt.source} {stmt.target}"
    if stmt.mode in ("INTER_SUBBLOCK", "INTER_BLOCK"):
        return ("sub" if stmt.mode == "INTER_SUBBLOCK" else "block"), core
    if isinstance(stmt, ir.SetCross):
        return "cross", core
    return "cross", "vector" if core == "cube" else "cube"


def _key(channel: Channel) -> Key:
    core = "cube" if channel.sender in ("cube", "aic") else "vector"
    if channel.kind == "flag":
        return "flag", f"{core} {channel.pipes[0]} {channel.pipes[1]}", channel.id
    return channel.kind, core, channel.id


def spellings(families: Families, channels: list[Channel]) -> str:
    """Channels in words, those of one name and direction together: `events 2, 3 (RELEASE) aiv0, aiv1 -> cube`."""
    groups: dict[tuple[str, str, str], list[Channel]] = {}
    for channel in channels:
        kind, direction, _ = _key(channel)
        groups.setdefault((kind, direction, families.name(channel)), []).append(channel)
    return " and ".join(_together(key[0], key[2], members) for key, members in groups.items())


def _together(kind: str, name: str, members: list[Channel]) -> str:
    senders, receivers, ids = (
        ", ".join(dict.fromkeys(values))
        for values in zip(*((c.sender, c.receiver, str(c.id)) for c in members), strict=True)
    )
    word = ("flag" if kind == "flag" else "event") + ("s" if ", " in ids else "")
    told = f" ({name})" if name else ""
    if kind == "flag":
        source, target = members[0].pipes
        return f"{word} {ids}{told} {source} -> {target} of {senders}"
    return f"{word} {ids}{told} {senders} -> {receivers}"
