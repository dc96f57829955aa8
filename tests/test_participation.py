"""May the two sub-cores issue different cross-core operations?"""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from fencepost.frontends.kir import read
from fencepost.participation import sub_cores_differ

SAME = {
    "data under a guard": """
        if sub == 0:
            exp p <- x @ V
        set_cross_core 0 @ V
    """,
    "parts": """
        exp p part sub of 2 <- x @ V
        set_cross_core 0 @ V
    """,
    "a value that no signal uses": """
        row = sub * 64
        k = n % 2
        set_cross_core k @ V
        if row > 0:
            exp p <- x @ V
    """,
    "a loop left early by both": """
        for t in range(n):
            if t > 3:
                break
            set_cross_core 0 @ V
    """,
}
DIFFERENT = {
    "a guard": """
        if sub == 0:
            set_cross_core 0 @ V
    """,
    "both branches": """
        if sub == 0:
            set_cross_core 0 @ V
        else:
            set_cross_core 0 @ V
    """,
    "an id": "set_cross_core sub @ V",
    "a value computed from it": """
        k = sub + 1
        set_cross_core k @ V
    """,
    "a value assigned under a guard": """
        k = 1
        if sub == 0:
            k = 2
        for i in range(k):
            set_cross_core 0 @ V
    """,
    "a value assigned later, in a loop": """
        k = 0
        for t in range(n):
            set_cross_core k @ V
            k = sub
    """,
    "a record": """
        R[0].k = sub
        set_cross_core R[0].k @ V
    """,
    "a cursor moved under a guard": """
        if sub == 0:
            s = x2.next()
        r = x2.next()
        set_cross_core r @ V
    """,
    "a loop that one leaves early": """
        for t in range(n):
            if sub == 0:
                break
            set_cross_core 0 @ V
    """,
    "sync_all": """
        if sub == 0:
            sync_all
    """,
    "a sub-core by name": "set_cross_core 0 @ V mode = UNICAST_BLOCK",
}


def differ(body: str) -> bool:
    text = f"""
kernel k(n):
    assume n >= 0
    buffer x in Vec
    buffer x2[2] in Vec
    buffer p in Vec
    ring R[2](k)

    section vector:
{indent(dedent(body).strip(), " " * 8)}
"""
    result = read(text, "k.kir")
    assert not result.errors, result.errors
    return sub_cores_differ(result.kernels[0])


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_both_sub_cores_signal_alike(body: str) -> None:
    assert not differ(body)


@pytest.mark.parametrize("body", DIFFERENT.values(), ids=DIFFERENT)
def test_sub_cores_may_signal_differently(body: str) -> None:
    assert differ(body)
