"""What does `fencepost skew` print, and how does it end?"""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.cli import main
from fencepost.frontends.kir import read

TEXT = """kernel pair():
    fifo down: cube -> vector, slots = 2
    fifo up: vector -> cube, slots = 2

    section cube:
        for t in pipeline(0, {trips}, {step}, stage = {stage}):
            qk s <- q @ M at (t)
            tpush_to_aiv s
            p <- tpop_from_aiv
            tfree_to_aiv p

    section vector:
        for t in range({trips}):
            s <- tpop_from_aic
            exp e <- s @ V
            tfree_to_aic s
            tpush_to_aic e
"""


def skew(tmp_path: Path, *options: str, trips: int = 4, stage: int = 2, step: str = "1") -> int:
    file = tmp_path / "k.kir"
    file.write_text(TEXT.format(trips=trips, stage=stage, step=step))
    return main(["skew", str(file), *options])


def test_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert skew(tmp_path) == 0
    out = capsys.readouterr().out
    assert out.startswith("# line 6: loop t, stage 2: skewed at depth 2\nkernel pair():\n")
    (kernel,) = read(out, "out.kir").kernels
    assert kernel.name == "pair"


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert skew(tmp_path, "--diff") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == ["--- pair as written", "+++ pair after the skew"]
    assert "-        for t in pipeline(0, 4, 1, stage = 2):" in lines
    assert "+        for t in range(2, 4, 2):" in lines


@pytest.mark.parametrize(("trips", "stage", "status"), [(4, 2, 0), (6, 4, 1)])
def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str], trips: int, stage: int, status: int) -> None:
    assert skew(tmp_path, "--verify", trips=trips, stage=stage) == status
    out = capsys.readouterr().out
    assert "after skew" in out
    assert "slot mapping" not in out
    assert ("largest safe depth is 2" in " ".join(out.split())) == (status == 1)


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert skew(tmp_path, step="0") == 2
    assert "k.kir:6" in capsys.readouterr().err


def test_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "g.kir"
    text = TEXT.format(trips="n", stage=2, step="1").replace("pair()", "pair(n)")
    file.write_text(text)
    assert main(["skew", str(file), "--group"]) == 0
    assert "all messages of an iteration run one round trip ahead" in capsys.readouterr().out
    push, pop = "tpush_to_aiv s\n            ", "p <- tpop_from_aiv\n            "
    file.write_text(text.replace(push + pop, pop + push))
    assert main(["skew", str(file), "--group"]) == 0
    assert "# pair: not grouped: the first message of an iteration is a pop" in capsys.readouterr().out


def test_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "a.kir", tmp_path / "b.kir"
    before.write_text(TEXT.format(trips=4, stage=2, step="1"))
    skew(tmp_path)
    after.write_text(capsys.readouterr().out)
    assert main(["check", "--no-cache", "--before", str(before), str(after)]) == 0
    assert "as before       proved" in capsys.readouterr().out
    after.write_text(after.read_text().replace("q @ M at (0)", "q @ M at (1)"))
    assert main(["check", "--no-cache", "--before", str(before), str(after)]) == 1
    assert "receives s of t = 1; s of t = 0 is meant" in " ".join(capsys.readouterr().out.split())
    before.write_text(before.read_text().replace("kernel pair", "kernel other"))
    assert main(["check", "--no-cache", "--before", str(before), str(after)]) == 2


def test_before_with_fewer_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "a.kir", tmp_path / "b.kir"
    text = TEXT.format(trips="n", stage=2, step="1").replace("pair():", "pair(n):\n    assume n >= 0")
    before.write_text(text)
    after.write_text(text.replace("n >= 0", "n >= 8"))
    assert main(["check", "--no-cache", "--before", str(before), str(after)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "as before refuted FP701; the text covers fewer values than the text before" in out
    assert "the text before also covers n = 0; this text assumes n >= 8" in out
    assert main(["check", "--no-cache", "--before", str(after), str(before)]) == 0


RACING = """kernel grp(n):
    assume n >= 0
    fifo c2v: cube -> vector, slots = 8
    fifo v2c: vector -> cube, slots = 8
    buffer g[2] in GM
    section cube:
        for t in pipeline(0, n, 1, stage = 2):
            wait_cross_core 0 @ S
            load q <- g[0], g[1] @ S at (t)
            tpush_to_aiv q
            a <- tpop_from_aiv
            mul b <- a @ S
            tfree_to_aiv a
            tpush_to_aiv b
            c <- tpop_from_aiv
            store D <- c @ S at (t)
            tfree_to_aiv c
    section vector:
        fill g[sub] <- zero @ S
        for t in range(n):
            set_cross_core 0 @ S
            x <- tpop_from_aic
            mul y <- x @ S
            tpush_to_aic y
            tfree_to_aic x
            x2 <- tpop_from_aic
            mul y2 <- x2 @ S
            save g[sub] <- y2 @ S
            tpush_to_aic y2
            tfree_to_aic x2
"""


def test_a_kernel_that_would_race_is_not_grouped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "g.kir"
    file.write_text(RACING)
    main(["skew", str(file), "--group"])
    out = capsys.readouterr().out
    assert "# grp: not grouped: line 9 and line 19, of different agents, use g" in out
    assert out.index("wait_cross_core 0") < out.index("load q <- g[0], g[1]")
    assert main(["check", "--no-cache", str(file)]) == 0


def test_what_is_not_shown_of_a_grouped_kernel_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that is refuted as written stays so, whatever is printed about its messages."""
    file = tmp_path / "g.kir"
    text = RACING.replace("    buffer g[2] in GM\n", "    buffer ub in Vec\n")
    text = text.replace(
        "            wait_cross_core 0 @ S\n            load q <- g[0], g[1]", "            load q <- A"
    )
    text = text.replace("        fill g[sub] <- zero @ S\n", "").replace("            save g[sub] <- y2 @ S\n", "")
    file.write_text(text.replace("set_cross_core 0 @ S", "load ub <- X @ MTE2\n            mul w <- ub @ V"))
    for options in (["--group"], ["--group", "--verify"]):
        assert main(["skew", str(file), *options]) == 1
        out = capsys.readouterr().out
        assert "# grp: 2 event position: refuted, as before the grouping" in out
        assert "all messages of an iteration run one round trip ahead" in out
    assert "2 event position  refuted" in out
