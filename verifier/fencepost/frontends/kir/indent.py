"""Which tokens open and close the blocks of a kernel text?

A Lark postlex stage: it drops line ends inside brackets and turns indentation into INDENT and DEDENT tokens.  Unlike
Lark's own indenter it keeps its state across a lexing error, so that the reader can go on after a bad line, and it
reports an indentation that matches no block by itself instead of raising an error without a position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Token

TAB = 8
"""A tab advances to the next multiple of this many columns, as in Python."""

NO_KERNEL = "expected 'kernel NAME(...):' here, or an indented line of the kernel above"

_TWO_LINES = re.compile(r"[^\n#]*?(:?)[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*([ \t]*)")
"""A line, whether it ends in a colon, and the margin of the next line that is not empty."""

_OPEN = {"LPAR": "(", "LSQB": "["}
_CLOSE = {"RPAR": "(", "RSQB": "["}


class Indenter:
    """The postlex stage.  `begin` starts a text; `process` may be called again after an error in the lexer."""

    always_accept = ("NEWLINE",)

    def __init__(self) -> None:
        self.begin("", lambda line, column, message: None)

    def begin(self, text: str, report: Callable[[int, int, str], None]) -> None:
        """Start on `text`.  `report(line, column, message)` takes indentation errors."""
        self._report = report
        self._text = text
        self._levels = [0]
        self._last_bad = -1
        self.brackets: list[Token] = []
        self.line_start: Token | None = None
        self.previous: Token | None = None
        self.header: Token | None = None
        """First token of the last line that was ended."""
        self.broken_columns: list[int] = []
        """Columns of the lines around this one that could not be read: their blocks may go on (`else:`)."""
        self.misplaced = (0, 0)
        """Line and column of the last line whose indentation was reported."""
        self.fresh = True
        """Whether the next token is the first one of its line."""

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens of `stream` with the blocks made explicit, and close all blocks at its end."""
        for token in stream:
            kind = token.type
            if kind == "NEWLINE":
                if not self.brackets:
                    yield from self._line_end(token)
                continue
            if self.fresh:
                self.fresh = False
                self.line_start = token
                if self.broken_columns:
                    self._forget_broken(token)
            if kind in _OPEN:
                self.brackets.append(token)
            elif kind in _CLOSE and self.brackets and _OPEN[self.brackets[-1].type] == _CLOSE[kind]:
                self.brackets.pop()
            yield token
            self.previous = token  # only now: a token that the parser refuses has a predecessor
        yield from self._text_end()

    def _forget_broken(self, token: Token) -> None:
        """`token` begins a line: drop the unreadable lines whose blocks have ended."""
        column, broken = token.column or 0, self.broken_columns
        while broken and (column < broken[-1] or (column == broken[-1] and token.type not in ("ELIF", "ELSE"))):
            broken.pop()

    def _line_end(self, token: Token) -> Iterator[Token]:
        self.fresh = True
        self.header = self.line_start
        yield token
        if token.end_pos is not None and token.end_pos >= len(self._text):
            return  # trailing blank lines and comments: the end of the text closes the blocks
        margin = token.rsplit("\n", 1)[1]
        width = self._width(margin, token)
        levels = self._levels
        if width > levels[-1]:
            levels.append(width)
            yield _marker("INDENT", token)
            return
        if width == 0:
            self._misplaced(token, 1, NO_KERNEL)  # taken as one more line of the current block
            return
        if width not in levels:
            if width != self._last_bad and not self._opens_block():
                columns = ", ".join(str(level + 1) for level in levels)
                message = f"this indentation matches no enclosing block (they begin in columns {columns})"
                self._misplaced(token, len(margin) + 1, message)
            self._last_bad = width
            width = self._intended(width, token)
        while width < levels[-1]:
            levels.pop()
            yield _marker("DEDENT", token)

    def _opens_block(self) -> bool:
        """Whether the line that ends is the header of a block (whose absence is reported elsewhere)."""
        return self.previous is not None and self.previous.type == "COLON"

    def _intended(self, width: int, token: Token) -> int:
        """The level that a line at `width`, which is none, was most likely meant for, judging by the line below."""
        found = _TWO_LINES.match(self._text, token.end_pos or 0)
        if found is not None:
            below = self._width(found.group(2))
            levels = [level for level in self._levels if level < below or (level == below and not found.group(1))]
            if levels and (found.group(1) or levels[-1] == below):
                return levels[-1]
        return min(reversed(self._levels), key=lambda level: abs(level - width))

    def _misplaced(self, token: Token, column: int, message: str) -> None:
        self.misplaced = (token.end_line or 0, column)
        self._report(*self.misplaced, message)

    def _width(self, margin: str, token: Token | None = None) -> int:
        """The column (0-based) that `margin` reaches; a tab after spaces is reported at the end of `token`."""
        if "\t" not in margin and "\f" not in margin:
            return len(margin)
        width = 0
        for character in margin:
            width = width + 1 if character == " " else 0 if character == "\f" else width // TAB * TAB + TAB
        if " \t" in margin and token is not None:
            self._report(token.end_line or 0, margin.index(" \t") + 2, "a tab after spaces in the indentation")
        return width

    def _text_end(self) -> Iterator[Token]:
        last = self.previous
        if last is None:
            return
        if not self.fresh:
            self.fresh = True
            yield _marker("NEWLINE", last)
        while len(self._levels) > 1:
            self._levels.pop()
            yield _marker("DEDENT", last)


def _marker(kind: str, after: Token) -> Token:
    """A token without text at the end of `after`."""
    token = type(after)(kind, "")
    token.start_pos = token.end_pos = after.end_pos
    token.line = token.end_line = after.end_line
    token.column = token.end_column = after.end_column
    return token
