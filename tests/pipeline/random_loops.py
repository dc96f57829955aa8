"""Random annotated loops for differential tests."""

from __future__ import annotations

from random import Random

from fencepost import ir
from fencepost.pipeline.model import Access, Annotations, At, Buffer, Index, Loop, Somewhere, Statement, Whole
from fencepost.pipeline.sequence import ALWAYS, All, Compared, Guard, Not, Opaque, Sequence
from fencepost.pipeline.setting import ITERATION


def random_loop(seed: int, opaque: bool = False) -> Loop:
    """A loop of 2 to 6 statements; most are accepted by the compiler.

    `opaque`: with conditions and slots that are uninterpreted functions.
    """
    r = Random(seed)
    buffers = _buffers(r)
    statements: list[Statement] = []
    binds: list[str] = []
    for n in range(r.randint(2, 6)):
        if r.random() < 0.15 and statements:
            statements.append(_bind(r, n, buffers, binds))
            binds.append(f"b{n}")
        else:
            statements.append(_statement(r, n, buffers, binds, opaque))
    loop = Loop(tuple(statements), tuple(buffers), start=r.choice((0, 0, 0, 1, 3)))
    after = tuple(Access(b.name) for b in buffers if b.local and r.random() < 0.1)
    return Loop(loop.statements, loop.buffers, _annotations(r, loop), loop.start, after)


def _buffers(r: Random) -> list[Buffer]:
    chosen = [Buffer("A", False, None), Buffer("B", False, None), Buffer("C", False, None)]
    for n in range(r.randint(1, 3)):
        chosen.append(Buffer(f"S{n}", True, r.choice((1, 1, 1, 2, 3)), r.random() < 0.5))
    if r.random() < 0.3:
        chosen.append(Buffer("G", False, r.choice((1, 2))))
    return chosen


def _index(r: Random, buffer: Buffer, opaque: bool) -> Index:
    if opaque and r.random() < 0.1 and buffer.name not in "AB":
        return Somewhere(ir.Call("f", (ir.Name(ITERATION),)))
    if buffer.cells is None:
        return At(Sequence.linear(1, r.choice((0, 0, 0, 0, -1, -1, -2, 1))))
    if buffer.cells > 1 and r.random() < 0.5:
        step = Sequence.linear(1, r.randint(0, 2))
        if r.random() < 0.3:
            step = step.floor_divided(2)
        return At(step.modulo(buffer.cells) if r.random() < 0.6 else Sequence.constant(r.randrange(buffer.cells)))
    return Whole()


def _guard(r: Random, opaque: bool) -> Guard:
    if r.random() < 0.75:
        return ALWAYS
    if opaque and r.random() < 0.5:
        return Opaque(ir.Call(r.choice("gh"), (ir.Name(ITERATION),)))
    line = Sequence.linear(1, 0)
    choices: list[Guard] = [
        Compared(line.modulo(r.randint(2, 3)), "=="),
        Not(Compared(line, "==")),
        Compared(line, "=="),
        Compared(line, "==", from_end=True),
        Not(Compared(line, "==", from_end=True)),
        Compared(line.plus(Sequence.constant(-r.randint(1, 3))), ">="),
        All((Compared(line.modulo(2), "=="), Not(Compared(line, "==")))),
    ]
    return r.choice(choices)


def _pick(r: Random, buffers: list[Buffer], names: str, opaque: bool) -> Access:
    found = r.choice([b for b in buffers if b.name[0] in names])
    return Access(found.name, _index(r, found, opaque))


def _statement(r: Random, n: int, buffers: list[Buffer], binds: list[str], opaque: bool) -> Statement:
    guard = _guard(r, opaque)
    uses = (r.choice(binds),) if binds and r.random() < 0.5 else ()
    kind = r.random()
    if kind < 0.3:
        reads, writes = (_pick(r, buffers, "AB", opaque),), (_pick(r, buffers, "SSG", opaque),)
    elif kind < 0.6:
        reads, writes = (_pick(r, buffers, "SSGC", opaque),), (_pick(r, buffers, "CC", opaque),)
    elif kind < 0.75:
        reads = (_pick(r, buffers, "SG", opaque), _pick(r, buffers, "SAB", opaque))
        writes = (_pick(r, buffers, "SG", opaque),)
    elif kind < 0.9:
        target = _pick(r, buffers, "SG", opaque)
        reads, writes = (target, _pick(r, buffers, "SAB", opaque)), (target,)
        return Statement(f"add{n}", reads, writes, guard, uses=uses, cellwise=True, plain=guard == ALWAYS)
    else:
        reads, writes = (), (_pick(r, buffers, "SG", opaque),)
    constant = not reads and not uses and r.random() < 0.5
    return Statement(f"op{n}", reads, writes, guard, uses=uses, constant=constant, plain=guard == ALWAYS)


def _bind(r: Random, n: int, buffers: list[Buffer], binds: list[str]) -> Statement:
    reads = (_pick(r, buffers, "SG", False),) if r.random() < 0.5 else ()
    uses = (r.choice(binds),) if binds and r.random() < 0.3 else ()
    return Statement(f"bind{n}", reads, bind=f"b{n}", uses=uses)


def _annotations(r: Random, loop: Loop) -> Annotations:
    count = len([n for n in range(len(loop.statements)) if not loop.can_replay(n)])
    depth = r.randint(1, 4)
    style = r.random()
    stage = sorted(r.randint(0, depth) for _ in range(count))
    if style < 0.3:
        r.shuffle(stage)
    if r.random() < 0.02 and stage:
        stage[0] = -1
    order = list(range(count))
    if r.random() < 0.5:
        r.shuffle(order)
    waits = r.random()
    return Annotations(
        tuple(stage),
        tuple(order),
        r.randint(1, 4) if r.random() < 0.1 else None,
        (r.choice((0, 0, 1)),) if waits < 0.35 else None,
        tuple(r.randint(0, 1) if s == 0 else 0 for s in stage) if waits < 0.2 else None,
        tuple(r.choice((0, 1, -1)) for _ in stage) if waits < 0.1 else None,
    )
