"""Which copies does the compiler make asynchronous in a loop with explicit stage and order?

For `T.Pipelined` with both lists, and a target with asynchronous copies, the planning pass marks every unconditional
copy from global to shared memory; copies of one stage whose last user is the same statement form a commit group.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.frontends.tilelang.values import Branch, Let, Loop, Node, Op, Pipe

_COPIES = frozenset({"copy", "async_copy", "im2col", "c2d_im2col"})


def implied(pipe: Pipe) -> dict[str, tuple[int, ...]]:
    """The async annotations that the compiler adds; empty if there are none, or if the lists do not fit the body."""
    stage, order = pipe.notes.get("stage"), pipe.notes.get("order")
    if not isinstance(stage, tuple) or not isinstance(order, tuple) or len(stage) != len(order):
        return {}
    written = {name for node in pipe.body for name in _touched(node, writes=True)}
    scheduled = [node for node in pipe.body if not _replayable(node, written)]
    entries = list(range(len(scheduled)))
    if len(stage) == len(pipe.body):
        entries = [n for n, node in enumerate(pipe.body) if not _replayable(node, written)]
    elif len(stage) != len(scheduled):
        return {}
    groups = [-1] * len(stage)
    numbers: dict[tuple[int, int], int] = {}
    for place in sorted(range(len(scheduled)), key=lambda p: order[entries[p]]):
        if is_copy(scheduled[place]):
            key = stage[entries[place]], _last_use(scheduled, place)
            groups[entries[place]] = numbers.setdefault(key, len(numbers))
    if not numbers:
        return {}
    return {
        "async_stages": tuple(sorted({s for s, g in zip(stage, groups, strict=True) if g >= 0})),
        "async_producers": tuple(int(g >= 0) for g in groups),
        "async_producer_groups": tuple(groups),
    }


def _replayable(node: Node, written: set[str]) -> bool:
    return isinstance(node, Let) and not any(r.tensor.name in written for r in node.value.loads)


def is_copy(node: Node) -> bool:
    """Whether a statement is an unconditional copy from global to shared memory."""
    if not isinstance(node, Op) or node.name not in _COPIES or node.conditional:
        return False
    return all(r.tensor.memory == "global" for r in node.reads) and all(
        w.tensor.memory == "shared" for w in node.writes
    )


def is_partly_copy(node: Node) -> bool:
    """Whether an operation brings global memory into shared, but computes with it, or does not do only that, or always.

    The planning pass takes all such elements for copies.
    """
    if not isinstance(node, Op) or (node.name not in _COPIES and not node.computes):
        return False
    brings = any(r.tensor.memory == "global" for r in node.reads) and any(
        w.tensor.memory == "shared" for w in node.writes
    )
    return brings and not is_copy(node)


def _last_use(nodes: list[Node], place: int) -> int:
    written = set(_touched(nodes[place], writes=True))
    users = [n for n in range(place + 1, len(nodes)) if written & set(_touched(nodes[n], writes=False))]
    return max(users, default=-1)


def _touched(node: Node, writes: bool) -> Iterable[str]:
    """Names of the tensors that a statement writes, or reads; the pass does not see what subscripts read."""
    stack = [node]
    while stack:
        current = stack.pop()
        match current:
            case Op():
                yield from (r.tensor.name for r in (current.writes if writes else (*current.reads, *current.others)))
                if current.tile and not writes:
                    yield from (r.tensor.name for r in current.writes)
            case Let() if not writes:
                yield from (r.tensor.name for r in current.value.loads)
            case Branch():
                stack += [n for _, body in current.arms for n in body] + list(current.orelse)
                if not writes:
                    yield from (r.tensor.name for c, _ in current.arms if c is not None for r in c.loads)
            case Loop() | Pipe():
                stack += current.body
                if not writes:
                    yield from (r.tensor.name for r in current.loads)
