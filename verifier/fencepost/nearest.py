"""How is a name that does not exist explained?"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.spelling import nearest


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name that does not exist, with the nearest one that does, or some of them."""
    names = sorted(set(known))
    near = nearest(name, names, 0.6)
    if near:
        return f"no {kind} {name!r}; did you mean {near!r}?"
    if not names:
        return f"no {kind} {name!r}; there is none"
    rest = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"no {kind} {name!r}; there {'is' if len(names) == 1 else 'are'} {', '.join(names[:8])}{rest}"
