"""Do the verbs certify and recheck write and judge certificates, with the exit statuses that scripts rely on?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.cli import main

GOOD = """\
kernel good(n):
    assume n >= 0
    buffer tile in Vec
    section cube:
        for t in range(n):
            wait_cross_core 1 @ FIX
            move tile <- acc @ FIX
            set_cross_core 0 @ FIX
        wait_cross_core 1 @ FIX
    section vector:
        set_cross_core 1 @ V
        for t in range(n):
            wait_cross_core 0 @ V
            softmax out <- tile @ V
            set_cross_core 1 @ V
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("good.kir").write_text(GOOD)
    return "good.kir"


def test_a_certificate_is_written_and_holds(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", file, "-o", "good.json"]) == 0
    assert capsys.readouterr().err.startswith("good.json: good, ")
    assert main(["recheck", "good.json"]) == 0
    assert capsys.readouterr().out.startswith("good: the certificate holds, ")


def test_a_changed_certificate_is_rejected(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", file]) == 0
    certificate = json.loads(capsys.readouterr().out)
    certificate["claims"][0]["answer"] = "sat"
    Path("changed.json").write_text(json.dumps(certificate))
    assert main(["recheck", "changed.json"]) == 1
    assert capsys.readouterr().out.startswith("changed.json: ")


def test_a_faulty_kernel_has_no_certificate(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.kir").write_text(GOOD.replace("        wait_cross_core 1 @ FIX\n    section", "    section"))
    assert main(["certify", "bad.kir", "-o", "bad.json"]) == 3
    assert "good: no certificate: " in capsys.readouterr().err
    assert not Path("bad.json").exists()


def test_what_is_no_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.json"
    path.write_text("[1, 2]")
    assert main(["recheck", str(path)]) == 1
    path.write_text("{")
    assert main(["recheck", str(path)]) == 2
    assert main(["recheck", str(tmp_path / "absent.json")]) == 2
    assert "can't read" in capsys.readouterr().err
