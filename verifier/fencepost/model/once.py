"""Once: how is something computed once for each kernel that is looked at?"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

Subject = TypeVar("Subject")
Result = TypeVar("Result")


class _Same:
    """An object by its identity: large, immutable, and not worth comparing."""

    __slots__ = ("it",)

    def __init__(self, it: object) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it


def once(function: Callable[[Subject], Result]) -> Callable[[Subject], Result]:
    """Remember the results of a function for the objects that it was last called with; nobody may change them."""

    @lru_cache(maxsize=64)
    def found(same: _Same) -> Result:
        return function(same.it)  # type: ignore[arg-type]

    @wraps(function)
    def remembered(subject: Subject) -> Result:
        return found(_Same(subject))

    return remembered
