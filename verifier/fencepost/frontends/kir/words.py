"""What was expected, in words?  Texts of the syntax errors, from the terminals that the automaton would accept."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import TYPE_CHECKING

from fencepost import ir
from fencepost.frontends.kir import foreign
from fencepost.spelling import RESERVED, STATEMENT_WORDS, nearest, one_of, suggestion

if TYPE_CHECKING:
    from lark import Token

LINE_WORDS = (*STATEMENT_WORDS, "private", "for", "if", "elif", "else", "pass", "break", "continue", "assert")
"""Words that begin a line."""

STRUCTURE = ("NEWLINE", "INDENT", "DEDENT", "$END")
"""Terminals without text of their own."""

_SPELLING = {
    "SET_CROSS": "set_cross_core", "WAIT_CROSS": "wait_cross_core", "ADDRESS": "at",
    **{
        word.upper(): word
        for word in (
            *LINE_WORDS, "kernel", "range", "pipeline", "pipelined", "size", "stride", "rows", "mutex", "shared",
            "part", "of", "offset", *RESERVED,
        )
    },
}  # fmt: skip
"""How the words of the language are written, by terminal."""

_SIGNS = {
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "COLON": "':'", "COMMA": "','", "DOT": "'.'",
    "ELLIPSIS": "'...'", "LARROW": "'<-'", "ARROW": "'->'", "AT": "'@'", "EQUAL": "'='",
}  # fmt: skip

_CLASSES = {
    "NAME": "a name",
    "INT": "a number",
    "STRING": "a text in double quotes",
    "PIPE": "a pipe",
    "SPACE": "a memory space",
    "CORE": "a core kind",
    "TARGET_NAME": "a target",
    "OPTION_NAME": "an option",
    "OPTION_VALUE": "a value",
    "FIELD": "a field name",
    "METHOD": "a cursor movement",
    "POP": "tpop_from_aiv or tpop_from_aic",
    "NEWLINE": "the end of the line",
    "INDENT": "an indented block",
    "DEDENT": "the end of the block",
    "$END": "the end of the text",
}

_CHOICES = {
    "PIPE": ir.PIPES,
    "SPACE": ir.SPACES,
    "CORE": ("cube", "vector"),
    "TARGET_NAME": ("a5", "a3", "a2", "gpu"),
    "OPTION_NAME": ("auto_mutex", "credits"),
    "METHOD": ("next()", "current()", "previous()"),
}
"""What a class of words holds."""

_EXPRESSION = frozenset({"NAME", "INT", "LPAR", "MINUS", "NOT"})
_OPERAND = _EXPRESSION - {"NOT"}
_OPERATORS = frozenset({"PLUS", "MINUS", "TIMES", "COMPARE", "AND", "OR", "IF"})


def unexpected(token: Token, previous: Token | None, first: Token, accepted: Collection[str]) -> str:
    """The message for the unexpected `token` behind `previous`, in the line that begins with `first`.

    `accepted` holds the terminals that could have come instead.  A token without type is text that begins none.
    """
    text, kind = str(token), token.type
    if kind == "":
        return _no_token(text, accepted)
    if first.type == "NAME" and str(first) == "kernel":
        return "a kernel header must begin in column 1"
    if outside(accepted):
        return f"expected 'kernel NAME(...):' here, found {describe(token)}{suggestion(text, ['kernel'])}"
    if token is first and kind in ("ELIF", "ELSE"):
        return f"'{text}' without an 'if' above it"
    if kind == "LARROW" and previous is not None and {"AT", "COMMA"}.isdisjoint(accepted):
        return "'<-' is one sign; to compare with a negative value write '< -'"
    if kind == "EQUAL" and "COMPARE" in accepted:
        return "'=' does not compare; write '=='"
    if kind == "DOT" and previous is not None and previous.type == "INT":
        return "a number is an integer, without a fraction"
    expected = expectation(accepted, previous, str(first))
    if set(accepted) - {"BAD"} == {"POP"}:
        expected += " (a data operation begins with its name: OP DST <- SRC @ PIPE)"
    if text in RESERVED and "NAME" in accepted:
        return f"{expected}; '{text}' is a reserved word"
    hint = suggestion(text, [_SPELLING[k] for k in accepted if k in _SPELLING]) if text.isidentifier() else ""
    return f"{expected}{';' if ': ' in expected else ','} found {describe(token)}{hint}"


def outside(accepted: Collection[str]) -> bool:
    """Whether `accepted` is what can stand outside a kernel."""
    return not {"KERNEL", "$END"}.isdisjoint(accepted)


def wrong_statement(first: Token, previous: Token | None, accepted: Collection[str]) -> str | None:
    """The message if the first word of an unreadable line is of another language, or nearly the word of a statement.

    `previous` and `accepted`: as for `unexpected`.  A word that may name a data operation counts up to the arrow only.
    """
    word = str(first)
    if previous is first or "LARROW" in accepted or foreign.never_a_name(word):
        message = foreign.statement(word)
        if message is not None:
            return message
    near = None if word in LINE_WORDS else nearest(word, LINE_WORDS, 0.75)
    return f"unknown statement '{word}'; did you mean '{near}'?" if near else None


def expectation(accepted: Collection[str], previous: Token | None, statement: str) -> str:
    """What may stand after `previous`, in words, in a statement that begins with the word `statement`."""
    rest = set(accepted) - {"BAD"}
    after = ""
    if previous is not None and previous.type not in STRUCTURE:
        after = f" after {describe(previous)}"
    if "ELLIPSIS" in rest or len(rest) > 25:
        return "expected a statement"
    words: list[str] = []
    if rest >= _OPERAND:
        words.append("an expression")
        rest -= _EXPRESSION | {"RPAR"}
    elif rest - _OPERATORS:
        rest -= _OPERATORS
    if len(rest) == 1 and not words:
        kind = next(iter(rest))
        if kind in _CHOICES:
            choices = (*_CHOICES[kind], "ALL") if statement == "barrier" else _CHOICES[kind]
            return f"expected {_CLASSES[kind]}{after}: {one_of(choices)}"
    words += [_word(kind, statement) for kind in sorted(rest, key=_rank)]
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"expected {listed}{after}"


def describe(token: Token) -> str:
    """A token, in words."""
    if token.type in STRUCTURE:
        return _CLASSES[token.type]
    text = str(token)
    return f"'{text if len(text) <= 40 else text[:37] + '...'}'"


def _no_token(text: str, accepted: Collection[str]) -> str:
    """The message for text that begins no token: a number that goes wrong, or one character."""
    if len(text) > 1 or text.isdigit():
        return f"'{text[:40]}' is neither a number nor a name"
    if text == '"' and "STRING" in accepted:
        return "this text in double quotes is not closed on its line"
    code, name = f"U+{ord(text):04X}", unicodedata.name(text, "")
    if unicodedata.category(text)[0] in "CZ":
        return f"the character {code}{' ' + name if name else ''} has no meaning here"
    return f"the character '{text}' ({code}) has no meaning here"


def _word(kind: str, statement: str) -> str:
    if kind == "KEY":
        return _keys(statement)
    return _CLASSES.get(kind) or _SIGNS.get(kind) or f"'{_SPELLING.get(kind, kind.lower())}'"


def _rank(kind: str) -> tuple[int, str]:
    """Signs and classes first, then words, the end of the line last."""
    return (2 if kind in STRUCTURE else 0 if kind in _SIGNS or kind in _CLASSES else 1, kind)


def _keys(statement: str) -> str:
    """The attributes that can follow in a statement that begins with the word `statement`."""
    match statement:
        case "set_cross_core" | "wait_cross_core":
            keys = ["mode", "lane"]
        case "fifo":
            keys = ["slots", "id", "lanes"]
        case "for":
            keys = ["stage"]
        case "tfree_to_aiv" | "tfree_to_aic":
            keys = ["id"]
        case "tpush_to_aiv" | "tpush_to_aic":
            keys = ["id", "task"]
        case _:
            keys = ["task"]
    return ", ".join(f"'{key} = ...'" for key in keys)
