"""Does a name of PyPTO-Pro host code have a known value only if nothing may give it another one?"""

from __future__ import annotations

import pytest
from tests.frontends.pypto_pro import program, result, section

CHANGED = {
    "what a function gives": "def get():\n    return L\nget().append(1)",
    "a method under a name": "add = L.append\nadd(1)",
    "a method that is mapped": "list(map(L.append, [1]))",
    "an argument of a lambda": "(lambda l: l.append(1))(L)",
    "an attribute of a class": "class P:\n    s = L\nP.s.append(1)",
    "a default value": "def f(l=L):\n    l.append(1)\nf()",
    "any arguments": "def f(*ls):\n    ls[0].append(1)\nf(L)",
    "unpacked arguments": "def f(l):\n    l.append(1)\nf(*[L])",
    "any keywords": "def f(**k):\n    k['l'].append(1)\nf(l=L)",
    "a keyword": "def f(a, /, *, l):\n    l.append(1)\nf(1, l=L)",
    "an instance": "class C:\n    def __init__(s, l):\n        l.append(1)\nC(L)",
    "a starred target": "*M, = L,\nM[0].append(1)",
    "a loop in a function": "def f():\n    for l in (L,):\n        l.append(1)\nf()",
    "a list in a function": "def f(l):\n    m = [l]\n    m[0].append(1)\nf(L)",
    "what another function gives": "def f(l):\n    m = g(l)\n    m.append(1)\ndef g(l): return l\nf(L)",
    "a partial call": "from functools import partial\npartial(list.append, L)(1)",
    "an imported function": "from foo import f\nf(L)",
    "a context": "with foo(L) as q:\n    pass",
    "a dictionary of it": "D = {'a': L}\nD.get('a').append(1)",
    "the values of a dictionary": "D = {'a': L}\nfor v in D.values():\n    v.append(1)",
    "a value instead of none": "D = {}\nD.get('a', L).append(1)",
    "an item of a choice": "M = L or []\nM.append(1)",
    "a type that hides the language": "class pl2:\n    def f(l):\n        l.append(1)\npl2.f(L)",
    "a condition": "while L.append(1):\n    pass",
    "a decorator": "@foo(L)\ndef h():\n    pass",
    "a yield": "def f():\n    (yield L).append(1)",
    "a deleted item": "del L[0]",
    "an attribute": "L.x = 3",
    "a kernel that is called": "kernel(L)",
}

READ = {
    "its length": "q = len(L)",
    "a loop": "for q in L:\n    print(q)",
    "a comprehension": "q = [x + 1 for x in L]",
    "an item": "q = L[0]",
    "a copy": "M = L.copy()",
    "another list": "M = [*L, 1]\nM.append(1)",
    "a sum": "M = L + [1]\nM.append(1)",
    "a function that reads it": "def f(l):\n    return l[0] + len(l)\nq = f(L)",
    "a test of each": "import pytest\n@pytest.mark.parametrize('n', L)\ndef test(n):\n    assert n",
    "the language": "V = pl.TileType(shape=L, dtype=pl.DT_FP16, target_memory=pl.MemorySpace.Vec)",
    "a part of the language": "pl.system.bar_all(L)",
    "a condition": "if L:\n    pass",
}


def _host(module: str, use: str = "R") -> list[str]:
    """What an event id that host code gives is read as."""
    call = f"pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id={use})"
    (kernel,) = result(program(f"with pl.section_vector():\n    {call}", module)).kernels
    return section(kernel)


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_list_that_may_be_changed_in_place_is_not_known(change: str) -> None:
    assert _host(f"L = [0]\n{change}\nR = len(L)") == ["wait_cross_core R @ V"]


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_list_that_is_changed_after_it_was_read_is_not_known(change: str) -> None:
    """A kernel is traced where it is called."""
    assert _host(f"L = [0]\n{change}", "L[0]") == ["wait_cross_core L_0 @ V"]


@pytest.mark.parametrize("mention", READ.values(), ids=READ)
def test_a_list_that_is_only_read_is_known(mention: str) -> None:
    assert _host(f"L = [2]\n{mention}\nR = L[0]") == ["wait_cross_core 2 @ V"]


def test_tuples_cannot_be_changed_but_lists_in_them_can() -> None:
    assert _host("L = (2, 3)\nfoo(L)", "L[0]") == ["wait_cross_core 2 @ V"]
    assert _host("L = [(2, 3)]\nfor x in L:\n    foo(x)", "L[0][0]") == ["wait_cross_core 2 @ V"]
    assert _host("L = ([2], 3)\nfoo(L)", "L[0][0]") == ["wait_cross_core L_0_0 @ V"]
    assert _host("L = [[2]]\nfor x in L:\n    x[0] = 40", "L[0][0]") == ["wait_cross_core L_0_0 @ V"]


def test_items_before_and_after_a_change_are_different_unknowns() -> None:
    found = _host("L = [0]\nA = L[0]\nL[0] = 7\nB = L[0]\nR = 1 if A == B else 2")
    assert found == ["wait_cross_core R @ V"]


CLASSES = {
    "an assignment": "P.N = 40",
    "an addition": "P.N += 38",
    "another name": "Q = P\nQ.N = 40",
    "a function": "def f(c):\n    c.N = 40\nf(P)",
    "a method": "P.set()",
    "an instance": "P().change()",
    "a base": "class Q(P):\n    pass",
    "a member": "q = P.set\nq()",
}

CLASS = """
class P:
    N = 2
    @classmethod
    def set(cls):
        cls.N = 40
    def change(self):
        type(self).N = 40
"""


@pytest.mark.parametrize("change", CLASSES.values(), ids=CLASSES)
def test_a_class_that_may_be_changed_is_not_known(change: str) -> None:
    assert _host(f"{CLASS}{change}", "P.N") == ["wait_cross_core P_N @ V"]


def test_a_class_that_is_only_read_is_known() -> None:
    assert _host(f"{CLASS}q = P.N + 1\ndef f(x: P) -> int:\n    return P.N", "P.N") == ["wait_cross_core 2 @ V"]
    assert _host("class P:\n    S = [2]\nq = P.S[0]", "P.S[0]") == ["wait_cross_core 2 @ V"]


def test_members_of_a_class_may_be_changed_under_their_own_names_and_in_nested_classes() -> None:
    assert _host("class P:\n    S = [2]\n    S[0] = 40", "P.S[0]") == ["wait_cross_core P_S_0 @ V"]
    assert _host("class P:\n    class Q:\n        N = 2\nP.Q.N = 40", "P.Q.N") != ["wait_cross_core 2 @ V"]


SUPPRESS = "import contextlib\n"

PARTS = {
    "a binding": "R = 2\nwith contextlib.suppress(ImportError):\n    import foo\n    R = 40",
    "two bindings": "R = 2\nwith contextlib.suppress(ImportError):\n    R = 3\n    import foo\n    R = 2",
    "a loop": "R = 2\nwith contextlib.suppress(ImportError):\n    for R in (3, 2):\n        import foo",
    "a result": (
        "def f():\n    with contextlib.suppress(ImportError):\n        import foo\n        return 40\n    return 2\n"
        "R = f()"
    ),
    "a second context": "R = 2\nwith contextlib.suppress(ImportError), open(R := 40):\n    pass",
    "two bindings of a try": "R = 2\ntry:\n    R = 3\n    import foo\n    R = 2\nexcept ImportError:\n    pass",
    "a result of a try": (
        "def f():\n    try:\n        import foo\n        return 40\n    except ImportError:\n        pass\n"
        "    return 2\nR = f()"
    ),
    "an else": "R = 2\ntry:\n    import foo\nexcept ImportError:\n    pass\nelse:\n    R = 40",
    "a handler that raises": (
        "R = 2\nwith contextlib.suppress(ImportError):\n"
        "    try:\n        import foo\n    except ImportError:\n        R = 40\n        raise"
    ),
    "a handler that may return": (
        "def f():\n    try:\n        import foo\n    except ImportError:\n        if foo2:\n            return 40\n"
        "        raise\n    return 2\nR = f()"
    ),
    "a result of an inner block": (
        "def f():\n    if foo:\n        if foo2:\n            return 40\n    return 2\nR = f()"
    ),
    "a result in an open file": (
        "def f():\n    with open('x'):\n        if foo2:\n            return 40\n    return 2\nR = f()"
    ),
    "a loop that is left": ("R = 2\nfor i in (1, 2):\n    if foo:\n        if foo2:\n            break\n    R = R + i"),
    "a name of another scope": (
        "R = 2\ndef f():\n    with contextlib.suppress(ImportError):\n        len = f\n    return len((1,))\nR = f()"
    ),
}


@pytest.mark.parametrize("module", PARTS.values(), ids=PARTS)
def test_a_block_that_may_end_anywhere_leaves_several_values(module: str) -> None:
    assert _host(SUPPRESS + module) == ["wait_cross_core R @ V"]


@pytest.mark.parametrize(
    "module",
    [
        "with contextlib.suppress(ImportError):\n    import foo\n    R = 2",
        "R = 2\nwith contextlib.suppress(ImportError):\n    import foo\n    R = 2",
        "R = 2\nwith open('x') as f:\n    q = f.read()",
        "try:\n    import foo\n    R = 2\nexcept ImportError:\n    raise",
        "def f():\n    try:\n        return 2\n    except ImportError:\n        raise\nR = f()",
        "R = 3\nwith open('x') as f:\n    q = f.read()\nR = 2",
    ],
)
def test_what_is_bound_once_in_a_block_that_may_end_anywhere_is_known(module: str) -> None:
    assert _host(SUPPRESS + module) == ["wait_cross_core 2 @ V"]
