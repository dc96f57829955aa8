"""Which known word was meant, and how are choices listed in a message?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

RESERVED = ("if", "elif", "else", "for", "in", "and", "or", "not", "pass", "break", "continue", "assert")
"""Words that can never be names in a kernel."""

STATEMENT_WORDS = (
    "section", "assume", "target", "option", "buffer", "fifo", "ring", "bind", "unsupported",
    "set_cross_core", "wait_cross_core", "sync_src", "sync_dst", "mutex_lock", "mutex_unlock", "barrier", "sync_all",
    "tpush_to_aiv", "tpush_to_aic", "tfree_to_aiv", "tfree_to_aic",
)  # fmt: skip
"""Words that begin a statement; they can be names, but not of data operations."""

_NAME = re.compile(rf"(?!(?:{'|'.join(RESERVED)})\b)[^\W\d]\w*\Z")


def is_name(text: str) -> bool:
    """Whether `text` can be a name in a kernel text."""
    return _NAME.match(text) is not None


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that `word` most likely means, or None; `cutoff` is difflib's least similarity."""
    if not word or len(word) > 100:
        return None
    candidates = [candidate for candidate in known if len(candidate) <= 100]
    for candidate in candidates:
        if candidate.lower() == word.lower() and candidate != word:
            return candidate
    found = get_close_matches(word, candidates, 1, cutoff) or [c for c in candidates if _one_off(word, c)]
    return found[0] if found and found[0] != word else None


def _one_off(word: str, other: str) -> bool:
    """Whether two short words differ in one character (difflib's ratio says little about them)."""
    return 1 < len(word) == len(other) < 4 and sum(a != b for a, b in zip(word, other, strict=True)) == 1


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or nothing when no known word is near."""
    found = nearest(word, known)
    return f"; did you mean '{found}'?" if found else ""


def one_of(words: Sequence[str], last: str = "or") -> str:
    """`a or b` for two words; for more `one of a, b, c`, or `a, b and c` with `last` = "and"."""
    if len(words) <= 2:
        return f" {last} ".join(words)
    return f"one of {', '.join(words)}" if last == "or" else f"{', '.join(words[:-1])} {last} {words[-1]}"
