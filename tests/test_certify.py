"""Do the verbs certify and recheck write and judge certificates, with the exit statuses that scripts rely on?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.cli import main
from fencepost.commands.certify import layout
from fencepost.prove import cvc5

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

ODD = """\
kernel odd(n):
    assume n >= 0
    section cube:
        for t in range(n):
            if t == 3:
                break
            set_cross_core 0 @ FIX
    section vector:
        for t in range(n):
            if t == 3:
                break
            wait_cross_core 0 @ V
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("good.kir").write_text(GOOD)
    return "good.kir"


def test_a_certificate_is_written_and_holds(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", file, "-o", "good.json"]) == 0
    assert capsys.readouterr().err.startswith("good.json: good, ")
    assert main(["recheck", "good.json", "--against", file, "--solver", "z3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("good: the certificate holds for all parameter values; ")
    assert "shown by z3 " in said
    assert "rows 1, 2, 3, 4, 5, 6\n" in said


def test_cvc5_is_the_default_where_it_is_installed(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["certify", file, "-o", "good.json"])
    assert main(["recheck", "good.json"]) == 0
    assert ("shown by cvc5 " if cvc5.installed() else "shown by z3 ") in capsys.readouterr().out


def test_a_key_that_stands_twice_is_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two readers could take two values for it."""
    main(["certify", file, "-o", "good.json"])
    text = Path("good.json").read_text()
    Path("twice.json").write_text('{"rows": ["9"],' + text.lstrip()[1:])
    capsys.readouterr()
    assert main(["recheck", "twice.json"]) == 2
    assert "every key stands once" in capsys.readouterr().err


def test_a_solver_that_is_missing_is_named(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["certify", file, "-o", "good.json"])
    monkeypatch.setattr(cvc5, "installed", lambda: False)
    assert main(["recheck", "good.json", "--solver", "cvc5"]) == 2
    assert "pip install cvc5" in capsys.readouterr().err
    assert main(["recheck", "good.json"]) == 0
    assert "shown by z3 " in capsys.readouterr().out


def test_a_certificate_of_another_kernel_is_told_apart(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["certify", file, "-o", "good.json"])
    Path("other.kir").write_text(GOOD.replace("softmax out", "softmax other"))
    capsys.readouterr()
    assert main(["recheck", "good.json", "--against", "other.kir"]) == 1
    assert capsys.readouterr().out == "good.json: it is not about a kernel of other.kir\n"


def test_a_changed_certificate_is_rejected(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", file]) == 0
    certificate = json.loads(capsys.readouterr().out)
    certificate["claims"][0]["answer"] = "unsat"
    Path("changed.json").write_text(json.dumps(certificate))
    assert main(["recheck", "changed.json"]) == 1
    assert capsys.readouterr().out.startswith("changed.json: ")


def test_a_faulty_kernel_has_no_certificate(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.kir").write_text(GOOD.replace("        wait_cross_core 1 @ FIX\n    section", "    section"))
    assert main(["certify", "bad.kir", "-o", "bad.json"]) == 3
    said = capsys.readouterr().err
    assert "good: no certificate: it is refuted by FP" in said and "; see `fencepost check bad.kir`" in said
    assert not Path("bad.json").exists()


def test_a_certificate_of_a_kernel_that_is_left_by_break(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd.kir").write_text(ODD)
    assert main(["certify", "odd.kir", "-o", "odd.json"]) == 0
    assert main(["recheck", "odd.json", "--against", "odd.kir"]) == 0
    assert "odd: the certificate holds for all parameter values" in capsys.readouterr().out
    Path("even.kir").write_text(ODD.replace("t == 3", "t == 4"))
    assert main(["recheck", "odd.json", "--against", "even.kir"]) == 1


def test_a_proof_that_cannot_be_written_down_is_told_apart(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables know no memory that blocks share."""
    text = GOOD.replace("good(n):\n", "odd(n):\n    assume block <= 7\n    buffer all[8] in GM shared\n")
    Path("odd.kir").write_text(
        text.replace("    section cube:\n", "    section cube:\n        store all[block] <- x @ FIX\n")
    )
    assert main(["certify", "odd.kir", "-o", "odd.json"]) == 3
    said = capsys.readouterr().err
    assert "odd: no certificate: it is proved, and this proof of it could not be written down: " in said
    assert "memory that blocks share" in said


def test_a_kernel_without_anything_to_prove_has_no_certificate(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.kir").write_text("kernel empty(n):\n    section cube:\n        pass\n")
    assert main(["certify", "empty.kir"]) == 3
    assert "there is nothing to prove about this kernel" in capsys.readouterr().err


def test_what_is_no_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.json"
    path.write_text("[1, 2]")
    assert main(["recheck", str(path)]) == 1
    path.write_text("{")
    assert main(["recheck", str(path)]) == 2
    assert main(["recheck", str(tmp_path / "absent.json")]) == 2
    assert "can't read" in capsys.readouterr().err


@pytest.mark.parametrize("data", [[], {}, {"a": [1, {"b": ["x" * 200, "ü"]}], "c": None}, ["y" * 50] * 9, 3])
def test_the_layout_is_json(data: object) -> None:
    assert json.loads(layout(data)) == data
