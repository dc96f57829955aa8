"""What does a type annotation of the kernel language say?"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from fencepost.frontends.pypto_ir.program import Module

_MEMORY = ("Mem", "MemorySpace")
_SPACES = {"DDR": "GM", "GM": "GM", "ScalingFactor": "Scaling"}


@dataclass(frozen=True, slots=True)
class Type:
    """`integer`: a scalar of an integer or boolean type.  `memory`: the memory space of a tile, "GM" for a tensor."""

    kind: Literal["scalar", "tile", "tensor", "other"]
    integer: bool = False
    memory: str | None = None


def read_type(annotation: ast.expr, module: Module) -> Type:
    """Read an annotation; `Out`, `InOut` and `In` around a type say nothing here."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return read_type(ast.parse(annotation.value, mode="eval").body, module)
        except SyntaxError:
            return Type("other")
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    inside = annotation.slice if isinstance(annotation, ast.Subscript) else None
    word = module.last(base)
    if word in ("Out", "InOut", "In") and inside is not None:
        return read_type(inside, module)
    parts = inside.elts if isinstance(inside, ast.Tuple) else [] if inside is None else [inside]
    if word == "Scalar":
        dtype = module.last(parts[0]) if parts else ""
        return Type("scalar", integer=not dtype.startswith(("FP", "BF", "HF")))
    if word in ("Tensor", "DistributedTensor"):
        return Type("tensor", memory="GM")
    if word == "Tile":
        memory = None
        for part in parts:
            path = module.path(part)
            if path is not None and len(path) >= 2 and path[-2] in _MEMORY:
                memory = _SPACES.get(path[-1], path[-1])
        return Type("tile", memory=memory)
    return Type("other")
