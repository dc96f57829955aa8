"""What is a value that is one of several, and what are its name and its elements?"""

from __future__ import annotations

from fencepost.frontends.pypto_pro.values import OneOf, Unknown, Value


def named(value: Value, name: str, origin: object) -> Value:
    """The value with the name that the user gives it, when it has none."""
    if isinstance(value, Unknown) and not value.name:
        return Unknown(name, value.reason, origin)
    if isinstance(value, OneOf) and not value.name:
        return OneOf(value.values, name, origin)
    return value


def unpack(value: Value, count: int) -> list[Value]:
    """`count` elements of a value that is unpacked; unknown where it is."""
    if isinstance(value, tuple) and len(value) == count:
        return list(value)
    if isinstance(value, OneOf) and all(isinstance(v, tuple) and len(v) == count for v in value.values):
        return [one_of(tuple(v[i] for v in value.values)) for i in range(count)]
    return [Unknown()] * count


def one_of(values: tuple[Value, ...]) -> Value:
    """One of several values; itself when they are all the same."""
    found: list[Value] = []
    for value in values:
        if not any(same(value, other) for other in found):
            found.append(value)
    return found[0] if len(found) == 1 else OneOf(tuple(found))


def union(name: str, a: Value, b: Value) -> Value:
    """A value that is `a` or `b`."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return Unknown(name, "it depends on something unknown")
    parts = (*(a.values if isinstance(a, OneOf) else (a,)), *(b.values if isinstance(b, OneOf) else (b,)))
    result = one_of(parts)
    return OneOf(result.values, name) if isinstance(result, OneOf) else result


def same(a: Value, b: Value) -> bool:
    """Whether two compile-time values are equal, without mixing 1, 1.0 and True."""
    return type(a) is type(b) and bool(a == b)
