"""Which token comes next?  The lexer looks only for the terminals that the automaton accepts where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Protocol

from fencepost.frontends.kir.tables import Tables


class Token(str):
    """A piece of text, its terminal `type`, and where it stands.

    Lines and columns are 1-based, positions count from the first character of the text; ends are exclusive.
    """

    __slots__ = ("column", "end_column", "end_line", "end_pos", "line", "start_pos", "type")

    def __new__(
        cls,
        type: str,
        value: str,
        start_pos: int | None = None,
        line: int | None = None,
        column: int | None = None,
        end_line: int | None = None,
        end_column: int | None = None,
        end_pos: int | None = None,
    ) -> Token:
        token = str.__new__(cls, value)
        token.type, token.start_pos, token.line, token.column = type, start_pos, line, column
        token.end_line, token.end_column, token.end_pos = end_line, end_column, end_pos
        return token

    type: str
    start_pos: int | None
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    end_pos: int | None


class Misplaced(Exception):
    """The text goes on with `token`, which the automaton does not accept where it stands."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


class NoToken(Exception):
    """No terminal begins at the lexer's place."""


class _State(Protocol):
    @property
    def position(self) -> int: ...


class Lexer:
    """The lexer of one text.  `char_pos`, `line` and `column` are its place, which may be moved between tokens."""

    def __init__(self, tables: Tables, text: str, line: int) -> None:
        self._tables, self._text = tables, text
        self._scanners: dict[int, Any] = {}
        self.char_pos, self.line, self.line_start = 0, line, 0

    @property
    def column(self) -> int:
        return self.char_pos - self.line_start + 1

    def move(self, position: int, line: int) -> None:
        """Go on at `position`, which is on line `line` of the file."""
        self.char_pos, self.line = position, line
        self.line_start = self._text.rfind("\n", 0, position) + 1

    def skip(self, length: int) -> None:
        """Leave out the next `length` characters."""
        end = self.char_pos + length
        self.move(end, self.line + self._text.count("\n", self.char_pos, end))

    def tokens(self, state: _State) -> Iterator[Token]:
        """The tokens from here on; the position of `state` says what may come.

        Raises Misplaced behind a token that may not come, NoToken in front of text that is none.
        """
        text, scanners, ignored = self._text, self._scanners, self._tables.ignored
        while self.char_pos < len(text):
            position = state.position
            scanner = scanners.get(position)
            if scanner is None:
                scanner = scanners[position] = self._tables.scanner(frozenset(self._tables.actions[position])).match
            found = scanner(text, self.char_pos)
            if found is None:
                found = self._tables.scanner(None).match(text, self.char_pos)
                if found is None:
                    raise NoToken
                raise Misplaced(self._token(found))
            if found.lastgroup in ignored:
                self.char_pos = found.end()
            else:
                yield self._token(found)

    def _token(self, found: re.Match[str]) -> Token:
        """Make a token of what a scanner found, and go behind it."""
        value, start, end = found.group(), self.char_pos, found.end()
        line, column = self.line, self.column
        self.char_pos = end
        if "\n" in value:
            self.line += value.count("\n")
            self.line_start = start + value.rindex("\n") + 1
        return Token(found.lastgroup or "", value, start, line, column, self.line, end - self.line_start + 1, end)
