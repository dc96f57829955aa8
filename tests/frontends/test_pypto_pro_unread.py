"""Is device code that no kernel reaches said to be unread, and other code left in peace?"""

from __future__ import annotations

import pytest
from tests.frontends.pypto_pro import result, unread

from fencepost.frontends.registry import front_end_for

HEAD = "import pypto_pro.language as pl\nimport functools\n"
GOOD = (
    "@pl.jit\ndef good(a: pl.Tensor[[64, 64], pl.DT_FP16]):\n    with pl.section_vector():\n"
    "        pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=0)\n"
)
BAD = (
    "def bad(a: pl.Tensor[[64, 64], pl.DT_FP16]):\n    with pl.section_vector():\n"
    "        pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=1)\n"
)
PLAIN = "def bad(a: pl.Tensor[[64, 64], pl.DT_FP16]):\n    pl.load(a, a, [0, 0])\n"

LOST = {
    "all names of the language": f"from pypto_pro.language import *\n@jit\n{BAD}",
    "a partial decorator": f"tuned = functools.partial(pl.jit, auto_mutex=True)\n@tuned\n{BAD}",
    "a decorator of the text": f"def tuned(f):\n    return pl.jit(f)\n@tuned\n{BAD}",
    "a call": f"{BAD}k = pl.jit(bad)\n",
    "an imported decorator": f"from common import pto_kernel\n@pto_kernel\n{BAD}",
    "a call as a decorator": f"@functools.partial(pl.jit, auto_mutex=True)\n{BAD}",
    "a choice": f"if pl.__version__ > '1':\n    jit = pl.jit\nelse:\n    jit = pl.kernel\n@jit\n{BAD}",
    "an imported module": f"import importlib\npl = importlib.import_module('pypto_pro.language')\n@pl.jit\n{BAD}",
    "an asynchronous function": f"@pl.jit\nasync {BAD}",
    "a call of a function without sections": f"{PLAIN}k = pl.jit(bad)\n",
    "a decorator of a function without sections": f"from common import pto_kernel\n@pto_kernel\n{PLAIN}",
    "a function without sections in a list": (
        "def bad():\n    pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=1)\nfor f in [bad]:\n    pl.jit(f)\n"
    ),
    "other names of the language": (
        "from pypto_pro.language import section_vector as on\nfrom common import pto_kernel\n"
        "@pto_kernel\ndef bad(a):\n    with on():\n        pass\n"
    ),
    "a function in a function": "def make():\n    @tuned\n" + "".join(f"    {s}\n" for s in BAD.splitlines()),
    "a method": "class C:\n    @tuned\n" + "".join(f"    {s}\n" for s in BAD.splitlines()),
}


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
@pytest.mark.parametrize("before", ["", GOOD], ids=["alone", "with another"])
def test_device_code_that_no_kernel_reaches_is_said_to_be_unread(text: str, before: str) -> None:
    *others, kernel = result(HEAD + before + text).kernels
    assert kernel.name == "bad" and len(unread(kernel)) == 1 and "bad holds device code, but" in unread(kernel)[0]
    assert [k.name for k in others if not unread(k)] == (["good"] if before and "import_module" not in text else [])


@pytest.mark.parametrize("text", [t for t in LOST.values() if "section_vector" in t])
def test_a_text_with_device_code_is_read(text: str) -> None:
    front_end = front_end_for(HEAD + text, "k.py")
    assert front_end is not None and front_end.name == "PyPTO-Pro"


QUIET = {
    "a helper": BAD.replace("def bad", "def helper") + GOOD.replace("0)\n", "0)\n    helper(a)\n"),
    "a helper of a helper": (
        BAD.replace("def bad", "def helper")
        + "def more(a):\n    helper(a)\n"
        + GOOD.replace("0)\n", "0)\n    more(a)\n")
    ),
    "a helper in a class": (
        "class C:\n"
        + "".join(f"    {s}\n" for s in ("@staticmethod\n" + BAD).splitlines())
        + GOOD.replace("0)\n", "0)\n    C.bad(a)\n")
    ),
    "a helper in a list": (
        BAD.replace("def bad", "def helper") + "L = (helper,)\n" + GOOD.replace("0)\n", "0)\n    L[0](a)\n")
    ),
    "a function in the kernel": GOOD
    + "    def inner():\n        with pl.section_cube():\n            pass\n    inner()\n",
    "a host function": GOOD + "def host(x):\n    return good(x)\n",
    "a decorated host function": GOOD + "@functools.lru_cache\ndef host(x: int):\n    return good(x)\n",
    "a vector function": "@pl.vector_function\ndef v(a: pl.Tensor[[64], pl.DT_FP16]):\n    pass\n" + GOOD,
    "a helper with signals that nothing calls": (
        GOOD + "def part():\n    pl.system.wait_cross_core(pipe=pl.PipeType.V, event_id=1)\n"
    ),
    "helpers without sections": GOOD + "def part(t, a: pl.Tensor[[64], pl.DT_FP16]):\n    pl.load(t, a, [0, 0])\n",
}


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_functions_that_a_kernel_reaches_and_host_functions_are_no_kernels(text: str) -> None:
    assert [k.name for k in result(HEAD + text).kernels] == ["good"]


def test_a_kernel_with_sections_by_their_own_names_is_no_host_function() -> None:
    text = HEAD + "import torch\nfrom pypto_pro.language import section_vector\n@pl.jit\ndef good(a):\n"
    (kernel,) = result(text + "    x = torch.float16\n    with section_vector():\n        pass\n").kernels
    assert kernel.name == "good"
