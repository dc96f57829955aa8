"""Python files that are no Python: the place of the mistake is told, and the other files are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.cli import main

GOOD = "kernel good(n):\n    section cube:\n        for i in range(n):\n            load x <- A @ MTE2\n"

MISTAKES = {
    "pro.py": (
        "import pypto_pro.language as pl\n\n@pl.jit\ndef k(x, n):\n    for i in range(n)\n        pass\n",
        "5:22",
    ),
    "helper.py": ("import pypto_pro.language as pl\n\ndef half(:\n    pass\n", "3:10"),
    "tile.py": (
        "import tilelang\nimport tilelang.language as T\n\ndef main(A):\n    s = T.alloc_shared((4, 4)\n"
        "    for k in T.Pipelined(4, num_stages=2):\n        T.copy(A, s)\n",
        "5:23",
    ),
    "broken_tile.py": ("import tilelang\n\ndef f(:\n    pass\n", "3:7"),
    "program.py": ("import pypto\n\n@pypto.program\nclass P\n    pass\n", "4:8"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.kir").write_text(GOOD)
    for name, (text, _) in MISTAKES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["check", *arguments, "--format", "concise", "--no-cache"])
    return status, capsys.readouterr().out


@pytest.mark.parametrize("name", MISTAKES)
def test_a_file_alone(here: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, out = checked(capsys, name)
    assert status == 2 and f"{name}:{MISTAKES[name][1]}: error: not valid Python" in out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder(here: Path, capsys: pytest.CaptureFixture[str], jobs: str) -> None:
    (here / "other.py").write_text("print 'of another language'\n")
    status, out = checked(capsys, ".", "--jobs", jobs)
    assert status == 2 and "1 kernel" in out
    for name, (_, place) in MISTAKES.items():
        assert f"{name}:{place}: error: not valid Python" in out
    assert "other.py" not in out


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_files_that_are_named(here: Path, capsys: pytest.CaptureFixture[str], jobs: str) -> None:
    (here / "other.py").write_text("print 'of another language'\n")
    status, out = checked(capsys, "other.py", "good.kir", "--jobs", jobs)
    assert status == 2 and "other.py:1:1: error: not valid Python" in out and "1 kernel" in out
