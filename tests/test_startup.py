"""Do the verbs that need no proof start without the libraries that proofs need?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("z3", "lark", "jinja2", "importlib.metadata", "multiprocessing")


def python(code: str) -> subprocess.CompletedProcess[str]:
    path = [str(ROOT / "verifier"), str(ROOT / "rules")]
    prologue = f"import sys; sys.path[:0] = {path!r}\n"
    return subprocess.run([sys.executable, "-c", prologue + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["check", "--help"], ["explain", "206"], ["rules"], []], ids=" ".join
)
def test_no_heavy_import(arguments: list[str]) -> None:
    ran = python(
        f"from fencepost.cli import main\nmain({arguments!r})\n"
        f"print('loaded:', *(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)"
    )
    assert ran.stderr.splitlines()[-1] == "loaded:"


def test_the_check_of_a_small_kernel_needs_neither_solver_nor_other_methods() -> None:
    arguments = ["check", "--no-cache", str(ROOT / "examples" / "bias_handover.kir")]
    needless = ("fencepost.pipeline_row", "fencepost.skew_row", "fencepost.translation", "tabulate")
    modules = (*(m for m in HEAVY if m != "lark"), *needless)
    ran = python(
        f"from fencepost.cli import main\nprint('status:', main({arguments!r}))\n"
        f"print('loaded:', *(m for m in {modules!r} if m in sys.modules))"
    )
    assert ran.stdout.splitlines()[-2:] == ["status: 0", "loaded:"]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["check", "--help"]], ids=" ".join)
def test_help_needs_no_ir(arguments: list[str]) -> None:
    ran = python(f"from fencepost.cli import main\nmain({arguments!r})\nprint('fencepost.ir' in sys.modules)")
    assert ran.stdout.splitlines()[-1] == "False"


def test_importing_the_package_costs_nothing() -> None:
    ran = python("import fencepost; print(sorted(m for m in sys.modules if m.startswith(('fencepost', 'z3', 'lark'))))")
    assert ran.stdout == "['fencepost']\n"


def test_the_public_names_load_on_first_use() -> None:
    ran = python("import fencepost; print([callable(getattr(fencepost, n)) for n in fencepost.__all__ if n[0] != '_'])")
    assert ran.stdout.strip("[]\n").split(", ") == ["True"] * (ran.stdout.count(",") + 1), ran.stderr


def test_the_version_names_what_matters() -> None:
    ran = python("from fencepost.cli import main; main(['--version'])")
    assert re.fullmatch(r"fencepost \d+\.\d+\.\d+ \(z3 5\.[\d.]+, lark 1\.[\d.]+, Python 3\.[\d.]+\)\n", ran.stdout)
