"""Does the built package work on its own, outside the checkout?"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

KERNEL = """\
kernel one_shot():
    buffer p in Vec
    section cube:
        move p <- acc @ FIX
        set_cross_core 0 @ FIX
    section vector:
        wait_cross_core 0 @ V
        relu y <- p @ V
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would: without the import path of the checkout."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(c) for c in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as for a release."""
    root = Path(__file__).resolve().parent.parent
    out = tmp_path_factory.mktemp("dist")
    built = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, root, cwd=out)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = out.glob("*.whl")
    return found


def test_only_the_two_packages_land_at_the_top(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"fencepost", "fencepost_rules"}
    for data in ("grammar/kernel_ir.lark", "grammar/kernel_ir.json", "reports/schema/report.schema.json"):
        assert f"fencepost/data/{data}" in names
    assert {"fencepost/py.typed", "fencepost_rules/py.typed"} <= set(names)


def test_an_installed_wheel_checks_a_kernel(wheel: Path, tmp_path: Path) -> None:
    made = run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    installed = run(scripts / "python", "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "one.kir").write_text(KERNEL, "utf-8")
    checked = run(scripts / "fencepost", "check", "one.kir", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "PROVED" in checked.stdout
    elsewhere = run(scripts / "python", "-c", "import fencepost; print(fencepost.__file__)", cwd=tmp_path)
    assert str(tmp_path) in elsewhere.stdout
