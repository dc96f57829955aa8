"""On which pipe does an operation of the kernel language run, and what tells two such operations apart?"""

from __future__ import annotations

import re

from fencepost import ir
from fencepost.frontends.pypto_ir.program import Constant

PUSH: dict[str, ir.Core] = {"tpush_to_aiv": "vector", "tpush_to_aic": "cube"}
POP: dict[str, ir.Core] = {"tpop_from_aiv": "vector", "tpop_from_aic": "cube"}
FREE: dict[str, ir.Core] = {"tfree_to_aiv": "vector", "tfree_to_aic": "cube"}
MESSAGES = {**PUSH, **POP, **FREE}
"""Message operations and the core kind at the other end."""

SYNCHRONISATION = ("sync_src", "sync_dst", "sync_set", "sync_wait", "bar_v", "bar_m", "bar_all", "syncall")

SETUP = frozenset(
    {
        "aic_initialize_pipe",
        "aiv_initialize_pipe",
        "reserve_buffer",
        "import_peer_buffer",
        "func_attr",
        "set_ffts",
        "static_print",
        "static_assert",
    }
)
"""Calls that issue nothing on any pipe."""

SCALAR_RESULTS = frozenset(
    {
        "get_block_idx",
        "get_block_num",
        "get_subblock_idx",
        "get_subblock_num",
        "read",
        "getval",
        "get_value",
        "dim",
        "size",
        "reserve_buffer",
        "import_peer_buffer",
        "available_cluster_count",
        "available_aiv_count",
        "min",
        "max",
        "cast",
        "const",
    }
)
"""Calls that give a scalar when the text does not say so; `cast`, `min` and `max` only of scalars."""

FFTS_MODES: dict[int, ir.Mode] = {0: "INTER_BLOCK", 1: "INTER_SUBBLOCK", 2: "INTRA_BLOCK"}

_MATMULS = ("matmul", "gemv", "batch_matmul")
_LOADS = ("load", "gather_row", "mgather", "prefetch")
_STORES = ("store", "assemble", "mscatter", "atomic_store")
_NO_PIPE = ("create", "alloc", "reshape", "subview", "view", "set_validshape", "slice_view")
_SCALARS = ("read", "write", "getval", "setval", "get_value", "set_value")

_CONTENT_FREE = frozenset(
    {"attrs", "span", "target_memory", "blayout", "slayout", "layout", "split", "id", "lane_stride"}
)


def pipe_of(op: str, core: ir.Core, source: str | None, result: str | None) -> ir.Pipe:
    """The pipe of the data operation `op`; `source` and `result` are memory spaces (`Mat`, `Vec`, ...) where known."""
    if op in _SCALARS or op in _NO_PIPE or op == "copy":
        return "S"
    if op.startswith(_MATMULS):
        return "M"
    if op.startswith(_LOADS):
        return "MTE2"
    if op.startswith(_STORES):
        return "FIX" if source == "Acc" or (source is None and core == "cube") else "MTE3"
    if op in ("move", "extract", "insert"):
        if source == "Acc" or result == "Scaling":
            return "FIX"
        if result in ("Left", "Right", "Bias"):
            return "MTE1"
        if source == "Vec" and result == "Mat":
            return "MTE3"
        return "MTE1" if core == "cube" else "V"
    return "V" if core == "vector" else "M"


def named(op: str, constants: list[tuple[str, Constant]]) -> str:
    """The name of a data operation: `op` and the constants that change what it computes.

    `constants` are keyword (or "" for positional) and value.  Where a tile lies and how it is laid out does not count.
    """
    words = [op]
    for keyword, value in constants:
        if keyword in _CONTENT_FREE or value is None:
            continue
        words.append(_word(value))
    return "_".join(w for w in words if w)


def _word(value: Constant) -> str:
    if isinstance(value, tuple):
        return "x".join(_word(v) for v in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).replace("-", "m").replace(".", "p")
    return re.sub(r"\W", "_", text)
