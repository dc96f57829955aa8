"""Random kernels that hand accumulators over with phases: right ones, and ones with a mistake or two."""

from __future__ import annotations

from random import Random
from textwrap import indent

FIRST = ("k == 0", "k == 0", "k == 0", "k <= 0", "k == 1")
LAST = ("k == n - 1", "k == n - 1", "k + 1 >= n", "k > n - 2", "k == n - 2", "k == n")
BOTH = ("n == 1", "n <= 1", "k == n - 1", "k + 1 == n")


def random_kernel(seed: int) -> str:
    """The text of one kernel with the parameters n (blocks of a sum) and m (sums)."""
    r = Random(seed)
    depth = r.choice((1, 1, 2, 3))
    buffers = f"buffer c[{depth}] in Acc mutex ({', '.join(map(str, range(depth)))})"
    slot = "0" if depth == 1 else r.choice((f"t % {depth}", f"t % {depth}", "current", str(r.randrange(depth))))
    vec = "buffer v in Vec\n"
    start = "" if slot != "current" else "s = c.next()\n"
    c = "c[s]" if slot == "current" else f"c[{slot}]"
    work = start + _sum(r, c) + _readers(r, c)
    if r.random() < 0.2:
        work += _single(r, c)
    if r.random() < 0.15:
        work = f"if {r.choice(('t % 2 == 0', 'n > 2', 't < n', 't == 0'))}:\n{indent(work, '    ')}"
    head = "" if r.random() < 0.85 or slot == "current" else _single(r, "c[0]")
    loop = f"for t in range(m):\n{indent(work, '    ')}"
    assume = f"assume n >= {r.choice((0, 0, 1, 1, 2))}\nassume m >= 0\n"
    body = f"{assume}{buffers}\n{vec}\nsection cube:\n{indent(head + loop, '    ')}"
    return f"kernel random_{seed}(n, m):\n{indent(body, '    ')}"


def random_nest(seed: int) -> str:
    """A kernel with harder shapes: two accumulators by parity, loops without trips, the last reader in a branch."""
    r = Random(seed)
    pair = ("c[0]", "d[0]") if r.random() < 0.7 else ("c[0]", "c[0]")
    sums = [(_sum(r, c) if r.random() < 0.2 else _right_sum(c)) + _branching_readers(r, c) for c in pair]
    style = r.random()
    if style < 0.5:
        parity = r.choice(("t % 2 == 0", "t % 2 == 1", "t % 3 == 0", "t == 0"))
        work = f"if {parity}:\n{indent(sums[0], '    ')}else:\n{indent(sums[1], '    ')}"
    elif style < 0.75:
        bounds = r.choice(("n - 2", "t", "m - t", "n - t", "2", "0", "1, n"))
        work = f"for u in range({bounds}):\n{indent(sums[0], '    ')}" + (sums[1] if r.random() < 0.4 else "")
    else:
        work = sums[0] + sums[1]
    if r.random() < 0.15:
        work = f"if {r.choice(('n > 0', 'm > 1', 't < m - 1'))}:\n{indent(work, '    ')}"
    buffers = "buffer c[1] in Acc mutex (0)\nbuffer d[1] in Acc mutex (1)\nbuffer v in Vec\n"
    assume = f"assume n >= {r.choice((0, 0, 1, 2))}\nassume m >= 0\n"
    body = f"{assume}{buffers}\nsection cube:\n    for t in range(m):\n{indent(work, '        ')}"
    return f"kernel nest_{seed}(n, m):\n{indent(body, '    ')}"


def _right_sum(c: str) -> str:
    """A sum of n blocks without a mistake; of none, one block."""
    first, more = f"matmul {c} <- a, b @ M phase =", f"matmul_acc {c} <- {c}, a, b @ M phase ="
    return (
        f"if n <= 1:\n    {first} Final\nfor k in range(n):\n    if n == 1:\n        pass\n"
        f"    elif k == 0:\n        {first} Partial\n    elif k == n - 1:\n        {more} Final\n"
        f"    else:\n        {more} Partial\n"
    )


def _branching_readers(r: Random, c: str) -> str:
    """Readers of which the last one stands in a branch, or in both."""
    plain = _readers(r, c)
    if r.random() < 0.4:
        return plain
    final, other = (f"{r.choice(('store o', 'move v'))} <- {c} @ FIX{_phase(r, 'Final')}\n" for _ in range(2))
    condition = r.choice(("t % 2 == 0", "t == m - 1", "n > 2", "t > 0 and n == 1"))
    before = f"move v <- {c} @ FIX{_phase(r, 'Partial')}\n" if r.random() < 0.5 else ""
    orelse = f"else:\n{indent(other, '    ')}" if r.random() < 0.85 else ""
    return f"{before}if {condition}:\n{indent(final, '    ')}{orelse}"


def _phase(r: Random, wanted: str) -> str:
    """A phase clause, mostly the wanted one."""
    chosen = wanted if r.random() < 0.93 else r.choice(("Partial", "Final", ""))
    return f" phase = {chosen}" if chosen else ""


def _sum(r: Random, c: str) -> str:
    """A sum of n blocks, or a fixed one."""
    first, more = f"matmul {c} <- a, b @ M", f"matmul_acc {c} <- {c}, a, b @ M"
    style = r.random()
    if style < 0.2:
        return f"{first}{_phase(r, 'Final')}\n"
    if style < 0.3:
        return f"{first}{_phase(r, 'Partial')}\n{more}{_phase(r, 'Final')}\n"
    if style < 0.4:  # the last block behind the loop
        return (
            f"{first}{_phase(r, 'Partial')}\nfor k in range({r.choice(('n', '1, n', 'n - 1'))}):\n"
            f"    {more}{_phase(r, 'Partial')}\n{more}{_phase(r, 'Final')}\n"
        )
    begin, end = r.choice(FIRST), r.choice(LAST)
    alone = (
        f"if {r.choice(BOTH)}:\n    {first}{_phase(r, 'Final')}\nelse:\n    {first}{_phase(r, 'Partial')}\n"
        if r.random() < 0.6
        else f"{first}{_phase(r, 'Partial')}\n"
    )
    inside = _readers(r, c) if r.random() < 0.1 else ""
    arms = [
        f"if {begin}:\n{indent(alone, '    ')}",
        f"elif {end}:\n    {more}{_phase(r, 'Final')}\n",
        f"else:\n    {more}{_phase(r, 'Partial')}\n",
    ]
    if r.random() < 0.1:
        arms = [f"if {end}:\n    {first}{_phase(r, 'Final')}\n", arms[2]]
    return f"for k in range(n):\n{indent(''.join(arms) + inside, '    ')}"


def _readers(r: Random, c: str) -> str:
    """One to three reads; the last one is Final."""
    count = r.choice((1, 1, 1, 2, 3))
    found = ""
    for number in range(count):
        phase = _phase(r, "Final" if number == count - 1 else "Partial")
        found += r.choice((f"store o <- {c} @ FIX{phase}\n", f"move v <- {c} @ FIX{phase}\n"))
    return found


def _single(r: Random, c: str) -> str:
    """A matmul and a store without phases, in order by the mutex, now and then with half a phase."""
    left, right = r.choice((("", ""), ("", ""), (" phase = Final", " phase = Final"), (" phase = Final", "")))
    return f"matmul {c} <- a, b @ M{left}\nstore o <- {c} @ FIX{right}\n"
