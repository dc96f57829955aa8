"""Which declaration does a rule of the grammar stand for?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from fencepost import ir
from fencepost.frontends.kir.statements import StatementRules
from fencepost.frontends.kir.values import Assume, Bad, Children, Setting, Tuple

if TYPE_CHECKING:
    from lark import Token

CORES = ("cube", "vector")
TARGETS = ("a5", "a3", "a2", "gpu")
OPTIONS = {"auto_mutex": ("on", "off"), "credits": ("per_slot", "batched", "both")}


class DeclarationRules(StatementRules):
    """The callbacks of declarations."""

    def assume(self, c: Children) -> Assume:
        return Assume(c[1], self._span(c[0], c[1]))

    def target(self, c: Children) -> Setting:
        return Setting("target", self._word(c[1], TARGETS, "a target", "'target'", "a5"), self._span(c[0], c[1]))

    def option(self, c: Children) -> Setting:
        span = self._span(c[0], c[3])
        key = self._word(c[1], tuple(OPTIONS), "an option", "'option'", None)
        if key is None:
            return Setting(str(c[1]), "", span)
        return Setting(key, self._word(c[3], OPTIONS[key], "a value", f"'{key} ='", OPTIONS[key][-1]), span)

    def buffer(self, c: Children) -> ir.Buffer:
        depth = c[3] if len(c) >= 7 else None
        rest = c[7:] if depth is not None else c[4:]
        space_token = c[6] if depth is not None else c[3]
        space = cast("ir.Space", self._word(space_token, ir.SPACES, "a memory space", "'in'", "GM"))
        values: dict[str, Any] = {}
        last: Any = space_token
        for key, found, end in rest[0] if rest else ():
            for name, value in found.items():
                if name in values:
                    self._error(key, f"'{key}' is given twice")
                values[name] = value
            last = end
        return ir.Buffer(str(c[1]), space, depth, **values, span=self._span(c[0], last))

    def buffer_attribute(self, c: Children) -> tuple[Token, dict[str, Any], Any]:
        match c[0].type:
            case "ADDRESS":
                return c[0], {"addresses": tuple(c[1])}, c[1][-1]
            case "SIZE":
                return c[0], {"size": c[1]}, c[1]
            case "STRIDE":
                return c[0], {"stride": c[1], "rows": c[3]}, c[3]
            case "SHARED":
                return c[0], {"shared": True}, c[0]
            case _:
                slots = tuple(self._ids(item) for item in c[1].items)
                return c[0], {"mutex": slots}, c[1]

    def buffer_mutex_one(self, c: Children) -> tuple[Token, dict[str, Any], Any]:
        return c[0], {"mutex": ((c[2],),)}, c[3]

    def _ids(self, item: Any) -> tuple[ir.Expr, ...]:
        """The mutex ids of one slot: an expression, or a tuple of them."""
        if not isinstance(item, Tuple):
            return (item,)
        for inner in item.items:
            if isinstance(inner, Tuple):
                self._error(inner, "the mutex ids of a slot are integers, not tuples")
        return tuple(inner for inner in item.items if not isinstance(inner, Tuple))

    def fifo(self, c: Children) -> ir.Fifo | Bad:
        sender = self._word(c[3], CORES, "a core kind", "':'", None)
        receiver = self._word(c[5], CORES, "a core kind", "'->'", None)
        if sender is not None and receiver == sender:
            self._error(c[5], f"a FIFO leads from one core kind to the other, not from {sender} to {sender}")
        found = self._attributes(c[7], ("slots", "id", "lanes"), "a fifo")
        slots, lanes = found.expr("slots"), found.expr("lanes")
        if slots is None:
            self._error(c[0], "a fifo needs its number of slots: ', slots = N'")
        if lanes is not None and not (isinstance(lanes, ir.Int) and lanes.value in (1, 2)):
            self._error(lanes, "expected the number of vector sub-cores after 'lanes =': 1 or 2")
            lanes = None
        span = self._span(c[0], c[7][-1])
        if sender is None or receiver in (None, sender) or slots is None:
            self.dropped |= {str(c[1]), "fifo"}
            return Bad(span)
        count = lanes.value if isinstance(lanes, ir.Int) else 2
        return ir.Fifo(str(c[1]), cast("ir.Core", sender), slots, found.expr("id") or ir.Int(0), count, span=span)

    def ring(self, c: Children) -> ir.Ring:
        return ir.Ring(str(c[1]), c[3], tuple(str(t) for t in c[6]), span=self._span(c[0], c[7]))
