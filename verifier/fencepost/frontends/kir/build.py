"""What does a piece of kernel text mean?  The callbacks of the grammar: each builds one IR node with its span.

Lark calls them while it parses, with the finished children of one rule; no syntax tree is kept.  Mistakes that the
grammar cannot express (an unknown pipe, an attribute in the wrong place) are recorded and parsing goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from fencepost import ir
from fencepost.frontends.kir.words import one_of, suggestion

if TYPE_CHECKING:
    from lark import Token

_T = TypeVar("_T")
Children = list[Any]
"""The children of one rule: tokens, IR nodes and the helper values below."""

INT_LIMIT = 2**64
"""Integer literals stay below this; the device has 64-bit scalars."""

MODES_WORD = ("INTRA_BLOCK", "UNICAST_BLOCK", "INTER_SUBBLOCK", "INTER_BLOCK")
TARGETS = ("a5", "a3", "a2")
CORES = ("cube", "vector")
_PEER: dict[str, ir.Core] = {"aiv": "vector", "aic": "cube"}
_STATEMENTS = get_args(ir.Stmt)
_LISTS = ("stage", "order", "async_stages", "async_producers", "async_producer_groups")


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that could not be read; it has been reported."""


@dataclass(frozen=True, slots=True)
class Indented:
    """Statements indented although nothing opened a block (or a line that could not be read did)."""

    items: tuple[Any, ...]
    start: Any


@dataclass(frozen=True, slots=True)
class Block:
    items: tuple[Any, ...]
    end: Any


@dataclass(frozen=True, slots=True)
class Assume:
    condition: ir.Expr
    span: ir.Span


@dataclass(frozen=True, slots=True)
class Setting:
    """`target VALUE` or `option KEY = VALUE`."""

    key: str
    value: str
    span: ir.Span


@dataclass(frozen=True, slots=True)
class Private:
    """`private NAME = EXPR`: a scalar of the kernel level."""

    assign: ir.Assign
    span: ir.Span


@dataclass(frozen=True, slots=True)
class Tuple:
    items: tuple[Any, ...]
    span: ir.Span


@dataclass(frozen=True, slots=True)
class Attribute:
    """`key = value`, `offset` (value None) or `@ PIPE`; `family` is the A of a value `A.value`."""

    key: str
    value: Any
    span: ir.Span
    family: str | None = None


@dataclass(slots=True)
class Attributes:
    """The attributes of one statement by key."""

    found: dict[str, Attribute] = field(default_factory=dict)

    def expr(self, key: str) -> ir.Expr | None:
        attribute = self.found.get(key)
        return cast("ir.Expr", attribute.value) if attribute else None


class Builder:
    """Builds IR nodes.  `begin` names the file; `report(line, column, message)` takes mistakes."""

    def __init__(self) -> None:
        self.begin("", lambda line, column, message: None)

    def begin(self, file: str, report: Callable[[int, int, str], None]) -> None:
        self._file = file
        self._report = report
        self.dropped: set[str] = set()
        """Names that occur in statements which were left out because of a mistake."""

    # -------------------------------------------------------------------------------------------------------- helpers
    def _span(self, first: Any, last: Any) -> ir.Span:
        start = first.span if hasattr(first, "span") else first
        end = last.span if hasattr(last, "span") else last
        return ir.Span(self._file, start.line, start.column, end.end_line, end.end_column)

    def _error(self, where: Any, message: str) -> None:
        place = where.span if hasattr(where, "span") else where
        self._report(place.line, place.column, message)

    def _word(self, token: Token, known: Sequence[str], what: str, after: str, default: _T) -> str | _T:
        """The text of `token`, which must be one of `known`; `default` when it is not (reported)."""
        text = str(token)
        if text in known:
            return text
        self._error(token, f"expected {what} after {after}: {one_of(known)}; found '{text}'{suggestion(text, known)}")
        return default

    def _pipe(self, token: Token, after: str = "'@'") -> ir.Pipe:
        return cast("ir.Pipe", self._word(token, ir.PIPES, "a pipe", after, "S"))

    # ----------------------------------------------------------------------------------------------------- list shapes
    def list_first(self, c: Children) -> list[Any]:
        return [c[0]]

    def list_more(self, c: Children) -> list[Any]:
        c[0].append(c[2])
        return cast("list[Any]", c[0])

    items_first = list_first

    def items_more(self, c: Children) -> list[Any]:
        c[0].append(c[1])
        return cast("list[Any]", c[0])

    def chain_first(self, c: Children) -> list[Any]:
        return [c[0], c[2]]

    # ----------------------------------------------------------------------------------------------------- expressions
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

    # ---------------------------------------------------------------------------------------------------------- blocks
    def simple_statement(self, c: Children) -> Any:
        return c[0]

    def bad_line(self, c: Children) -> Bad:
        return Bad()

    def indented(self, c: Children) -> Indented:
        return Indented(tuple(c[1]), c[1][0])

    def block(self, c: Children) -> Block:
        return Block(tuple(c[2]), c[2][-1])

    def empty_block(self, c: Children) -> Block:
        return Block((), c[2])

    def _items(self, items: tuple[Any, ...]) -> list[Any]:
        """The readable items; unexpected indentation is reported unless a bad line explains it."""
        good: list[Any] = []
        after_bad = False
        for item in items:
            if isinstance(item, Indented):
                if not after_bad:
                    self._error(_first_place(item), "unexpected indentation: the line above opens no block")
                self._drop(item.items)
            elif not isinstance(item, Bad):
                good.append(item)
            after_bad = isinstance(item, Bad)
        return good

    def _drop(self, items: tuple[Any, ...]) -> None:
        """Remember the names of statements that are left out."""
        stack = list(items)
        while stack:
            item = stack.pop()
            if isinstance(item, Indented):
                stack.extend(item.items)
            elif isinstance(item, Private):
                stack.append(item.assign)
            elif isinstance(item, ir.Node):
                for node in ir.walk(item):
                    for key in ("name", "var", "id", "value", "function", "ring", "buffer"):
                        value = getattr(node, key, None)
                        if isinstance(value, str):
                            self.dropped.add(value)

    def _body(self, block: Block, inside: str) -> tuple[ir.Stmt, ...]:
        """The statements of a block that is not the kernel's own."""
        body: list[ir.Stmt] = []
        for item in self._items(block.items):
            if isinstance(item, _STATEMENTS):
                body.append(cast("ir.Stmt", item))
            else:
                self._error(item, f"{_describe(item)} belongs to the kernel level; it cannot stand inside {inside}")
                self._drop((item,))
        return tuple(body)

    def _end(self, header: Any, block: Block) -> Any:
        """The last place of a compound statement."""
        last = block.end
        while isinstance(last, Indented):
            last = last.items[-1]
        return header if isinstance(last, Bad) else last

    # -------------------------------------------------------------------------------------------------- kernel, section
    def whole(self, items: list[Any]) -> list[ir.Kernel]:
        """The kernels of a text, from the items of the rule `start`."""
        return [item for item in self._items(tuple(items)) if isinstance(item, ir.Kernel)]

    def names(self, c: Children) -> list[Any]:
        return cast("list[Any]", c[0])

    def kernel(self, c: Children) -> ir.Kernel:
        block: Block = c[-1]
        parameters = tuple(str(t) for t in c[3]) if len(c) == 7 else ()
        settings: dict[str, Setting] = {}
        assumes: list[ir.Expr] = []
        constants: list[ir.Constant] = []
        buffers: list[ir.Buffer] = []
        fifos: list[ir.Fifo] = []
        rings: list[ir.Ring] = []
        body: list[ir.Section | ir.Stmt] = []
        items = self._items(block.items)
        inner = _assigned_inside(items)
        for item in items:
            match item:
                case Setting(key=key):
                    if key in settings:
                        self._error(item, f"'{key}' is already set on line {settings[key].span.line}")
                    settings.setdefault(key, item)
                case Assume():
                    assumes.append(item.condition)
                case ir.Constant():
                    constants.append(item)
                case ir.Buffer():
                    buffers.append(item)
                case ir.Fifo():
                    fifos.append(item)
                case ir.Ring():
                    rings.append(item)
                case Private():
                    body.append(item.assign)
                case ir.Assign() if item.name not in inner:
                    constants.append(ir.Constant(item.name, item.value, span=item.span))
                case _:
                    body.append(item)
        chosen = {key: setting.value for key, setting in settings.items()}
        return ir.Kernel(
            name=str(c[1]),
            parameters=parameters,
            target=cast("Any", chosen.get("target", "a5")),
            auto_mutex=chosen.get("auto_mutex", "on") == "on",
            credits=cast("Any", chosen.get("credits", "both")),
            assumes=tuple(assumes),
            constants=tuple(constants),
            buffers=tuple(buffers),
            fifos=tuple(fifos),
            rings=tuple(rings),
            body=tuple(body),
            span=self._span(c[0], self._end(c[-2], block)),
        )

    def section(self, c: Children) -> ir.Section:
        core = self._word(c[1], CORES, "a core kind", "'section'", "cube")
        body = self._body(c[3], "a section")
        return ir.Section(cast("ir.Core", core), body, span=self._span(c[0], self._end(c[2], c[3])))

    # ------------------------------------------------------------------------------------------------ loops, conditions
    def for_range(self, c: Children) -> ir.For:
        arguments: list[ir.Expr] = c[5]
        if len(arguments) > 3:
            self._error(arguments[3], "'range' takes at most three arguments: start, stop, step")
        start, stop, step = _bounds(arguments)
        body = self._body(c[8], "a loop")
        return ir.For(str(c[1]), start, stop, step, body, span=self._span(c[0], self._end(c[7], c[8])))

    def for_pipeline(self, c: Children) -> ir.For:
        arguments: list[ir.Expr] = c[5]
        attribute: Attribute = c[7]
        if len(arguments) > 3:
            self._error(arguments[3], "'pipeline' takes at most three bounds: start, stop, step")
        if attribute.key != "stage" or attribute.family:
            self._error(attribute, "'pipeline' takes one key, the stage: pipeline(start, stop, step, stage = F)")
        start, stop, step = _bounds(arguments)
        body = self._body(c[10], "a loop")
        span = self._span(c[0], self._end(c[9], c[10]))
        return ir.For(str(c[1]), start, stop, step, body, stage=attribute.value, span=span)

    def for_pipelined(self, c: Children) -> ir.Pipelined:
        arguments: list[ir.Expr] = c[5]
        keys: dict[str, Any] = {}
        for key, value in c[7] if len(c) == 11 else ():
            known = (*_LISTS, "num_stages")
            if key not in known:
                hint = suggestion(key, known)
                self._error(key, f"unknown key '{key}' of 'pipelined'; it knows {one_of(known, 'and')}{hint}")
            elif key in keys:
                self._error(key, f"the key '{key}' is given twice")
            else:
                keys[str(key)] = self._integers(key, value)
        if len(arguments) != 2:
            self._error(arguments[-1], "'pipelined' takes two bounds: pipelined(start, stop, ...)")
        start, stop, _ = _bounds(arguments)
        body = self._body(c[-1], "a loop")
        return ir.Pipelined(
            str(c[1]), start, stop, body, **keys, span=self._span(c[0], self._end(c[-2], c[-1]))
        )

    def listed_key(self, c: Children) -> tuple[Token, Any]:
        return c[0], c[2]

    def _integers(self, key: Token, value: Any) -> Any:
        """A `pipelined` key's value: an integer for num_stages, else a tuple of integer literals."""
        if key == "num_stages":
            if isinstance(value, ir.Int):
                return value.value
            self._error(value, "expected an integer after 'num_stages ='")
            return 0
        items = value.items if isinstance(value, Tuple) else (value,) if value.span.column else ()
        bad = [item for item in items if not isinstance(item, ir.Int)]
        for item in bad[:1]:
            self._error(item, f"expected a list of integers after '{key} =', such as (0, 0, 1)")
        return tuple(item.value for item in items if isinstance(item, ir.Int))

    def branch_first(self, c: Children) -> list[Any]:
        return [c[0], (c[1], self._body(c[3], "an 'if'")), self._end(c[2], c[3])]

    def branch_more(self, c: Children) -> list[Any]:
        c[0][-1] = (c[2], self._body(c[4], "an 'elif'"))
        c[0].append(self._end(c[3], c[4]))
        return cast("list[Any]", c[0])

    def if_statement(self, c: Children) -> ir.If:
        start, *branches, end = c[0]
        orelse: tuple[ir.Stmt, ...] = ()
        if len(c) == 4:
            orelse = self._body(c[3], "an 'else'")
            end = self._end(c[2], c[3])
        return ir.If(tuple(branches), orelse, span=self._span(start, end))

    # ---------------------------------------------------------------------------------------------------- declarations
    def assume(self, c: Children) -> Assume:
        return Assume(c[1], self._span(c[0], c[1]))

    def target(self, c: Children) -> Setting:
        return Setting("target", self._word(c[1], TARGETS, "a target", "'target'", "a5"), self._span(c[0], c[1]))

    def option(self, c: Children) -> Setting:
        values = {"auto_mutex": ("on", "off"), "credits": ("per_slot", "batched", "both")}
        span = self._span(c[0], c[3])
        key = self._word(c[1], tuple(values), "an option", "'option'", None)
        if key is None:
            return Setting(str(c[1]), "", span)
        return Setting(key, self._word(c[3], values[key], "a value", f"'{key} ='", values[key][-1]), span)

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

    def fifo(self, c: Children) -> ir.Fifo:
        sender = self._word(c[3], CORES, "a core kind", "':'", "cube")
        receiver = self._word(c[5], CORES, "a core kind", "'->'", None)
        if receiver == sender:
            self._error(c[5], f"a FIFO leads from one core kind to the other, not from {sender} to {sender}")
        found = self._attributes(c[7], ("slots", "id", "lanes"), "a fifo")
        if "slots" not in found.found:
            self._error(c[0], "a fifo needs its number of slots: ', slots = N'")
        lanes = found.expr("lanes")
        if lanes is not None and not (isinstance(lanes, ir.Int) and lanes.value in (1, 2)):
            self._error(lanes, "expected the number of vector sub-cores after 'lanes =': 1 or 2")
        return ir.Fifo(
            str(c[1]),
            cast("ir.Core", sender),
            found.expr("slots") or ir.Int(1),
            found.expr("id") or ir.Int(0),
            lanes.value if isinstance(lanes, ir.Int) else 2,
            span=self._span(c[0], c[7][-1]),
        )

    def ring(self, c: Children) -> ir.Ring:
        return ir.Ring(str(c[1]), c[3], tuple(str(t) for t in c[6]), span=self._span(c[0], c[7]))

    # ------------------------------------------------------------------------------------------------------ attributes
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

    # ----------------------------------------------------------------------------------------------- simple statements
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
            self._error(c[1], "unknown escape in this string; known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")
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

    # ------------------------------------------------------------------------------------------- data operations, FIFO
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


def _bounds(arguments: list[ir.Expr]) -> tuple[ir.Expr, ir.Expr, ir.Expr]:
    """start, stop, step from the arguments of a range."""
    if len(arguments) == 1:
        return ir.Int(0), arguments[0], ir.Int(1)
    return arguments[0], arguments[1], arguments[2] if len(arguments) > 2 else ir.Int(1)


def _first_place(item: Indented) -> Any:
    first: Any = item
    while isinstance(first, Indented):
        first = first.start
    return first


def _assigned_inside(items: list[Any]) -> set[str]:
    """The names that sections and compound statements assign (not the kernel level itself)."""
    names: set[str] = set()
    for item in items:
        if isinstance(item, ir.Section | ir.For | ir.Pipelined | ir.If):
            for node in ir.walk(item):
                if isinstance(node, ir.Assign | ir.Cursor | ir.Bind):
                    names.add(node.name)
    return names


def _describe(item: Any) -> str:
    match item:
        case Assume():
            return "'assume'"
        case Setting(key="target"):
            return "'target'"
        case Setting():
            return "'option'"
        case Private():
            return "'private' (inside a section a plain 'x = ...' is private already)"
        case ir.Constant():
            return "a tuple constant"
        case ir.Section():
            return "a section"
        case _:
            return f"the declaration of {type(item).__name__.lower()} '{item.name}'"
