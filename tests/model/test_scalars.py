"""What do agents compute on their own: loops, cursors, rings, functions, indices and their faults?"""

from __future__ import annotations

import pytest

from campaigns.texts import execute, kernel
from fencepost.model.executor import LimitReached, run
from fencepost.model.functions import FunctionTable


def slots(text: str, functions: FunctionTable | None = None, **values: int) -> list[int]:
    """The ids that `set_cross_core` operations of the cube get, in order."""
    result = execute(f"kernel k({', '.join(values)}):\n" + _indent(text), functions=functions, **values)
    return [op.effect.arguments[0] for op in result.issued["aic"]]


def _indent(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    cut = min(len(line) - len(line.lstrip()) for line in lines)
    declared = [x[cut:] for x in lines if x[cut:].split()[0] in ("buffer", "ring", "IDS")]
    body = [x[cut:] for x in lines if x[cut:].split()[0] not in ("buffer", "ring", "IDS")]
    return "".join(f"    {x}\n" for x in declared) + "    section cube:\n" + "".join(f"        {x}\n" for x in body)


def test_loops_are_those_of_python() -> None:
    text = """
    for t in range(lo, hi, 3):
        set_cross_core t @ M
    """
    for lo in (-2, 0, 4):
        for hi in (-3, 0, 1, 5, 11):
            assert slots(text, lo=lo, hi=hi) == list(range(lo, hi, 3))
    down = text.replace("3)", "-2)")
    for lo in (-2, 0, 7):
        assert slots(down, lo=lo, hi=0) == list(range(lo, 0, -2))


def test_bounds_are_taken_once() -> None:
    text = """
    m = n
    for t in range(m):
        m = 0
        set_cross_core t @ M
    """
    assert slots(text, n=4) == [0, 1, 2, 3]


def test_break_and_continue() -> None:
    text = """
    for t in range(n):
        if t == 1:
            continue
        elif t == 4:
            break
        else:
            pass
        for u in range(3):
            if u == 2:
                break
            set_cross_core 10 * t + u @ M
    set_cross_core 99 @ M
    """
    assert slots(text, n=9) == [0, 1, 20, 21, 30, 31, 99]


def test_cursors_start_before_the_first_slot() -> None:
    text = """
    buffer x[3] in Mat
    a = x.current()
    set_cross_core a @ M
    a = x.next()
    set_cross_core a @ M
    a = x.previous()
    set_cross_core a @ M
    a = x.next()
    set_cross_core a @ M
    a = x.current()
    set_cross_core a @ M
    a = x.next()
    a = x.next()
    set_cross_core a @ M
    """
    assert slots(text, n=0) == [2, 0, 2, 1, 1, 0]


def test_each_agent_has_its_own_cursor() -> None:
    result = execute(
        """
        kernel k(n):
            buffer x[2] in Mat
            section cube:
                a = x.next()
                a = x.next()
                set_cross_core a @ M
            section vector:
                a = x.next()
                set_cross_core a @ V
        """,
        n=0,
    )
    assert {agent: [op.effect.arguments[0] for op in ops] for agent, ops in result.issued.items()} == {
        "aic": [1],
        "aiv0": [0],
        "aiv1": [0],
    }


def test_rings_hold_records_and_start_at_zero() -> None:
    text = """
    ring r[2](a, b)
    set_cross_core r[1].b @ M
    r[0].a = 3
    r[1].a = r[0].a + 1
    r[0].b = r[1].a + r[1].b
    set_cross_core r[0].b @ M
    set_cross_core r[0].a @ M
    """
    assert slots(text, n=0) == [0, 4, 3]


def test_rings_and_tuples_do_not_wrap() -> None:
    text = """
    ring r[2](a)
    IDS = (7, 8)
    r[n].a = 5
    set_cross_core r[n].a @ M
    set_cross_core IDS[n] @ M
    """
    result = execute("kernel k(n):\n" + _indent(text), n=-1)
    assert [b.kind for b in result.bad_values] == ["index", "index", "index"]
    assert not execute("kernel k(n):\n" + _indent(text), n=1).bad_values


def test_expressions() -> None:
    text = """
    set_cross_core (n + 5) // 3 * 2 - n % 4 @ M
    set_cross_core max(1, n, 2) + min(n, 1) @ M
    set_cross_core 5 if 0 < n < 3 and not n == 2 else 6 if n == 2 or n > 7 else 7 @ M
    """
    for n in range(10):
        expected = [
            (n + 5) // 3 * 2 - n % 4,
            max(1, n, 2) + min(n, 1),
            5 if 0 < n < 3 and n != 2 else 6 if n == 2 or n > 7 else 7,
        ]
        assert slots(text, n=n) == expected


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        ("(n - 2) % 2", ["negative"]),
        ("(n - 2) // 2", ["negative"]),
        ("n // (n - 1)", ["zero"]),
        ("1 % (n - 2)", ["negative"]),
        ("3 if n == 1 or (n - 2) % 2 == 0 else 4", []),
        ("3 if n == 0 and (n - 2) % 2 == 0 else 4", []),
    ],
)
def test_bad_operands_count_only_where_they_are_evaluated(expression: str, kinds: list[str]) -> None:
    result = execute(f"kernel k(n):\n    section cube:\n        set_cross_core {expression} @ M\n", n=1)
    assert [b.kind for b in result.bad_values] == kinds


def test_assertions() -> None:
    text = "kernel k(n):\n    section cube:\n        for t in range(n):\n            assert t < 3\n"
    assert not execute(text, n=3).bad_values
    assert [b.kind for b in execute(text, n=4).bad_values] == ["assert"]


def test_unknown_functions_are_fixed_and_shared() -> None:
    text = """
    kernel k(n):
        section cube:
            set_cross_core need(1) @ M
            set_cross_core need(2) @ M
            set_cross_core need(1) @ M
        section vector:
            set_cross_core need(1) @ V
    """
    result = execute(text, functions=FunctionTable(values={("need", (1,)): 9}, default=4), n=0)
    ids = {agent: [op.effect.arguments[0] for op in ops] for agent, ops in result.issued.items()}
    assert ids == {"aic": [9, 4, 9], "aiv0": [9], "aiv1": [9]}
    assert result.functions == {("need", (1,)): 9, ("need", (2,)): 4}
    seeded = [execute(text, functions=FunctionTable(seed=5), n=0).functions for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_block_and_sub() -> None:
    text = """
    kernel k(n):
        section vector:
            set_cross_core 2 * block + sub @ V
    """
    result = run(kernel(text), {"n": 0, "block": 3})
    assert [result.issued[a][0].effect.arguments[0] for a in ("aiv0", "aiv1")] == [6, 7]
    assert run(kernel(text), {"n": 0}).issued["aiv1"][0].effect.arguments[0] == 1


def test_sections_are_joined_in_text_order() -> None:
    result = execute(
        """
        kernel k(n):
            set_cross_core 0 @ S
            section cube:
                set_cross_core 1 @ S
            section vector:
                set_cross_core 2 @ S
            set_cross_core 3 @ S
            section cube:
                set_cross_core 4 @ S
        """,
        n=0,
    )
    ids = {agent: [op.effect.arguments[0] for op in ops] for agent, ops in result.issued.items()}
    assert ids == {"aic": [0, 1, 3, 4], "aiv0": [0, 2, 3], "aiv1": [0, 2, 3]}


def test_endless_runs_reach_the_limit() -> None:
    text = "kernel k(n):\n    section cube:\n        for t in range(n):\n            pass\n"
    with pytest.raises(LimitReached, match="aic executes more than 1,000 instructions"):
        run(kernel(text), {"n": 10**9}, limit=1000)
