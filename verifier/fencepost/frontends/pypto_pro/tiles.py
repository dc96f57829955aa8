"""Which buffers does a kernel declare: where do their slots lie, how wide are they, which locks do they carry?

Two buffers whose byte ranges meet are the same memory, so addresses and sizes are kept exactly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from fencepost import ir
from fencepost.frontends.pypto_pro import arithmetic
from fencepost.frontends.pypto_pro.values import DType, OneOf, Tile, TileType, Unknown, Unreadable, Value

# Bytes per element; types below a byte take one.
_WIDTHS = {
    name: width
    for width, names in {
        8: "INT64 UINT64 FP64",
        4: "FP32 INT32 UINT32 TF32",
        2: "FP16 BF16 INT16 UINT16",
        1: "INT8 UINT8 BOOL FP8E4M3FN FP8E5M2 FP8E8M0 HF8 FP4 FP4E2M1 FP4E1M2 HF4 INT4 UINT4",
    }.items()
    for name in names.split()
}

MOST = 1 << 32
"""More than any address, size or id."""
_USUAL = 2  # bytes of an element type that nothing is known about

# Memories that the IR has no name for: they lie in `Scaling`, far from it and from each other.
_SPACES: dict[str, tuple[ir.Space, int]] = {
    "Vec": ("Vec", 0),
    "Mat": ("Mat", 0),
    "Left": ("Left", 0),
    "Right": ("Right", 0),
    "Acc": ("Acc", 0),
    "Bias": ("Bias", 0),
    "Scaling": ("Scaling", 0),
    "ScaleLeft": ("Scaling", 1 << 24),
    "ScaleRight": ("Scaling", 1 << 25),
}


@dataclass(frozen=True, slots=True)
class Footprint:
    """The bytes of a slot that an access touches: `rows` runs of `width` bytes, `pitch` bytes apart."""

    width: int
    pitch: int
    rows: int


@dataclass(slots=True)
class Declared:
    """One buffer as declared.  `depth` is None for a plain tile; `size` is None where the element type decides."""

    name: str
    type: TileType
    depth: int | None
    addresses: tuple[int, ...] | None
    size: int | None
    mutex: tuple[tuple[int, ...], ...] | None
    span: ir.Span
    members: tuple[str, ...] = ()
    footprints: set[Footprint] = field(default_factory=set)
    whole: bool = False  # some access may touch a whole slot

    @property
    def slots(self) -> int:
        return self.depth or 1


class Buffers:
    """The buffers of one kernel, by name; a declaration that is read twice is declared once."""

    def __init__(self, taken: set[str], assumptions: list[str]) -> None:
        self.taken = taken
        self.assumptions = assumptions
        self.found: dict[str, Declared] = {}
        self.keys: dict[object, str] = {}
        self.widths: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """A name that nothing in the kernel has yet."""
        return fresh_name(hint, self.taken)

    def declare(
        self,
        key: object,
        hint: str,
        type_: TileType,
        depth: int | None,
        addresses: tuple[int, ...] | None,
        size: int | None,
        mutex: tuple[tuple[int, ...], ...] | None,
        span: ir.Span,
    ) -> str:
        """The name of the buffer declared at `key`."""
        if key not in self.keys:
            name = self.fresh(hint)
            offset = _SPACES[type_.space][1]
            moved = None if addresses is None else tuple(a + offset for a in addresses)
            self.found[name] = Declared(name, type_, depth, moved, size, mutex, span)
            self.keys[key] = name
        return self.keys[key]

    def gather(self, tiles: tuple[Tile, ...], hint: str, span: ir.Span) -> str | None:
        """One buffer that has the given plain tiles as its slots, or None if they are not alike."""
        names = tuple(t.buffer for t in tiles)
        if names not in self.keys:
            parts = [self.found[n] for n in names]
            first = parts[0]
            alike = all(
                p.depth is None
                and p.mutex is None
                and p.addresses is not None
                and p.type.space == first.type.space
                and p.size == first.size
                and (
                    p.size is not None
                    or (p.type.dtype == first.type.dtype and _elements(p.type) == _elements(first.type))
                )
                for p in parts
            )
            if not alike:
                return None
            name = self.fresh(hint)
            addresses = tuple(p.addresses[0] for p in parts if p.addresses is not None)
            self.found[name] = Declared(name, first.type, len(parts), addresses, first.size, None, span, names)
            self.keys[names] = name
        return self.keys[names]

    def space(self, buffer: str) -> str:
        """The memory space of a buffer as the language calls it."""
        return self.found[buffer].type.space

    # -------------------------------------------------------------------------------------------------------- results

    def homes(self) -> dict[str, tuple[str, int]]:
        """For each plain tile that is a slot of exactly one gathered buffer: that buffer and the slot."""
        seen: dict[str, list[tuple[str, int]]] = {}
        for declared in self.found.values():
            for slot, member in enumerate(declared.members):
                seen.setdefault(member, []).append((declared.name, slot))
        return {member: places[0] for member, places in seen.items() if len(places) == 1}

    def settle(self) -> None:
        """Choose a width for element types that are not known.

        Of several known types the widest is taken if all of them make the same slots overlap.
        """
        unknown: dict[str, tuple[int, ...]] = {}
        for declared in self.found.values():
            if declared.size is None and not isinstance(declared.type.dtype, DType):
                name, widths = _candidates(declared.type.dtype)
                unknown[name] = tuple(sorted(set(unknown.get(name, ())) | set(widths)))
        for name, widths in unknown.items():
            self.widths |= {n: w[-1] for n, w in unknown.items() if n not in self.widths}
            shapes = []
            for width in widths:
                self.widths[name] = width
                shapes.append(self._overlaps())
            same = all(s == shapes[0] for s in shapes)
            chosen = widths[-1] if same or len(widths) < 3 else _USUAL
            self.widths[name] = chosen
            words = f"{name or 'an element type'} is taken as {chosen} byte{'s' if chosen > 1 else ''} wide"
            if not same:
                words += "; with another width other tiles would overlap"
            self.assumptions.append(words)

    def _overlaps(self) -> frozenset[tuple[str, int, str, int]]:
        places: dict[str, list[tuple[int, int, str, int]]] = {}
        for declared in self.found.values():
            if declared.addresses is None:
                continue
            size = self.size(declared)
            for slot in range(declared.slots):
                start = slot_address(declared.addresses, slot, size)
                places.setdefault(_SPACES[declared.type.space][0], []).append(
                    (start, start + size, declared.name, slot)
                )
        found: set[tuple[str, int, str, int]] = set()
        for spots in places.values():
            spots.sort()
            for i, (_, end, name, slot) in enumerate(spots):
                for start, _, other, there in spots[i + 1 :]:
                    if start >= end:
                        break
                    found.add((name, slot, other, there))
        return frozenset(found)

    def size(self, declared: Declared) -> int:
        """Bytes of one slot."""
        if declared.size is not None:
            return declared.size
        dtype = declared.type.dtype
        width = width_of(dtype) if isinstance(dtype, DType) else self.widths.get(_candidates(dtype)[0], 1)
        return _elements(declared.type) * width

    def emit(self, used: Iterable[str]) -> tuple[ir.Buffer, ...]:
        """The declarations of the buffers in `used`, in the order in which they were declared."""
        wanted = set(used)
        crossed = {
            name for pair in self._overlaps() for name in (pair[0], pair[2]) if (pair[0], pair[1]) != (pair[2], pair[3])
        }
        return tuple(self._emit(d, d.name in crossed) for d in self.found.values() if d.name in wanted)

    def _emit(self, declared: Declared, crossed: bool) -> ir.Buffer:
        span = declared.span
        size = self.size(declared)
        addresses = declared.addresses
        stride: int | None = None
        rows: int | None = None
        if crossed and addresses is not None and not declared.whole and declared.footprints:
            pitches = {f.pitch for f in declared.footprints}
            width, count = max(f.width for f in declared.footprints), max(f.rows for f in declared.footprints)
            if len(pitches) == 1 and width < min(pitches) and count > 1:
                addresses = tuple(slot_address(addresses, s, size) for s in range(declared.slots))
                size, stride, rows = width, min(pitches), count
        mutex = declared.mutex
        return ir.Buffer(
            declared.name,
            _SPACES[declared.type.space][0],
            None if declared.depth is None else ir.Int(declared.depth, span=span),
            None if addresses is None else tuple(ir.Int(a, span=span) for a in addresses),
            None if addresses is None else ir.Int(size, span=span),
            None if stride is None else ir.Int(stride, span=span),
            None if rows is None else ir.Int(rows, span=span),
            None if mutex is None else tuple(tuple(ir.Int(i, span=span) for i in ids) for ids in mutex),
            span=span,
        )


def slot_address(addresses: tuple[int, ...], slot: int, size: int) -> int:
    """Where a slot starts."""
    return addresses[slot] if len(addresses) > 1 else addresses[0] + slot * size


def width_of(dtype: DType) -> int:
    """Bytes of one element."""
    return _WIDTHS.get(dtype.name, 4)


def known_space(name: str) -> bool:
    return name in _SPACES


def _candidates(dtype: Value) -> tuple[str, tuple[int, ...]]:
    """The name of an element type that is not known, and the widths it may have."""
    if isinstance(dtype, OneOf) and all(isinstance(v, DType) for v in dtype.values):
        return dtype.name, tuple(sorted({width_of(v) for v in dtype.values}))
    return cast(str, getattr(dtype, "name", "")), (1, 2, 4)


def _elements(type_: TileType) -> int:
    total = 1
    for dimension in type_.shape:
        total *= dimension if isinstance(dimension, int) else 1
    return total


def integers(value: Value, what: str, node: ast.AST, least: int = 0) -> tuple[int, ...]:
    """A tuple of known integers, each at least `least`.

    Raises:
        Unreadable: it is something else.
    """
    items = value if isinstance(value, tuple) else (value,)
    return tuple(integer(item, what, node, least) for item in items)


def integer(value: Value, what: str, node: ast.AST, least: int = 0) -> int:
    """A known integer, at least `least`.

    Raises:
        Unreadable: it is something else.
    """
    if isinstance(value, (OneOf, Unknown)):
        raise Unreadable(f"{what} depends on {arithmetic.describe(value)}", node)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int):
        raise Unreadable(f"{what} must be a known integer, not {arithmetic.describe(value)}", node)
    if not least <= value < MOST:
        raise Unreadable(f"{what} must lie between {least} and {MOST - 1}", node)
    return int(value)


def fresh_name(hint: str, taken: set[str]) -> str:
    """`hint`, or `hint` with a number when it is taken; takes the name."""
    base = "".join(c if c.isalnum() or c == "_" else "_" for c in hint) or "x"
    if base[0].isdigit() or base in RESERVED:
        base = f"{base}_" if base in RESERVED else f"x{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


RESERVED = frozenset(
    {
        "if",
        "elif",
        "else",
        "for",
        "in",
        "and",
        "or",
        "not",
        "pass",
        "break",
        "continue",
        "assert",
        "block",
        "sub",
        "min",
        "max",
    }
)
"""Words that cannot name anything in the IR."""
