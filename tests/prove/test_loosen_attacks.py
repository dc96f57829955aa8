"""Kernels that loosening once proved though a run fails: they must never be proved again."""

from __future__ import annotations

import time

import pytest

from fencepost.findings import Row
from fencepost.frontends.kir import read
from fencepost.model.program import compile_kernel
from fencepost.prove.explore import explore_apart
from fencepost.prover import prepared

KERNELS = {
    "an outer loop that counts down": """\
kernel k(n, m):
    assume n >= 0
    assume m >= 0
    section cube:
        for q in range(n - 1, -1, -1):
            for k in range(m):
                set_cross_core 0 @ FIX
                wait_cross_core 1 @ FIX
    section vector:
        for q in range(n - 1, -1, -1):
            for k in range(m):
                wait_cross_core 0 @ V
                set_cross_core 2 @ V
""",
    "a tail under conditions that the nest works out": """\
kernel k(n, s):
    assume n >= 0
    assume s >= 0
    section cube:
        for b in range(n):
            x = f(b)
            for h in range(x):
                rounds = s
                if b == n - 1:
                    if h == x - 1:
                        rounds = s + 2
                for k in range(rounds):
                    if k < s:
                        set_cross_core 0 @ FIX
                        wait_cross_core 2 @ FIX
                    set_cross_core 1 @ FIX
                    wait_cross_core 3 @ FIX
    section vector:
        pass
""",
    "a nest whose last row alone is empty": """\
kernel k(n, s):
    assume n >= 1
    assume s >= 0
    section cube:
        for b in range(n):
            for h in range(n - 1 - b):
                rounds = s
                if b == n - 1:
                    if h == n - 2 - b:
                        rounds = s + 2
                for k in range(rounds):
                    if k < s:
                        set_cross_core 0 @ FIX
                        wait_cross_core 2 @ FIX
                    set_cross_core 1 @ FIX
                    wait_cross_core 3 @ FIX
    section vector:
        pass
""",
    "operations of an outer loop beside a tail": """\
kernel tails_drop(n, m, s):
    assume n >= 1
    assume m >= 0
    assume s >= 0
    section cube:
        for b in range(n):
            set_cross_core 5 @ FIX
            for h in range(m):
                rounds = s
                if b == n - 1:
                    if h == m - 1:
                        rounds = s + 2
                for k in range(rounds):
                    if k < s:
                        set_cross_core 0 @ FIX
                        wait_cross_core 2 @ FIX
                    set_cross_core 1 @ FIX
                    wait_cross_core 3 @ FIX
    section vector:
        if m > 0:
            for b in range(n):
                wait_cross_core 5 @ V
                for h in range(m):
                    rounds = s
                    if b == n - 1:
                        if h == m - 1:
                            rounds = s + 2
                    for k in range(rounds):
                        if k < s:
                            wait_cross_core 0 @ V
                            set_cross_core 2 @ V
                        wait_cross_core 1 @ V
                        set_cross_core 3 @ V
""",
    "lost records inside a function": """\
kernel k(n):
    assume n >= 0
    ring ctx[2](v)
    section vector:
        task = 0
        for t in range(n):
            if t >= 1:
                if f(ctx[task % 2].v) < 3:
                    sync_src 0: MTE2 -> V
            ctx[task % 2].v = t
            task = task + 1
            if t >= 1:
                if f(ctx[task % 2].v) < 3:
                    sync_dst 0: MTE2 -> V
""",
    "trip numbers below a position": """\
kernel k(s):
    assume s >= -5
    assume s <= -3
    section cube:
        for w in range(s, 10):
            x = (9 - w) // 2
            for j in range(2):
                set_cross_core min(x, 1) @ FIX
                wait_cross_core 2 @ FIX
    section vector:
        for w in range(s, 10):
            for j in range(2):
                wait_cross_core 1 @ V
                set_cross_core 2 @ V
""",
    "a scalar of an earlier section": """\
kernel two_sections(n, m):
    assume n >= 0
    assume m >= 0
    private x = 0
    section cube:
        if n > 1:
            x = 1
    section cube:
        for q in range(n):
            for k in range(m):
                if k <= q:
                    set_cross_core 2 @ FIX
                    wait_cross_core 3 @ FIX
        if x == 0:
            set_cross_core 4 @ FIX
    section vector:
        for q in range(n):
            for k in range(m):
                if k <= q:
                    wait_cross_core 2 @ V
                    set_cross_core 3 @ V
        wait_cross_core 4 @ V
""",
    "a scalar changed between sections": """\
kernel outside_order(n, m):
    assume n >= 0
    assume m >= 0
    private x = f(0)
    section cube:
        for t in range(n):
            for j in range(m):
                for i in range(x):
                    if i <= j:
                        set_cross_core 2 @ FIX
                        wait_cross_core 3 @ FIX
    if n > 1:
        x = f(2)
    section vector:
        for t in range(n):
            for j in range(m):
                for i in range(x):
                    if i <= j:
                        wait_cross_core 2 @ V
                        set_cross_core 3 @ V
""",
    "a truth from outside": """\
kernel lazy_outside(n, m):
    assume n >= 0
    assume m >= 0
    private b = 0
    if n > 1:
        b = 1
    section cube:
        for q in range(n):
            if b:
                set_cross_core 0 @ FIX
                wait_cross_core 1 @ FIX
            b = f(q) < 3
            for k in range(m):
                if k <= q:
                    set_cross_core 2 @ FIX
                    wait_cross_core 3 @ FIX
    section vector:
        b = 0
        for q in range(n):
            if b:
                wait_cross_core 0 @ V
                set_cross_core 1 @ V
            b = f(q) < 3
            for k in range(m):
                if k <= q:
                    wait_cross_core 2 @ V
                    set_cross_core 3 @ V
""",
    "records from outside": """\
kernel ring_outside(n, m):
    assume n >= 0
    assume m >= 0
    ring ctx[2](v)
    if n > 1:
        ctx[0].v = 1
        ctx[1].v = 1
    section cube:
        task = 0
        for q in range(n):
            for k in range(m):
                if k <= q:
                    if ctx[(task + 1) % 2].v == 0:
                        set_cross_core 0 @ FIX
                        wait_cross_core 1 @ FIX
                    ctx[task % 2].v = 0
                    task = task + 1
    section vector:
        for q in range(n):
            for k in range(m):
                if k <= q:
                    wait_cross_core 0 @ V
                    set_cross_core 1 @ V
""",
    "a counter read by a later section": """\
kernel k(n, m):
    assume n >= 0
    assume m >= 0
    private p = 0
    section cube:
        for j in range(m):
            for i in range(n):
                if i <= j:
                    set_cross_core 2 @ FIX
                    wait_cross_core 3 @ FIX
                p = p + 1
    section vector:
        for j in range(m):
            for i in range(n):
                if i <= j:
                    wait_cross_core 2 @ V
                    set_cross_core 3 @ V
    section cube:
        if p == 0:
            set_cross_core 0 @ FIX
    section vector:
        wait_cross_core 0 @ V
""",
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_fails_is_not_proved(name: str) -> None:
    result = read(KERNELS[name], "k.kir")
    assert not result.errors, result.errors
    kernel = result.kernels[0]
    for form in (kernel, prepared(kernel)):
        explored = explore_apart(compile_kernel(form), time.monotonic() + 20, states=400)
        assert not (explored.proves(Row.PAIRING) and explored.proves(Row.COUNTS))
