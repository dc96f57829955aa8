"""Which expression does a rule of the grammar stand for?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from fencepost import ir
from fencepost.frontends.kir.values import Children, Rules, Tuple

if TYPE_CHECKING:
    from lark import Token

INT_LIMIT = 2**64
"""Integer literals stay below this; the device has 64-bit scalars."""


class ExpressionRules(Rules):
    """The callbacks of expressions and tuples."""

    def literal(self, c: Children) -> ir.Int:
        return ir.Int(self._int(c[0]), span=self._span(c[0], c[0]))

    def negative_literal(self, c: Children) -> ir.Int:
        return ir.Int(-self._int(c[1]), span=self._span(c[0], c[1]))

    def _int(self, token: Token) -> int:
        text = token.replace("_", "")
        base = {"0x": 16, "0b": 2}.get(text[:2].lower(), 10)
        digits = text[2:] if base != 10 else text
        value = int(digits or "0", base) if len(digits) <= 64 else INT_LIMIT
        if value >= INT_LIMIT:
            self._error(token, "this integer does not fit into 64 bits")
            return 0
        return value

    def name(self, c: Children) -> ir.Name:
        return ir.Name(str(c[0]), span=self._span(c[0], c[0]))

    def item(self, c: Children) -> ir.Item:
        return ir.Item(str(c[0]), c[2], span=self._span(c[0], c[3]))

    def field(self, c: Children) -> ir.Field:
        return ir.Field(str(c[0]), c[2], str(c[5]), span=self._span(c[0], c[5]))

    def call(self, c: Children) -> ir.Call:
        return ir.Call(str(c[0]), tuple(c[2]) if len(c) == 4 else (), span=self._span(c[0], c[-1]))

    def parenthesised(self, c: Children) -> ir.Expr:
        return replace(cast("ir.Expr", c[1]), span=self._span(c[0], c[2]))

    def negative(self, c: Children) -> ir.Unary:
        return ir.Unary("-", c[1], span=self._span(c[0], c[1]))

    def logic_not(self, c: Children) -> ir.Unary:
        return ir.Unary("not", c[1], span=self._span(c[0], c[1]))

    def binary(self, c: Children) -> ir.Binary:
        return ir.Binary(cast("Any", str(c[1])), c[0], c[2], span=self._span(c[0], c[2]))

    def compare_first(self, c: Children) -> list[Any]:
        return [c[0], (str(c[1]), c[2])]

    def compare_more(self, c: Children) -> list[Any]:
        c[0].append((str(c[1]), c[2]))
        return cast("list[Any]", c[0])

    def compare(self, c: Children) -> ir.Compare:
        first, *rest = c[0]
        return ir.Compare(first, tuple(rest), span=self._span(first, rest[-1][1]))

    def logic_or(self, c: Children) -> ir.Logic:
        return ir.Logic("or", tuple(c[0]), span=self._span(c[0][0], c[0][-1]))

    def logic_and(self, c: Children) -> ir.Logic:
        return ir.Logic("and", tuple(c[0]), span=self._span(c[0][0], c[0][-1]))

    def choose(self, c: Children) -> ir.Choose:
        return ir.Choose(c[2], c[0], c[4], span=self._span(c[0], c[4]))

    def sequence(self, c: Children) -> Tuple:
        items: list[Any] = [] if len(c) == 2 else [c[1]]
        if len(c) >= 5:
            items.extend(c[3])
        return Tuple(tuple(items), self._span(c[0], c[-1]))

    def sequence_of_one(self, c: Children) -> Tuple:
        return Tuple((c[1],), self._span(c[0], c[-1]))
