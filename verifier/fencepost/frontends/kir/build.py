"""What does a kernel text mean?  The callbacks of the grammar: each builds one IR node with its span.

Lark calls them while it parses, with the finished children of one rule; no syntax tree is kept.  Mistakes that the
grammar cannot express (an unknown pipe, an attribute in the wrong place) are recorded and parsing goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast, get_args

from fencepost import ir
from fencepost.frontends.kir.declarations import CORES, DeclarationRules
from fencepost.frontends.kir.values import Assume, Attribute, Bad, Block, Children, Indented, Private, Setting, Tuple
from fencepost.scope import built_in
from fencepost.spelling import one_of, suggestion

if TYPE_CHECKING:
    from lark import Token

_STATEMENTS = get_args(ir.Stmt)
_COMPOUND = (ir.Section, ir.For, ir.Pipelined, ir.If)
_LISTS = ("stage", "order", "async_stages", "async_producers", "async_producer_groups", "replayable")


class Builder(DeclarationRules):
    """The callbacks of the whole grammar; here those of blocks, loops, sections and kernels."""

    # ----------------------------------------------------------------------------------------------------------- blocks
    def simple_statement(self, c: Children) -> Any:
        return c[0]

    def bad_line(self, c: Children) -> Bad:
        return Bad(self._span(c[0], c[0]))

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
                if isinstance(item, ir.Fifo):
                    self.dropped.add("fifo")
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

    def _end(self, block: Block) -> Any:
        """The last place of a compound statement."""
        last = block.end
        while isinstance(last, Indented):
            last = last.items[-1]
        return last

    # -------------------------------------------------------------------------------------------------- kernel, section
    def whole(self, items: list[Any]) -> list[ir.Kernel]:
        """The kernels of a text, from the items of the rule `start`."""
        return [item for item in self._items(tuple(items)) if isinstance(item, ir.Kernel)]

    def names(self, c: Children) -> list[Any]:
        return cast("list[Any]", c[0])

    def kernel(self, c: Children) -> ir.Kernel:
        block: Block = c[-1]
        parameters = self._parameters(c[3]) if len(c) == 7 else ()
        line = self.headers.setdefault(str(c[1]), c[1].line)
        if line != c[1].line:
            self._error(c[1], f"there is a kernel '{c[1]}' already, on line {line}; choose another name")
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
            span=self._span(c[0], self._end(block)),
        )

    def _parameters(self, tokens: list[Token]) -> tuple[str, ...]:
        """The names of the parameters, without those that can't be: their places are known here only."""
        found: dict[str, None] = {}
        for token in tokens:
            name = str(token)
            if name in found:
                self._error(token, f"'{name}' is already declared as a parameter")
            elif name in ir.BUILTINS:
                self._error(token, built_in(name))
            else:
                found[name] = None
        return tuple(found)

    def section(self, c: Children) -> ir.Section:
        core = self._word(c[1], CORES, "a core kind", "'section'", "cube")
        body = self._body(c[3], "a section")
        return ir.Section(cast("ir.Core", core), body, span=self._span(c[0], self._end(c[3])))

    # ------------------------------------------------------------------------------------------------ loops, conditions
    def for_range(self, c: Children) -> ir.For:
        arguments: list[ir.Expr] = c[5]
        if len(arguments) > 3:
            self._error(arguments[3], "'range' takes at most three arguments: start, stop, step")
        start, stop, step = _bounds(arguments)
        body = self._body(c[8], "a loop")
        return ir.For(str(c[1]), start, stop, step, body, span=self._span(c[0], self._end(c[8])))

    def for_pipeline(self, c: Children) -> ir.For:
        arguments: list[ir.Expr] = c[5]
        attribute: Attribute = c[7]
        if len(arguments) > 3:
            self._error(arguments[3], "'pipeline' takes at most three bounds: start, stop, step")
        if attribute.key != "stage" or attribute.family:
            self._error(attribute, "'pipeline' takes one key, the stage: pipeline(start, stop, step, stage = F)")
        start, stop, step = _bounds(arguments)
        body = self._body(c[10], "a loop")
        span = self._span(c[0], self._end(c[10]))
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
        return ir.Pipelined(str(c[1]), start, stop, body, **keys, span=self._span(c[0], self._end(c[-1])))

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
        return [c[0], (c[1], self._body(c[3], "an 'if'")), self._end(c[3])]

    def branch_more(self, c: Children) -> list[Any]:
        c[0][-1] = (c[2], self._body(c[4], "an 'elif'"))
        c[0].append(self._end(c[4]))
        return cast("list[Any]", c[0])

    def if_statement(self, c: Children) -> ir.If:
        start, *branches, end = c[0]
        orelse: tuple[ir.Stmt, ...] = ()
        if len(c) == 4:
            orelse = self._body(c[3], "an 'else'")
            end = self._end(c[3])
        return ir.If(tuple(branches), orelse, span=self._span(start, end))


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
    stack = [item for item in items if isinstance(item, _COMPOUND)]
    while stack:
        compound = stack.pop()
        for statement in _inner(compound):
            if isinstance(statement, ir.Assign | ir.Cursor | ir.Bind):
                names.add(statement.name)
            elif isinstance(statement, _COMPOUND):
                stack.append(statement)
    return names


def _inner(compound: ir.Section | ir.For | ir.Pipelined | ir.If) -> Iterator[ir.Stmt]:
    if isinstance(compound, ir.If):
        for _, body in compound.branches:
            yield from body
        yield from compound.orelse
    else:
        yield from compound.body


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
