"""Does any input make the tool fall over, hang, or say something with the wrong exit status?"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KERNEL = """\
kernel k{0}():
    section cube:
        for t in range(2):
            set_cross_core 0 @ FIX
    section vector:
        for t in range(2):
            wait_cross_core 0 @ V
"""


def fencepost(*arguments: str, cwd: Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run the tool in a process of its own, so that a crash of the interpreter shows too."""
    code = f"import sys; sys.path[:0] = {[str(ROOT / 'verifier'), str(ROOT / 'rules')]!r}\n"
    code += f"from fencepost.cli import main; sys.exit(main({list(arguments)!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    assert ran.returncode in (0, 1, 2, 3), ran
    return ran


def put(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return name


@pytest.mark.parametrize("name", ["noise.kir", "noise.py"])
@pytest.mark.parametrize("kind", ["bytes", "text", "letters"])
def test_noise(tmp_path: Path, name: str, kind: str) -> None:
    dice = random.Random(kind + name)
    if kind == "bytes":
        data = dice.randbytes(200_000)
    elif kind == "text":
        data = "".join(chr(dice.choice([dice.randrange(32, 127), 10, 9, 0x4E2D])) for _ in range(200_000)).encode()
    else:
        words = [
            "kernel",
            "section",
            "cube:",
            "for",
            "t",
            "in",
            "range(",
            ")",
            ":",
            "\n",
            "    ",
            "@",
            "FIX",
            "=",
            "(",
            "[",
        ]
        data = " ".join(dice.choice(words) for _ in range(40_000)).encode()
    ran = fencepost("check", put(tmp_path, name, data), cwd=tmp_path)
    assert ran.returncode == 2


@pytest.mark.parametrize(
    ("name", "data", "status", "message"),
    [
        ("empty.kir", b"", 2, "no kernel"),
        ("empty.py", b"", 2, "no kernel in this file"),
        ("blank.kir", b"\n\n  \n", 2, "no kernel"),
        ("comment.kir", b"# only words", 2, "no kernel"),
        ("nul.kir", b"kernel k():\n    section cube:\n        pass\0\n", 2, ":3:13: error: a NUL character"),
        ("nul.py", b"import pypto_pro\n@pl.jit\ndef f():\n    x = '\0'\n", 2, ":4:10: error: a NUL character"),
        ("bom.kir", b"\xef\xbb\xbf" + KERNEL.format("").encode(), 0, "PROVED"),
        ("crlf.kir", KERNEL.format("").replace("\n", "\r\n").encode(), 0, "PROVED"),
        ("cr.kir", KERNEL.format("").replace("\n", "\r").encode(), 0, "PROVED"),
        ("unterminated.kir", KERNEL.format("").rstrip().encode(), 0, "PROVED"),
        ("latin.kir", b"# caf\xe9\n" + KERNEL.format("").encode(), 2, "not UTF-8 text: byte 0xe9 at line 1, byte 6"),
        ("unicode.kir", KERNEL.format("_中文").encode(), 0, "PROVED"),
        ("utf16.kir", KERNEL.format("").encode("utf-16"), 2, "not UTF-8 text"),
        ("syntax.py", b"import pypto_pro\n@pl.jit\ndef f(:\n", 2, "syntax.py:3:"),
        ("surrogate.py", b"import pypto_pro\n@pl.jit\ndef f():\n    '\\ud800'\n", None, ""),
    ],
)
def test_odd_files(tmp_path: Path, name: str, data: bytes, status: int | None, message: str) -> None:
    ran = fencepost("check", put(tmp_path, name, data), cwd=tmp_path)
    assert status is None or ran.returncode == status, ran.stdout + ran.stderr
    assert message in ran.stdout


def test_tabs_are_read_or_explained(tmp_path: Path) -> None:
    ran = fencepost("check", put(tmp_path, "t.kir", KERNEL.format("").replace("    ", "\t").encode()), cwd=tmp_path)
    assert ran.returncode in (0, 2)
    assert "PROVED" in ran.stdout or "tab" in ran.stdout.lower()


@pytest.mark.parametrize("depth", [60, 5000])
def test_nested_ifs(tmp_path: Path, depth: int) -> None:
    lines = ["kernel deep(n):", "    section cube:"]
    lines += [" " * (8 + level) + f"if n > {level}:" for level in range(depth)]
    lines += [" " * (8 + depth) + "pass"]
    ran = fencepost("check", put(tmp_path, "deep.kir", "\n".join(lines).encode()), cwd=tmp_path)
    assert ran.returncode in (0, 2, 3), ran.stdout[-500:]
    assert "deep.kir" in ran.stdout


@pytest.mark.parametrize("text", ["(" * 5000 + "n" + ")" * 5000, "-" * 20000 + "n", " + ".join(["n"] * 20000)])
def test_deep_expressions(tmp_path: Path, text: str) -> None:
    kernel = KERNEL.format("").replace("k()", "k(n)").replace("range(2)", f"range({text})")
    ran = fencepost("check", put(tmp_path, "deep.kir", kernel.encode()), cwd=tmp_path)
    assert "deep.kir" in ran.stdout


def test_a_ten_megabyte_file(tmp_path: Path) -> None:
    body = f"        # {'x' * 400}\n        step = 1\n" * 100
    kernel = KERNEL.replace("    section vector:\n", f"    section vector:\n{body}")
    text = "".join(kernel.format(number) for number in range(10_000_000 // len(kernel) + 1))
    ran = fencepost("check", put(tmp_path, "big.kir", text.encode()), "--quiet", cwd=tmp_path, timeout=300)
    assert ran.returncode == 0, ran.stdout[-1000:]


def test_folders_that_lead_to_themselves(tmp_path: Path) -> None:
    put(tmp_path, "k.kir", KERNEL.format("").encode())
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    ran = fencepost("check", ".", cwd=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.count("PROVED") == 1


def test_a_file_that_fails_to_be_read(tmp_path: Path) -> None:
    ran = fencepost("check", "/proc/self/mem", put(tmp_path, "k.kir", KERNEL.format("").encode()), cwd=tmp_path)
    assert ran.returncode == 2
    assert "/proc/self/mem: error: can't read the file" in ran.stdout
    assert "PROVED" in ran.stdout


def test_a_run_without_end_is_bounded(tmp_path: Path) -> None:
    kernel = KERNEL.format("").replace("k()", "k(n)").replace("range(2)", "range(n)")
    ran = fencepost("run", put(tmp_path, "k.kir", kernel.encode()), "-p", "n=1000000000", cwd=tmp_path, timeout=30)
    assert ran.returncode == 2
    assert "executes more than 1,000,000 instructions; choose smaller values" in ran.stderr
    assert fencepost("run", "k.kir", "-p", f"n={'9' * 4000}", cwd=tmp_path, timeout=30).returncode == 2
    assert fencepost("run", "k.kir", "-p", f"n={'9' * 6000}", cwd=tmp_path, timeout=30).returncode == 2


def test_the_reader_of_the_output_may_go_away(tmp_path: Path) -> None:
    for number in range(200):
        put(tmp_path, f"k{number}.kir", KERNEL.format(number).encode())
    code = f"import sys; sys.path[:0] = {[str(ROOT / 'verifier'), str(ROOT / 'rules')]!r}\n"
    code += "from fencepost.cli import main; sys.exit(main(['check', '.', '--verbose', '--format', 'json']))"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 2
