"""Which simple statement does a rule of the grammar stand for?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from fencepost import ir
from fencepost.frontends.kir.expressions import ExpressionRules
from fencepost.frontends.kir.values import Attribute, Attributes, Children, Private, Tuple
from fencepost.spelling import one_of, suggestion

_PEER: dict[str, ir.Core] = {"aiv": "vector", "aic": "cube"}


class StatementRules(ExpressionRules):
    """The callbacks of attributes and simple statements."""

    # ------------------------------------------------------------------------------------------------------- attributes
    def attribute(self, c: Children) -> Attribute:
        return Attribute(str(c[0]), c[2], self._span(c[0], c[2]))

    def dotted_attribute(self, c: Children) -> Attribute:
        value = ir.Name(str(c[4]), span=self._span(c[4], c[4]))
        return Attribute(str(c[0]), value, self._span(c[0], c[4]), family=str(c[2]))

    def offset_attribute(self, c: Children) -> Attribute:
        return Attribute("offset", None, self._span(c[0], c[0]))

    def at_attribute(self, c: Children) -> Attribute:
        for item in c[1].items:
            if isinstance(item, Tuple):
                self._error(item, "the scalar operands after 'at' are integers, not tuples")
        values = tuple(item for item in c[1].items if not isinstance(item, Tuple))
        return Attribute("at", values, self._span(c[0], c[1]))

    def at_one_attribute(self, c: Children) -> Attribute:
        return Attribute("at", (c[2],), self._span(c[0], c[3]))

    def pipe_attribute(self, c: Children) -> Attribute:
        return Attribute("@", self._pipe(c[1]), self._span(c[0], c[1]))

    def attributes(self, c: Children) -> list[Any]:
        return cast("list[Any]", c[0])

    message_attributes = buffer_attributes = attribute_list = attributes

    def _attributes(self, given: list[Attribute], allowed: Sequence[str], owner: str) -> Attributes:
        """Sort attributes by key; those that `owner` does not take, and doubles, are reported."""
        result = Attributes()
        keys = [key for key in allowed if key != "@"]
        for attribute in given:
            key = attribute.key
            if key not in allowed:
                hint = suggestion(key, keys)
                self._error(attribute, f"{owner} takes no '{key}'; it can have {one_of(keys, 'and')}{hint}")
            elif key in result.found:
                self._error(attribute, f"'{key}' is given twice")
            else:
                if attribute.family is not None and key != "phase":
                    self._error(attribute, f"expected one value after '{key} ='")
                result.found[key] = attribute
        return result

    def _name_value(self, attribute: Attribute, known: Sequence[str], what: str) -> str | None:
        """The word that `attribute` is set to, one of `known`."""
        value = attribute.value
        text = value.id if isinstance(value, ir.Name) else str(value.value) if isinstance(value, ir.Int) else ""
        if text in known:
            return text
        found = f"; found '{text}'" if text else ""
        hint = suggestion(text, known)
        self._error(value, f"expected {what} after '{attribute.key} =': {one_of(known)}{found}{hint}")
        return None

    # ------------------------------------------------------------------------------------------------ simple statements
    def assign(self, c: Children) -> ir.Assign:
        return ir.Assign(str(c[0]), c[2], span=self._span(c[0], c[2]))

    def private(self, c: Children) -> Private:
        span = self._span(c[0], c[3])
        return Private(ir.Assign(str(c[1]), c[3], span=span), span)

    def constant_tuple(self, c: Children) -> ir.Constant:
        value: Tuple = c[2]
        for item in value.items:
            if isinstance(item, Tuple):
                self._error(item, "a constant is an integer or a flat tuple of integers")
        items = tuple(item for item in value.items if not isinstance(item, Tuple))
        return ir.Constant(str(c[0]), items, span=self._span(c[0], value))

    def store_field(self, c: Children) -> ir.StoreField:
        return ir.StoreField(str(c[0]), c[2], str(c[5]), c[7], span=self._span(c[0], c[7]))

    def cursor(self, c: Children) -> ir.Cursor:
        move = self._word(c[4], ("next", "current", "previous"), "a cursor movement", "'.'", "next")
        return ir.Cursor(str(c[0]), str(c[2]), cast("Any", move), span=self._span(c[0], c[6]))

    def bind(self, c: Children) -> ir.Bind:
        return ir.Bind(str(c[1]), c[3], span=self._span(c[0], c[3]))

    def pass_(self, c: Children) -> ir.Pass:
        return ir.Pass(span=self._span(c[0], c[0]))

    def break_(self, c: Children) -> ir.Break:
        return ir.Break(span=self._span(c[0], c[0]))

    def continue_(self, c: Children) -> ir.Continue:
        return ir.Continue(span=self._span(c[0], c[0]))

    def assert_(self, c: Children) -> ir.Assert:
        return ir.Assert(c[1], span=self._span(c[0], c[1]))

    def unsupported(self, c: Children) -> ir.Unsupported:
        try:
            reason = json.loads(c[1], strict=False)
        except ValueError:
            self._error(c[1], 'unknown escape in this string; known are \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX')
            reason = ""
        return ir.Unsupported(reason, span=self._span(c[0], c[1]))

    def set_cross(self, c: Children) -> ir.SetCross:
        mode, lane, last = self._cross(c)
        return ir.SetCross(c[1], self._pipe(c[3]), mode, lane, span=self._span(c[0], last))

    def wait_cross(self, c: Children) -> ir.WaitCross:
        mode, lane, last = self._cross(c)
        return ir.WaitCross(c[1], self._pipe(c[3]), mode, lane, span=self._span(c[0], last))

    def _cross(self, c: Children) -> tuple[ir.Mode, ir.Expr | None, Any]:
        if len(c) == 4:
            return "INTRA_BLOCK", None, c[3]
        found = self._attributes(c[4], ("mode", "lane"), f"'{c[0]}'")
        mode = None
        if "mode" in found.found:
            mode = self._name_value(found.found["mode"], ir.MODES, "a mode")
        return cast("ir.Mode", mode or "INTRA_BLOCK"), found.expr("lane"), c[4][-1]

    def sync_src(self, c: Children) -> ir.SyncSrc:
        source, target = self._pipe(c[3], "':'"), self._pipe(c[5], "'->'")
        return ir.SyncSrc(c[1], source, target, span=self._span(c[0], c[5]))

    def sync_dst(self, c: Children) -> ir.SyncDst:
        source, target = self._pipe(c[3], "':'"), self._pipe(c[5], "'->'")
        return ir.SyncDst(c[1], source, target, span=self._span(c[0], c[5]))

    def mutex_lock(self, c: Children) -> ir.MutexLock:
        return ir.MutexLock(c[1], self._pipe(c[3]), span=self._span(c[0], c[3]))

    def mutex_unlock(self, c: Children) -> ir.MutexUnlock:
        return ir.MutexUnlock(c[1], self._pipe(c[3]), span=self._span(c[0], c[3]))

    def barrier(self, c: Children) -> ir.Barrier:
        pipe = self._word(c[1], (*ir.PIPES, "ALL"), "a pipe", "'barrier'", "ALL")
        return ir.Barrier(cast("Any", pipe), span=self._span(c[0], c[1]))

    def sync_all(self, c: Children) -> ir.SyncAll:
        return ir.SyncAll(span=self._span(c[0], c[0]))

    # -------------------------------------------------------------------------------------------- data operations, FIFO
    def operands(self, c: Children) -> tuple[ir.Access, ...]:
        return tuple(c[0]) if len(c) == 1 else ()

    def slot(self, c: Children) -> ir.Access:
        return ir.Access(str(c[0]), c[2] if len(c) == 4 else None, span=self._span(c[0], c[-1]))

    def access(self, c: Children) -> ir.Access:
        if len(c) == 1:
            return cast("ir.Access", c[0])
        return replace(cast("ir.Access", c[0]), part=c[2], parts=c[4], span=self._span(c[0], c[4]))

    def data_op(self, c: Children) -> ir.DataOp:
        given = c[6] if len(c) == 7 else []
        found = self._attributes(given, ("phase", "lanes", "task", "offset", "at"), f"the data operation '{c[0]}'")
        phase, family, lanes = None, None, None
        if "phase" in found.found:
            attribute = found.found["phase"]
            phase = self._name_value(attribute, ("Partial", "Final"), "a phase")
            if attribute.family is not None:
                given_family, known = attribute.family, ("AccPhase", "STPhase")
                family = given_family.removesuffix("Phase")
                if given_family not in known:
                    hint = suggestion(given_family, known)
                    self._error(attribute, f"a phase is of the family AccPhase or STPhase, not '{given_family}'{hint}")
        if "lanes" in found.found:
            lanes = self._name_value(found.found["lanes"], ("both", "0", "1"), "the vector sub-cores")
        return ir.DataOp(
            str(c[0]),
            c[1],
            c[3],
            self._pipe(c[5]),
            cast("Any", phase),
            cast("Any", family),
            cast("Any", lanes or "both"),
            found.expr("task"),
            "offset" in found.found,
            found.found["at"].value if "at" in found.found else (),
            span=self._span(c[0], given[-1] if given else c[5]),
        )

    def _message(self, c: Children, index: int, allowed: Sequence[str]) -> tuple[dict[str, Any], Any]:
        given = c[index] if len(c) > index else []
        found = self._attributes(given, allowed, f"'{c[index - 1] if c[0].type == 'NAME' else c[0]}'")
        result: dict[str, Any] = {}
        for key, attribute in found.found.items():
            result["pipe" if key == "@" else key] = attribute.value
        return result, given[-1] if given else c[index - 1]

    def push(self, c: Children) -> ir.Push:
        attributes, last = self._message(c, 2, ("id", "@", "task"))
        return ir.Push(str(c[1]), _PEER[c[0][-3:]], **attributes, span=self._span(c[0], last))

    def pop(self, c: Children) -> ir.Pop:
        attributes, last = self._message(c, 3, ("id", "@", "task"))
        return ir.Pop(str(c[0]), _PEER[c[2][-3:]], **attributes, span=self._span(c[0], last))

    def free(self, c: Children) -> ir.Free:
        attributes, last = self._message(c, 2, ("id", "@"))
        return ir.Free(str(c[1]), _PEER[c[0][-3:]], **attributes, span=self._span(c[0], last))
