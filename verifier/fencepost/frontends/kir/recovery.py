"""How does parsing go on after a line that cannot be read?

One kernel's text is fed to Lark's LALR automaton token by token.  At a mistake the message is made, the automaton is
taken back to where a statement may begin, the terminal BAD stands for the line, and reading goes on behind it.  The
indenter keeps its state, so one mistake costs one line (a bad header also its block).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fencepost import ir
from fencepost.frontends.kir import foreign, words
from fencepost.frontends.kir.automaton import Automaton, Refused, Tables

if TYPE_CHECKING:
    from lark import Lark, Token

    from fencepost.frontends.kir.build import Builder
    from fencepost.frontends.kir.indent import Indenter

Report = Callable[[int, int, str], None]

REWINDS = 20
"""How often per kernel the reader goes back to a line that an unclosed bracket had swallowed."""

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"'([^\W\d]\w*)'")
_STATEMENT = re.compile(rf"[ \t]*(?:(?:{'|'.join(words.LINE_WORDS)})\b|[^\W\d]\w*[ \t]*(?:=(?!=)|<-|[^\W\d]))")


class KernelParse:
    """The reading of one kernel's text."""

    def __init__(self, lark: Lark, tables: Tables, indenter: Indenter, builder: Builder, report: Report) -> None:
        self._lark = lark
        self._automaton = Automaton(tables)
        self._indenter = indenter
        self._builder = builder
        self._report = report
        self._rewinds = 0
        self.bad_names: set[str] = set()
        """The identifiers in lines that could not be read."""

    def run(self, text: str, line: int) -> list[ir.Kernel]:
        """Read `text`, which begins on line `line` of its file and ends with a line end; return its kernels."""
        from lark import Token, UnexpectedCharacters, UnexpectedToken

        self._text = text
        self._make: Any = Token
        self._indenter.begin(text, self._report)
        thread: Any = self._lark.parse_interactive(text).lexer_thread
        self._counter: Any = thread.state.line_ctr
        self._counter.line = line
        feed = self._automaton.feed
        stream = thread.lex(self._automaton)
        while True:
            try:
                for token in stream:
                    feed(token)
                items: list[Any] = feed(self._marker("$END"))
                return self._builder.whole(items)
            except Refused as refused:
                if self._recover(refused.token, fed=True):
                    stream = thread.lex(self._automaton)
            except UnexpectedToken as error:  # the lexer found a token that cannot come next
                self._recover(error.token, fed=False)
                stream = thread.lex(self._automaton)
            except UnexpectedCharacters:
                bad = self._make("", text[self._counter.char_pos], self._counter.char_pos)
                bad.line, bad.column = self._counter.line, self._counter.column
                self._recover(bad, fed=False)
                stream = thread.lex(self._automaton)

    # ------------------------------------------------------------------------------------------------------- recovery
    def _recover(self, token: Token, fed: bool) -> bool:
        """Report the unexpected `token` and make everything ready for the line behind it.

        `fed`: the token came through the indenter; else the lexer stopped at it and nothing else has seen it.  Returns
        whether the token stream has ended or was moved and must be opened again.
        """
        accepted = self._automaton.accepted()
        if accepted == {"INDENT"}:
            return self._no_block(token, fed)
        if self._indenter.brackets and self._unclosed(token):
            return True
        first = token if not fed or self._indenter.line_start is None else self._indenter.line_start
        if not fed and not self._indenter.fresh and self._indenter.line_start is not None:
            first = self._indenter.line_start
        orphan = token is first and token.type in ("ELIF", "ELSE")
        line, column = self._indenter.misplaced
        known = token.line == line and column in (1, token.column)
        if not known and not (orphan and token.column in self._indenter.broken_columns):
            self._fault(token, first, accepted)
        start = first.start_pos or 0
        self._give_up(first)
        if token.type in words.STRUCTURE:
            self.bad_names.update(_IDENTIFIER.findall(self._text, start, self._counter.char_pos))
            self._automaton.feed(token)
        else:
            if token.type == "":
                self._counter.feed(token)
            self._skip_line(len(self._indenter.brackets), (first.column or 1) - 1)
            self.bad_names.update(_IDENTIFIER.findall(self._text, start, self._counter.char_pos))
        self._indenter.brackets.clear()
        return not fed

    def _give_up(self, first: Token) -> None:
        """Take the automaton back to where a statement may begin and let BAD stand for the line of `first`."""
        self._automaton.back_to("BAD")
        line, column = first.line, first.column
        self._automaton.feed(self._make("BAD", "", first.start_pos, line, column, line, column))
        self._indenter.broken_columns.append(first.column or 1)

    def _no_block(self, token: Token, fed: bool) -> bool:
        """A header whose block is missing; `token` belongs to the next line (or closes the block around it)."""
        previous = self._indenter.previous
        header = self._indenter.line_start if self._indenter.header is None else self._indenter.header
        if previous is not None and header is not None:
            self._report(
                previous.end_line or 0,
                previous.end_column or 0,
                f"expected an indented block after this line ('{header}' opens one); write 'pass' for an empty one",
            )
            self._give_up(header)
        self._automaton.feed(self._marker("NEWLINE"))
        if token.type == "$END":
            return True
        if fed:
            self._automaton.feed(token)
            return False
        if token.type != "":
            self._rewind(token.start_pos or 0, token.line or 0)
        return True

    def _unclosed(self, token: Token) -> bool:
        """Report a bracket that swallowed a statement of a later line, and go back to that line."""
        opened, first = self._indenter.brackets[0], self._indenter.line_start
        if first is None or self._rewinds >= REWINDS:
            return False
        margin = (first.column or 1) - 1
        stop = len(self._text) if token.type in words.STRUCTURE else token.start_pos or 0
        line = opened.line or 0
        position = self._text.find("\n", opened.start_pos or 0)
        while 0 <= position < stop:
            line += 1
            if self._begins_statement(position + 1, margin):
                break
            position = self._text.find("\n", position + 1)
        if not 0 <= position < stop:
            if token.type not in words.STRUCTURE:
                return False
            position, line = len(self._text) - 1, line
        self._rewinds += 1
        self._report(opened.line or 0, opened.column or 0, f"this '{opened}' is never closed")
        self.bad_names.update(_IDENTIFIER.findall(self._text, first.start_pos or 0, position))
        self._give_up(first)
        self._indenter.brackets.clear()
        self._rewind(position, line - 1)
        return True

    def _begins_statement(self, position: int, margin: int) -> bool:
        """Whether the line at `position` looks like a statement of its own, not like a continuation."""
        end = self._text.find("\n", position)
        line = self._text[position:end]
        words_ = line.lstrip(" \t")
        if not words_ or words_[0] in "#)]":
            return False
        return len(line) - len(words_) <= margin and (
            len(line) - len(words_) < margin or _STATEMENT.match(line) is not None
        )

    def _rewind(self, position: int, line: int) -> None:
        """Let the lexer go on at `position`, which is on line `line` of the file."""
        counter = self._counter
        counter.char_pos = position
        counter.line = line
        counter.line_start_pos = self._text.rfind("\n", 0, position) + 1
        counter.column = position - counter.line_start_pos + 1

    def _skip_line(self, depth: int, margin: int) -> None:
        """Skip to the end of the statement's line, and over continuation lines inside `depth` open brackets."""
        text, position = self._text, self._counter.char_pos
        while True:
            end = text.find("\n", position)
            rest = text[position:end].split("#", 1)[0]
            depth += rest.count("(") + rest.count("[") - rest.count(")") - rest.count("]")
            position = end
            following = text[end + 1 : text.find("\n", end + 1)]
            body = following.lstrip(" \t")
            closing = body[:1] in (")", "]")
            if depth <= 0 or end + 1 >= len(text) or _STATEMENT.match(body):
                break
            if len(following) - len(body) <= margin and not closing:
                break
            position = end + 1
        self._counter.feed(text[self._counter.char_pos : position])

    # ------------------------------------------------------------------------------------------------------- messages
    def _fault(self, token: Token, first: Token, accepted: set[str]) -> None:
        """Report the unexpected `token` in the statement that begins with `first`."""
        previous = None if token is first else self._indenter.previous
        if token.type in words.STRUCTURE and self._indenter.previous is not None:
            line, column = self._indenter.previous.end_line or 0, self._indenter.previous.end_column or 0
        else:
            line, column = token.line or 0, token.column or 0
        if token.type == "":
            token = self._whole_word(token)
        message = None
        if token is not first and not words.outside(accepted):
            message = words.wrong_statement(first, previous, accepted)
        if message:
            self.bad_names.update(_QUOTED.findall(message))  # what was meant counts as unread, too
            line, column = first.line or 0, first.column or 0
        else:
            message = self._cursor(token, previous) or words.unexpected(token, previous, first, accepted)
        self._report(line, column, message)

    def _cursor(self, token: Token, previous: Token | None) -> str | None:
        """What to say if the unexpected `token` is the dot of a cursor's movement."""
        if token.type != "DOT" or previous is None or previous.type != "NAME":
            return None
        start = (token.start_pos or 0) + 1
        return foreign.cursor(str(previous), self._text[start : self._text.find("\n", start)])

    def _whole_word(self, bad: Token) -> Token:
        """`bad` is a character that no terminal begins with; a malformed number is shown as a whole."""
        found = re.compile(r"[0-9]\w*").match(self._text, bad.start_pos or 0)
        return self._make("", found.group()) if found else bad

    def _marker(self, kind: str) -> Token:
        """A token without text at the lexer's place."""
        counter = self._counter
        position, line, column = counter.char_pos, counter.line, counter.column
        token: Token = self._make(kind, "", position, line, column, line, column, position)
        return token
