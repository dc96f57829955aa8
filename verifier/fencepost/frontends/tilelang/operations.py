"""What does an operation of the TileLang language read and write?

Operands are named by position and keyword.  An operand that is updated counts as read and written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["r", "w", "rw"]


@dataclass(frozen=True, slots=True)
class Operand:
    """`fresh` names a flag that decides between writing and updating: ("clear_accum", True) writes if it is true.

    `default` is the value of the flag where it is not given.
    """

    position: int
    keyword: str
    way: Way
    fresh: str | None = None
    flag_position: int | None = None
    default: bool = False


def _copy(source: str = "src", target: str = "dst") -> tuple[Operand, ...]:
    return Operand(0, source, "r"), Operand(1, target, "w")


_GEMM = (Operand(0, "A", "r"), Operand(1, "B", "r"), Operand(2, "C", "rw", "clear_accum", 6))
_REDUCE = (Operand(0, "buffer", "r"), Operand(1, "out", "rw", "clear", 3, default=True))
_REDUCE_ALWAYS = (Operand(0, "buffer", "r"), Operand(1, "out", "w"))
_ATOMIC = (Operand(0, "dst", "rw"), Operand(1, "value", "r"))

OPERATIONS: dict[str, tuple[Operand, ...]] = {
    "copy": _copy(),
    "async_copy": _copy(),
    "tma_copy": _copy(),
    "copy_cluster": _copy(),
    "transpose": _copy(),
    "im2col": _copy("img", "col"),
    "c2d_im2col": _copy("img", "col"),
    "fill": (Operand(0, "buffer", "w"),),
    "clear": (Operand(0, "buffer", "w"),),
    "gemm": _GEMM,
    "gemm_v1": _GEMM,
    "gemm_v2": _GEMM,
    "wgmma_gemm": _GEMM,
    "tcgen05_gemm": _GEMM,
    "gemm_sp": (
        Operand(0, "A_sparse", "r"),
        Operand(1, "E", "r"),
        Operand(2, "B", "r"),
        Operand(3, "C", "rw", "clear_accum", 8),
    ),
    "mma_gemm_blockscaled": (*_GEMM, Operand(3, "SFA", "r"), Operand(4, "SFB", "r")),
    "tcgen05_gemm_blockscaled": (*_GEMM, Operand(3, "SFA", "r"), Operand(4, "SFB", "r")),
    "reduce": (Operand(0, "buffer", "r"), Operand(1, "out", "rw", "clear", 4, default=True)),
    **{f"reduce_{kind}": _REDUCE for kind in ("max", "min", "sum", "absmax", "bitand", "bitor", "bitxor")},
    "reduce_abssum": _REDUCE_ALWAYS,
    "cumsum": (Operand(0, "src", "r"), Operand(1, "dst", "w")),
    "reducer_init": (Operand(0, "reducer", "w"),),
    "reducer_update": (Operand(0, "target", "rw"), Operand(1, "value", "r")),
    "finalize_reducer": (Operand(0, "reducer", "rw"), Operand(1, "dst", "w")),
    **{f"atomic_{kind}": _ATOMIC for kind in ("add", "max", "min", "addx2", "addx4", "or", "store")},
    "print": (Operand(0, "obj", "r"),),
    "device_assert": (Operand(0, "condition", "r"),),
    "device_print": (Operand(0, "obj", "r"),),
    "assume": (Operand(0, "cond", "r"),),
}

OPTIONAL = frozenset({("cumsum", "dst"), ("finalize_reducer", "dst")})
"""Operands that may be left out: (operation, operand)."""

VALUES = frozenset({"value", "obj", "condition", "cond"})
"""Operands that need not be tensors."""

BARRIERS = frozenset(
    {
        "sync_threads", "sync_warp", "sync_grid", "sync_global", "syncthreads", "barrier_wait", "barrier_arrive",
        "mbarrier_wait_parity", "mbarrier_arrive", "mbarrier_expect_tx", "mbarrier_arrive_expect_tx",
        "ptx_wait_group", "ptx_commit_group", "ptx_arrive_barrier", "wait_wgmma", "warpgroup_arrive",
        "warpgroup_commit_batch", "warpgroup_wait", "warpgroup_fence_operand", "fence_proxy_async",
        "tma_store_arrive", "tma_store_wait", "named_barrier_arrive", "named_barrier_sync", "tcgen05_mma_arrive",
        "tcgen05_before_thread_sync", "tcgen05_after_thread_sync", "cp_async_barrier_noinc", "cluster_sync",
        "ptx_arrive_cluster_barrier", "pdl_sync", "pdl_trigger",
    }
)  # fmt: skip
"""Operations that order others, which the dependence of the data does not show."""

SILENT = frozenset(
    {
        "annotate_layout", "annotate_safe_value", "annotate_l2_hit_ratio", "annotate_producer_reg_dealloc",
        "annotate_consumer_reg_alloc", "annotate_restrict_buffers", "annotate_min_blocks_per_sm", "use_swizzle",
        "set_max_nreg", "inc_max_nreg", "dec_max_nreg", "no_set_max_nreg", "disable_warp_group_reg_alloc",
        "import_source", "func_attr", "reads", "writes", "block_attr", "sblock_attr", "attr",
        "deallocate_tmem", "create_tma_descriptor", "annotate_ws_schedule", "cluster_rank", "reserve_smem",
    }
)  # fmt: skip
"""Calls that are no statements of the program."""

LAUNCHES = frozenset({"Kernel", "ClusterKernel", "launch_thread"})
"""What runs the body of a `with` once and gives block or thread numbers."""

BLOCKS = LAUNCHES | {"block", "sblock", "attr", "Assert", "ws_op"}
"""What runs the body of a `with` once."""

THREADS = frozenset({"ws", "WarpSpecialize"})
"""What runs the body of a `with` on some of the threads."""

NO_TILE = frozenset({"print", "device_assert", "device_print", "assume", "reducer_update"})
"""Operations that are not on tiles."""

MEMORIES = {
    "alloc_shared": "shared",
    "alloc_fragment": "fragment",
    "alloc_local": "fragment",
    "alloc_var": "fragment",
    "alloc_reducer": "fragment",
    "alloc_tmem": "fragment",
    "alloc_buffer": "shared",
    "decl_buffer": "shared",
    "alloc_global": "global",
    "empty": "global",
    "alloc_barrier": "barrier",
    "alloc_cluster_barrier": "barrier",
    "alloc_descriptor": "barrier",
    "alloc_wgmma_desc": "barrier",
    "alloc_tcgen05_smem_desc": "barrier",
    "alloc_tcgen05_instruction_desc": "barrier",
    "alloc_tcgen05_instr_desc": "barrier",
}
"""Allocations and the memory that they take."""

TENSOR_TYPES = frozenset(
    {
        "Tensor",
        "Buffer",
        "StridedTensor",
        "FragmentBuffer",
        "SharedBuffer",
        "LocalBuffer",
        "match_buffer",
        "ptr",
        "handle",
    }
)
"""Types of parameters that are tensors."""

SETTLED = frozenset(
    {
        "cast", "Cast", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "Int32",
        "infinity", "min_value", "max_value", "reinterpret", "sizeof", "float", "float16", "float32", "float64",
        "bfloat16", "abs", "ceil", "exp", "exp2", "exp10", "floor", "log", "log2", "log10", "pow", "round", "rsqrt",
        "sigmoid", "sqrt", "tanh", "trunc", "align_up", "cdiv", "min", "max", "ceildiv", "clamp", "shift_left",
        "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "truncdiv", "truncmod", "indexdiv",
        "indexmod", "floordiv", "floormod", "if_then_else", "Select", "const", "dynamic", "symbolic",
        "thread_binding", "get_thread_binding", "get_thread_bindings", "get_block_binding", "get_block_bindings",
    }
)  # fmt: skip
"""Calls whose value depends on their arguments alone, within one thread; others may give another one each time."""
