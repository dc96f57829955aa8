"""Which pipe runs an operation of the language, and which operands does it write and read?

Roles: W written, R read, RW both, S scratch (written, its old value does not matter), - no memory.  Positional operands
follow the list; further ones count as read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fencepost.ir import Pipe

Role: TypeAlias = Literal["W", "R", "RW", "S", "-"]


@dataclass(frozen=True, slots=True)
class Operation:
    """`pipe` is None where the memory spaces of the operands decide."""

    pipe: Pipe | None
    roles: tuple[Role, ...]


def _vector(*roles: Role) -> Operation:
    return Operation("V", roles)


# Named by the number of tiles that they read; `_SCALAR` takes a tile and a number, `_REDUCE` a tile and scratch.
_ONE = """
    abs exp log neg recip relu rsqrt sqrt not_ cast fillpad fillpad_expand transpose ub_copy row_expand col_expand
    gathermask mrgsort reshape
"""
_TWO = """
    add sub mul div rem and_ or_ shl shr maximum minimum eq ne lt le gt ge add_relu sub_relu add_relu_cast sub_relu_cast
    mul_cast partadd partmax partmin partmul prelu lrelu gatherb histogram row_expand_binop col_expand_binop
    expand_add expand_sub expand_mul expand_div expand_max expand_min expand_expdif
    row_expand_add row_expand_sub row_expand_mul row_expand_div row_expand_max row_expand_min row_expand_expdif
    col_expand_add col_expand_sub col_expand_mul col_expand_div col_expand_max col_expand_min col_expand_expdif
"""
_SCALAR = "adds subs muls divs rems ands ors shls shrs maxs mins cmps"
_REDUCE = """
    sum argmax argmin prod row_sum row_argmax row_argmin row_prod row_max row_min row_reduce
    col_sum col_argmax col_argmin col_prod col_max col_min col_reduce
"""

OPERATIONS: Mapping[str, Operation] = {
    # data movement
    "load": Operation("MTE2", ("W", "R")),
    "load_tile": Operation("MTE2", ("W", "R")),
    "store": Operation(None, ("W", "R")),
    "store_tile": Operation(None, ("W", "R")),
    "store_fp": Operation(None, ("W", "R", "R")),
    "move": Operation(None, ("W", "R")),
    "move_fp": Operation("FIX", ("W", "R", "R")),
    "insert": Operation("MTE3", ("W", "R")),
    # matrix unit
    "matmul": Operation("M", ("W", "R", "R")),
    "matmul_acc": Operation("M", ("W", "R", "R", "R")),
    "matmul_bias": Operation("M", ("W", "R", "R", "R")),
    "matmul_mx": Operation("M", ("W", "R", "R", "R", "R")),
    "matmul_mx_acc": Operation("M", ("W", "R", "R", "R", "R", "R")),
    "gemv": Operation("M", ("W", "R", "R")),
    "gemv_acc": Operation("M", ("W", "R", "R", "R")),
    "gemv_bias": Operation("M", ("W", "R", "R", "R")),
    # vector unit
    **{name: _vector("W", "R") for name in _ONE.split()},
    **{name: _vector("W", "R", "R") for name in _TWO.split()},
    **{name: _vector("W", "R", "-") for name in _SCALAR.split()},
    **{name: _vector("W", "R", "S") for name in _REDUCE.split()},
    "xor": _vector("W", "R", "R", "S"),
    "xors": _vector("W", "R", "-", "S"),
    "addc": _vector("W", "R", "R", "R"),
    "subc": _vector("W", "R", "R", "R"),
    "addsc": _vector("W", "R", "-", "R"),
    "subsc": _vector("W", "R", "-", "R"),
    "select": _vector("W", "R", "R", "R", "S"),
    "expands": _vector("W", "-"),
    "full": _vector("W", "-"),
    "fill_index": _vector("W", "-"),
    "fillpad_inplace": _vector("RW", "R"),
    "mul_add_dst": _vector("RW", "R", "R"),
    "fused_mul_add": _vector("RW", "R", "R"),
    "fused_mul_add_relu": _vector("RW", "R", "R"),
    "axpy": _vector("RW", "R", "-"),
    "gather": _vector("W", "R", "R", "S"),
    "scatter": _vector("RW", "R", "R"),
    "sort32": _vector("W", "R", "R", "S"),
    "mrgsort2": _vector("R", "R", "W", "S"),
    "quant": _vector("W", "R", "R", "R"),
    "dequant": _vector("W", "R", "R", "R"),
    # debugging: the tile is printed
    "dump_data": _vector("R"),
}

NO_EFFECT = frozenset(
    {
        "printf",
        "pto_assert",
        "trap",
        "static_assert",
        "set_validshape",
        "set_stride",
        "set_mask_count",
        "set_mask_norm",
        "set_vec_mask",
        "reset_mask",
        "system.set_mm_layout_transform",
        "system.dcci",
    }
)
"""Calls that touch no memory of a tile and order nothing."""

BARRIERS: Mapping[str, Pipe | Literal["ALL"]] = {
    "system.bar_m": "M",
    "system.bar_mte1": "MTE1",
    "system.bar_mte2": "MTE2",
    "system.bar_mte3": "MTE3",
    "system.bar_fix": "FIX",
    "system.bar_v": "V",
    "system.bar_all": "ALL",
}

MATRIX = frozenset(
    {"matmul", "matmul_acc", "matmul_bias", "matmul_mx", "matmul_mx_acc", "gemv", "gemv_acc", "gemv_bias"}
)


def store_pipe(source: str | None) -> Pipe:
    """The pipe of a store to global memory from memory space `source`."""
    return "FIX" if source == "Acc" else "MTE3"


def move_pipe(source: str, target: str) -> Pipe:
    """The pipe of a move between two memory spaces."""
    if source == "Acc":
        return "FIX"
    if source == "Mat":
        if target in ("Left", "Right", "Bias", "ScaleLeft", "ScaleRight"):
            return "MTE1"
        return "V" if target == "Vec" else "FIX"
    if source == "Vec" and target == "Mat":
        return "MTE3"
    return "V"
