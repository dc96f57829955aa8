"""What was expected, in words?  Texts for syntax errors: terminals, lists of choices, nearest names."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fencepost import ir

if TYPE_CHECKING:
    from lark import Token

_EXPRESSION = frozenset({"NAME", "INT", "LPAR", "MINUS", "NOT"})
_OPERATORS = frozenset({"PLUS", "MINUS", "TIMES", "COMPARE", "AND", "OR", "IF"})

SPELLING = {
    "KERNEL": "kernel", "SECTION": "section", "ASSUME": "assume", "TARGET": "target", "OPTION": "option",
    "BUFFER": "buffer", "FIFO": "fifo", "RING": "ring", "PRIVATE": "private", "BIND": "bind",
    "UNSUPPORTED": "unsupported", "SET_CROSS": "set_cross_core", "WAIT_CROSS": "wait_cross_core",
    "SYNC_SRC": "sync_src", "SYNC_DST": "sync_dst", "MUTEX_LOCK": "mutex_lock", "MUTEX_UNLOCK": "mutex_unlock",
    "BARRIER": "barrier", "SYNC_ALL": "sync_all", "RANGE": "range", "PIPELINE": "pipeline", "PIPELINED": "pipelined",
    "ADDRESS": "at", "SIZE": "size", "STRIDE": "stride", "ROWS": "rows", "MUTEX": "mutex", "SHARED": "shared",
    "PART": "part", "OF": "of", "OFFSET": "offset", "FOR": "for", "IN": "in", "IF": "if", "ELIF": "elif",
    "ELSE": "else", "AND": "and", "OR": "or", "NOT": "not", "PASS": "pass", "BREAK": "break", "CONTINUE": "continue",
    "ASSERT": "assert",
}  # fmt: skip
"""How the words of the language are written."""

_SIGNS = {
    "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "COLON": "':'", "COMMA": "','", "DOT": "'.'",
    "ELLIPSIS": "'...'", "LARROW": "'<-'", "ARROW": "'->'", "AT": "'@'", "EQUAL": "'='",
}  # fmt: skip

STATEMENT_WORDS = (
    "section", "assume", "target", "option", "buffer", "fifo", "ring", "private", "bind", "unsupported",
    "set_cross_core", "wait_cross_core", "sync_src", "sync_dst", "mutex_lock", "mutex_unlock", "barrier", "sync_all",
    "tpush_to_aiv", "tpush_to_aic", "tfree_to_aiv", "tfree_to_aic",
    "for", "if", "elif", "else", "pass", "break", "continue", "assert",
)  # fmt: skip


def one_of(words: Sequence[str], last: str = "or") -> str:
    """`one of a, b, c` for three words and more, `a or b` for two."""
    if len(words) <= 2:
        return f" {last} ".join(words)
    return f"one of {', '.join(words)}" if last == "or" else f"{', '.join(words[:-1])} {last} {words[-1]}"


def nearest(word: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The known word that `word` most likely means, or None; `cutoff` is difflib's least similarity."""
    if not word or len(word) > 100:
        return None
    candidates = list(known)
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    if word.lower() in folded and folded[word.lower()] != word:
        return folded[word.lower()]
    found = get_close_matches(word, candidates, 1, cutoff)
    return found[0] if found and found[0] != word else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no known word is near."""
    found = nearest(word, known)
    return f"; did you mean '{found}'?" if found else ""


def describe_token(token: Token) -> str:
    """What was found, in words."""
    match token.type:
        case "NEWLINE":
            return "the end of the line"
        case "INDENT":
            return "a deeper indentation"
        case "DEDENT":
            return "the end of the block"
        case "$END":
            return "the end of the text"
        case "INT":
            return _short(f"the number {token}")
        case _:
            return f"'{_short(str(token))}'"


def describe_character(character: str) -> str:
    """A character that the language does not know, printable."""
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    if unicodedata.category(character)[0] in "CZ":
        return f"the character {code}{' ' + name if name else ''}"
    return f"the character '{character}' ({code})"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def unexpected(token: Token, previous: Token | None, first: Token, accepted: Collection[str]) -> str:
    """The message for the unexpected `token` behind `previous`, in the statement that begins with `first`."""
    text, kind = str(token), token.type
    if kind == "":
        if text == '"':
            return "this text in double quotes is not closed on its line" if "STRING" in accepted else _plain(text)
        if len(text) > 1 or text.isdigit():
            return f"'{_short(text)}' is neither a number nor a name"
        return _plain(text)
    if "KERNEL" in accepted:
        if text == "kernel":
            return "a kernel header must begin in column 1"
        return f"expected 'kernel NAME(...):' here, found {describe_token(token)}{suggestion(text, ['kernel'])}"
    if token is first and kind in ("ELIF", "ELSE"):
        return f"'{text}' without an 'if' above it"
    if str(first) == "kernel" and first.type == "NAME":
        return "a kernel header must begin in column 1"
    if kind == "LARROW" and "COMPARE" in accepted:
        return "'<-' is one sign; to compare with a negative value write '< -'"
    if kind == "EQUAL" and "COMPARE" in accepted:
        return "'=' does not compare; write '=='"
    if kind == "DOT" and previous is not None and previous.type == "INT":
        return "only integers are known, no fractions"
    expected = expectation(accepted, previous, str(first))
    if set(accepted) - {"BAD"} == {"POP"}:
        expected += " (a data operation begins with its name: OP DST <- SRC @ PIPE)"
    if kind in RESERVED and accepted and "NAME" in accepted and kind != "NOT":
        return f"{expected}; '{text}' is a reserved word"
    hint = ""
    if text.isidentifier():
        hint = suggestion(text, [SPELLING[k] for k in accepted if k in SPELLING])
    return f"{expected}, found {describe_token(token)}{hint}"


def _plain(text: str) -> str:
    return f"{describe_character(text)} has no meaning here"


RESERVED = frozenset(
    {"IF", "ELIF", "ELSE", "FOR", "IN", "AND", "OR", "NOT", "PASS", "BREAK", "CONTINUE", "ASSERT"}
)


def expectation(accepted: Collection[str], previous: Token | None, statement: str) -> str:
    """What may stand after `previous`, in words.

    `accepted` holds the terminals that the parser would take, `statement` is the first word of the line.
    """
    rest = set(accepted) - {"BAD"}
    words: list[str] = []
    if "ELLIPSIS" in rest or len(rest) > 25:
        return "expected a statement"
    if rest == {"INDENT"}:
        return "expected an indented block"
    if rest >= _EXPRESSION:
        words.append("a tuple or an expression" if "RPAR" in rest and _is(previous, "LPAR") else "an expression")
        rest -= _EXPRESSION | {"RPAR"}
    elif rest & _OPERATORS and rest - _OPERATORS:
        rest -= _OPERATORS
    for kind in sorted(rest, key=_rank):
        words.append(_WORDS.get(kind) or _SIGNS.get(kind) or f"'{SPELLING.get(kind, kind.lower())}'")
    if "KEY" in rest:
        words[words.index(_WORDS["KEY"])] = _keys(statement, _is(previous, "COMMA"))
    if not words:
        words = ["an operator"]
    after = ""
    if previous is not None and previous.type not in ("NEWLINE", "INDENT", "DEDENT"):
        after = f" after {describe_token(previous)}"
    lists = {"PIPE": ir.PIPES, "SPACE": ir.SPACES, "CORE": ("cube", "vector"), "TARGET_NAME": ("a5", "a3", "a2")}
    listed = ""
    if len(rest) == 1 and len(words) == 1:
        kind = next(iter(rest))
        if kind in lists:
            listed = f": {one_of(lists[kind] + (('ALL',) if _is(previous, 'BARRIER') else ()))}"
    words = list(dict.fromkeys(words))
    joined = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"expected {joined}{after}{listed}"


_WORDS = {
    "NAME": "a name",
    "KEY": "an attribute",
    "INT": "a number",
    "STRING": 'a text in double quotes',
    "PIPE": "a pipe",
    "SPACE": "a memory space",
    "CORE": "a core kind",
    "TARGET_NAME": "a target",
    "OPTION_NAME": "an option: auto_mutex or credits",
    "OPTION_VALUE": "a value",
    "FIELD": "a field name",
    "METHOD": "one of next(), current(), previous()",
    "POP": "tpop_from_aiv or tpop_from_aic",
    "NEWLINE": "the end of the line",
    "INDENT": "an indented block",
    "DEDENT": "the end of the block",
    "$END": "the end of the text",
}


def _rank(kind: str) -> tuple[int, str]:
    """Signs first, then words, the end of the line last."""
    return (2 if kind in ("NEWLINE", "$END", "DEDENT") else 0 if kind in _SIGNS or kind in _WORDS else 1, kind)


def _is(token: Token | None, kind: str) -> bool:
    return token is not None and token.type == kind


def _keys(statement: str, listed: bool) -> str:
    """The attributes that can follow in a statement that begins with the word `statement`."""
    if statement in ("set_cross_core", "wait_cross_core"):
        return "'mode = ...', 'lane = ...'"
    if statement == "fifo":
        return "'slots = ...', 'id = ...', 'lanes = ...'"
    if statement == "for":
        return "a key such as 'stage = ...'"
    if statement.startswith("tfree"):
        return "'id = ...'"
    if statement.startswith("tpush"):
        return "'id = ...', 'task = ...'"
    return "an attribute such as 'task = ...'"
