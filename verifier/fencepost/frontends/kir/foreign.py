"""Which words do people bring along from other languages, and how does kernel IR say it?"""

from __future__ import annotations

_MEANT = {
    "lock": "mutex_lock", "acquire": "mutex_lock", "get_buf": "mutex_lock",
    "unlock": "mutex_unlock", "release": "mutex_unlock", "rls_buf": "mutex_unlock",
    "set": "set_cross_core|sync_src", "signal": "set_cross_core|sync_src",
    "set_event": "sync_src", "set_flag": "sync_src",
    "wait": "wait_cross_core|sync_dst", "wait_event": "sync_dst", "wait_flag": "sync_dst",
    "sync": "sync_src|sync_dst|barrier|sync_all", "pipe_barrier": "barrier", "sync_all_cores": "sync_all",
    "push": "tpush_to_aiv|tpush_to_aic", "tpush": "tpush_to_aiv|tpush_to_aic", "send": "tpush_to_aiv|tpush_to_aic",
    "pop": "X <- tpop_from_aiv|X <- tpop_from_aic", "tpop": "X <- tpop_from_aiv|X <- tpop_from_aic",
    "free": "tfree_to_aiv|tfree_to_aic", "tfree": "tfree_to_aiv|tfree_to_aic",
}  # fmt: skip
"""Statements of other notations, and the words that are meant by them."""

_CONTROL = {
    "while": "there is no 'while'; write 'for t in range(N):' and leave the loop with 'break'",
    "return": "there is no 'return'; a section ends with its last statement, and 'break' leaves a loop",
}

_METHODS = ("next", "current", "previous")


def statement(word: str) -> str | None:
    """What to say about a line that begins with `word` and can't be read, if other languages have such a statement."""
    if word in _CONTROL:
        return _CONTROL[word]
    if word in _MEANT:
        return f"unknown statement '{word}'; did you mean {' or '.join(repr(m) for m in _MEANT[word].split('|'))}?"
    return None


def never_a_name(word: str) -> bool:
    """Whether `word` is a control word elsewhere, so that nobody means it as the name of an operation."""
    return word in _CONTROL


def cursor(name: str, rest: str) -> str | None:
    """What to say about `name` before a dot in an expression, if `rest`, behind the dot, moves a cursor."""
    method = rest.lstrip(" \t").split("(")[0].rstrip(" \t")
    if method not in _METHODS:
        return None
    return f"a cursor must be assigned first: write 's = {name}.{method}()' on a line of its own, then {name}[s]"
