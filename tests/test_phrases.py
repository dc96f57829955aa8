"""Are values of functions that are alike and follow one another written together, and read again?"""

from __future__ import annotations

import pytest

from fencepost.cli import main
from fencepost.phrases import assignments, plural


def test_rows_of_equal_values() -> None:
    pairs = [("n", 9), *((f"f({k})", int(k == 5)) for k in range(9)), ("g(0, 1)", 2), ("g(0, 2)", 2), ("h()", 1)]
    assert assignments(pairs) == "n = 9, f(0..4) = 0, f(5) = 1, f(6) = 0, f(7) = 0, f(8) = 0, " + (
        "g(0, 1) = 2, g(0, 2) = 2, h() = 1"
    )
    assert assignments([(f"f({k})", 0) for k in range(-2, 2)]) == "f(-2..1) = 0"
    assert assignments([]) == ""


def test_plural() -> None:
    assert (plural(0, "shape"), plural(1, "shape"), plural(2, "shape")) == ("0 shapes", "1 shape", "2 shapes")


KERNEL = """\
kernel late(n):
    section cube:
        for t in range(n):
            if need(t) == 5:
                set_cross_core 0 @ M
    section vector:
        barrier V
"""


def test_rows_are_read(capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("rows") / "late.kir"
    file.write_text(KERNEL)
    assert main(["run", str(file), "-p", "n=9", "-p", "need(0..7)=0", "-p", "need(8)=5"]) == 1
    assert "n = 9, need(0..7) = 0, need(8) = 5" in capsys.readouterr().out
    assert main(["run", str(file), "-p", "n=9", "-p", "need(7..0)=0"]) == 2
