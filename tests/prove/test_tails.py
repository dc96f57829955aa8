"""Do drains behind nests, bounds for branches, row sums and dead assignments keep every operation in its order?"""

from __future__ import annotations

from random import Random

import pytest
from tests.passes.test_simpler import body, issued, kernel_of

from fencepost import ir
from fencepost.model.functions import FunctionTable
from fencepost.passes.bounds import Bounds
from fencepost.passes.flat import Flat
from fencepost.passes.slices import Slices
from fencepost.passes.unread import Unread
from fencepost.printer import print_kernel
from fencepost.prove.loosen import simpler
from fencepost.prove.tails import Tails

HEAD = """kernel k(n, m):
    buffer b[4] in Mat

    section cube:
"""

DRAIN = f"""{HEAD}        task = 0
        for w in range(n):
            size = max(need(w), 0)
            drain = 0
            if w == n - 1:
                drain = 2
            for k in range(size + drain):
                if k < size:
                    set_cross_core task % 4 @ MTE2
                if task > 1:
                    wait_cross_core (task + 2) % 4 @ MTE1
                task = task + 1
"""


def test_a_drain_comes_after_its_nest() -> None:
    assert (
        body(Tails().run(kernel_of(DRAIN)))
        == """\
        task = 0
        if 0 < n:
            for w in range(n):
                size = max(need(w), 0)
                drain = 0
                if w == n - 1:
                    drain = 2
                for k in range(size):
                    set_cross_core task % 4 @ MTE2
                    if task > 1:
                        wait_cross_core (task + 2) % 4 @ MTE1
                    task = task + 1
            for drain~0 in range(2):
                if task > 1:
                    wait_cross_core (task + 2) % 4 @ MTE1
                task = task + 1"""
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("w == n - 1", "w == n - 2"),
        ("w == n - 1", "w >= n - 2"),
        ("w == n - 1", "w != n - 1"),
        ("w == n - 1", "w == m"),
        ("                task = task + 1\n", "                task = task + 1\n            set_cross_core 1 @ MTE2\n"),
        ("range(n):\n", "range(0, n, 2):\n"),
        ("                task = task + 1\n", "                task = task + 1\n                n_ = drain\n"),
        (
            "                if task > 1:\n",
            "                if task > 5:\n                    break\n                if 1:\n",
        ),
    ],
)
def test_what_is_no_drain_of_the_last_trip_stays(old: str, new: str) -> None:
    text = DRAIN.replace(old, new, 1)
    assert text != DRAIN
    same(kernel_of(text), Tails().run(kernel_of(text)))


def same(kernel: ir.Kernel, changed: ir.Kernel) -> None:
    for n in range(-1, 4):
        for m in range(-1, 4):
            for seed in range(3):
                before = issued(kernel, [n, m], FunctionTable(seed=seed))
                after = issued(changed, [n, m], FunctionTable(seed=seed))
                assert after == before, (
                    f"n = {n}, m = {m}, seed {seed}\n{print_kernel(kernel)}\n{print_kernel(changed)}"
                )


def nest(r: Random) -> str:
    """A random nest whose last trips do more, or less, or something else."""
    pick = r.choice
    outer, inner = pick(("0, n", "1, n", "0, n", "0, n, 2")), pick(("0, m", "0, m", "0, m + 1"))
    deep = r.random() < 0.4
    size = pick(("need(w)", "max(need(w), 0)", "m", "w + 1", "m - 1", "q_" if deep else "m", "min(m, w + 1)"))
    last = pick(("w == n - 1", "w >= n - 1", "w > n - 2", "n - 1 <= w", "w == n - 2", "w + 1 == n", "w != 0"))
    other = pick(("q == m - 1", "q + 1 >= m", "q >= m", "need(q) > 1"))
    ask = pick(("k < size", "k < size", "k <= size", "size > k", "k < size - 1", "k == size", "k >= size"))
    rest = pick(("task > 1", "k <= size", "k < size + 1", "k != 0", "k - size < 1", "task % 2 == 0"))
    jump = pick(("", "", "", "continue", "break"))
    pad = "    " if deep else ""
    lines = ["task = 0", "size = 0", f"for w in range({outer}):"]
    if r.random() < 0.4:
        lines.append("    count = need(w) + task")
    if deep:
        lines += [f"    for q in range({inner}):", "        q_ = max(q, 0)"]
    lines.append(f"{pad}    size = {size}")
    conditions = [last, other] if deep and r.random() < 0.8 else [last]
    r.shuffle(conditions)
    steps = ["    " * k + f"if {c}:" for k, c in enumerate(conditions)]
    form = r.random()
    if form < 0.5:
        lines.append(f"{pad}    more = 0")
        stop, told = pick(("size + more", "more + size")), f"more = {pick((1, 2, 3))}"
    else:
        lines.append(f"{pad}    end = size")
        stop, told = "end", pick(("end = end + 2", "end = size + 1", "end = size + m", "end = 3", "end = end - 1"))
    lines += [f"{pad}    {step}" for step in (*steps, "    " * len(steps) + told)]
    if r.random() < 0.2:
        lines.append(f"{pad}    set_cross_core 7 @ MTE2")
    lines += [f"{pad}    for k in range({stop}):", f"{pad}        if {ask}:"]
    if jump and r.random() < 0.6:
        lines += [f"{pad}            if need(task) > 1:", f"{pad}                {jump}"]
    lines.append(f"{pad}            set_cross_core task % 4 @ MTE2")
    if jump and r.random() < 0.4:
        lines += [f"{pad}        if need(k) > 2:", f"{pad}            {jump}"]
    lines += [
        f"{pad}        if {rest}:",
        f"{pad}            wait_cross_core {pick(('task', 'max(k, 0)', 'k + 9'))} % 4 @ MTE1",
    ]
    lines.append(f"{pad}        task = task + 1")
    if r.random() < 0.3:
        lines.append(f"{pad}    set_cross_core max(size, 0) % 4 @ MTE3")
    if r.random() < 0.5:
        lines.append(f"set_cross_core {pick(('task', 'max(size, 0)'))} % 4 @ MTE3")
    return HEAD + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_nests_issue_the_same(first: int) -> None:
    for seed in range(first, first + 10):
        kernel = kernel_of(nest(Random(f"nest {seed}")))
        same(kernel, Tails().run(kernel))
        same(kernel, Unread().run(kernel))
        same(kernel, Slices().run(Tails().run(simpler(kernel))))


def guarded(r: Random) -> str:
    """A random nest with branches that bound it, and products of rows."""
    pick = r.choice
    guard = pick(("k <= q", "k < q", "q >= k", "k > q", "k >= q", "k < count", "k <= q + m", "k == q", "k <= task"))
    row = pick(("q", "rows"))
    place = pick((f"{row} * m + k", f"k + {row} * m", f"{row} * n + k", "rows * m"))
    start = pick(("0", "0", "0", "1", "q"))
    lines = ["task = 0", "rows = 0", "count = 2", "for q in range(n):"]
    lines += [f"    for k in range({start}, m):", f"        if {guard}:"]
    lines.append(f"            set_cross_core max({place}, 0) % 4 @ MTE2")
    lines.append("            task = task + 1")
    if r.random() < 0.2:
        lines.append("        set_cross_core 5 @ MTE3")
    if r.random() < 0.8:
        lines.append(f"    rows = rows + {pick((1, 1, 1, 2))}")
    lines.append("set_cross_core task % 4 @ MTE3")
    return HEAD + "".join(f"        {line}\n" for line in lines)


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_bounds_issue_the_same(first: int) -> None:
    for seed in range(first, first + 10):
        kernel = kernel_of(guarded(Random(f"guarded {seed}")))
        same(kernel, Bounds().run(kernel))
        same(kernel, Flat(rows=True).run(Bounds().run(kernel)))
        same(kernel, simpler(kernel, rows=True))


def test_a_branch_becomes_a_bound_and_a_product_a_sum() -> None:
    text = f"""{HEAD}        row = 0
        for q in range(n):
            for k in range(m):
                if k <= q:
                    set_cross_core max(row * m + k, 0) % 4 @ MTE2
            row = row + 1
"""
    assert (
        body(simpler(kernel_of(text), rows=True))
        == """\
        flat~0 = 0
        for q in range(n):
            for k in range(min(m, q + 1)):
                set_cross_core (flat~0 + k) % 4 @ MTE2
            flat~0 = flat~0 + m"""
    )
