"""Where in the user's text does a syntax node stand?

`ast` counts columns in UTF-8 bytes from 0; spans count characters from 1.
"""

from __future__ import annotations

import ast
import re
import warnings

from fencepost.findings import InputError
from fencepost.ir import Span

_LINE_END = re.compile(r"\r\n|\r|\n")


class Source:
    """One Python text, its lines as `ast` counts them, and its name."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.text = text.removeprefix("\ufeff")
        self.lines = _LINE_END.split(self.text)

    def parse(self) -> ast.Module | InputError:
        """The syntax tree, or what is wrong with the text."""
        try:
            with warnings.catch_warnings():  # of other people's escape sequences
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            line = min(max(error.lineno or 1, 1), len(self.lines))
            column = max(error.offset or 1, 1)
            return self._error(line, column, f"not valid Python: {error.msg}")
        except (RecursionError, MemoryError):
            return self._error(1, 1, "the Python text is nested too deeply to be read")
        except ValueError as error:  # NUL characters
            return self._error(1, 1, f"not valid Python: {error}")

    def span(self, node: ast.AST, via: tuple[Span, ...] = ()) -> Span:
        """The stretch of text of `node`; `via` is the call path that led to it."""
        line = getattr(node, "lineno", 0)
        end_line = getattr(node, "end_lineno", None) or line
        if line == 0:
            return Span(self.file, via=via)
        column = self._column(line, node.col_offset)  # type: ignore[attr-defined]
        end = getattr(node, "end_col_offset", None)
        end_column = self._column(end_line, end) if end is not None else column
        return Span(self.file, line, column, end_line, end_column, via)

    def header(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Span:
        """The line of a function's `def`, without its body."""
        column = self._column(node.lineno, node.col_offset)
        return Span(self.file, node.lineno, column, node.lineno, len(self.lines[node.lineno - 1]) + 1)

    def error(self, node: ast.AST, message: str) -> InputError:
        """A mistake at `node`."""
        span = self.span(node)
        return self._error(span.line, span.column, message)

    def _error(self, line: int, column: int, message: str) -> InputError:
        excerpt = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return InputError(self.file, line, column, message, excerpt)

    def _column(self, line: int, offset: int) -> int:
        if line > len(self.lines):
            return offset + 1
        text = self.lines[line - 1]
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1
