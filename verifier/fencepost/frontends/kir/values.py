"""What does the grammar hand from rule to rule besides IR nodes?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fencepost import ir
from fencepost.spelling import one_of, suggestion

if TYPE_CHECKING:
    from lark import Token

_T = TypeVar("_T")
Children = list[Any]
"""The children of one rule: tokens, IR nodes and the values below."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that could not be read; it has been reported."""

    span: ir.Span


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


class Rules:
    """What all callbacks share: the file, the place of a node, and the list of mistakes.

    `begin` names the file; `report(line, column, message)` takes mistakes; `headers` are the kernels read so far.
    """

    def __init__(self) -> None:
        self.begin("", lambda line, column, message: None)

    def begin(self, file: str, report: Callable[[int, int, str], None], headers: dict[str, int] | None = None) -> None:
        self._file = file
        self._report = report
        self.dropped: set[str] = set()
        """Names that occur in statements which were left out because of a mistake."""
        self.headers: dict[str, int] = {} if headers is None else headers
        """The lines of the headers of a file's kernels, by name."""

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

    # ------------------------------------------------------------------------------------------------------ list shapes
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
