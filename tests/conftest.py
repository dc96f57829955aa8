"""What do several test modules share: the golden-file switch and a hand-made report?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from fencepost import search
from fencepost.findings import (
    Check,
    Finding,
    InputError,
    KernelReport,
    Related,
    Report,
    Row,
    Severity,
    Step,
    Undecided,
    Verdict,
    Witness,
)
from fencepost.ir import Span

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("searching", deadline=None)
settings.load_profile("repeatable" if os.environ.get("CI") else "searching")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing with them")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees answers of an earlier run, nor leaves any."""
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def _unchallenged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No runs of large values after a proof, which would hide what is wrong with it, but where a test is about them."""
    if request.node.get_closest_marker("challenged") is None:
        monkeypatch.setattr(search, "_CHALLENGES", 0)


class Golden:
    """Compares text with a recorded file, or records it under `--update-golden`."""

    def __init__(self, update: bool) -> None:
        self._update = update

    def check(self, path: Path, text: str) -> None:
        """Assert that `path` holds `text`."""
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.exists(), f"{path} is missing; run pytest --update-golden and look at the result"
        assert text == path.read_text("utf-8"), f"{path} differs; run pytest --update-golden if the change is meant"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(bool(request.config.getoption("--update-golden")))


@pytest.fixture
def root() -> Path:
    """Top of the checkout."""
    return ROOT


SOURCE = """\
# Two slots.
kernel hand_over(n, m):
    section vector:
        set_cross_core RELEASE[0] @ V  # fencepost: ignore[602] lanes are equal
        for t in range(n):
            set_cross_core RELEASE[t % 2] @ V

    section cube:
        for t in range(n):
            wait_cross_core RELEASE[t % 2] @ FIX
"""


@pytest.fixture
def source() -> str:
    """The text that the spans of `sample_report` point into."""
    return SOURCE


@pytest.fixture
def sample_report() -> Report:
    """A report with every kind of verdict, severity, place and state."""
    file = "kernels/hand over.kir"
    site = Span(file, 6, 13, 6, 46)
    drain = Finding(
        "206",
        "last release not awaited",
        Row.EVENT_POSITION,
        Severity.ERROR,
        "RELEASE[0] of qk: aiv0 sets n + 1 signals | the cube awaits n",
        site,
        related=(
            Related(Span(file, 10, 13, 10, 49), "the only wait"),
            Related(Span("kernels/helper.py", 3, 1, 3, 9), "reached from here"),
        ),
        witness=Witness((("n", 0), ("m", -1)), (("need(0)", 2),)),
        replayed=True,
        trace=(
            Step("aiv0", "V", "set RELEASE[0]", Span(file, 4, 9, 4, 40)),
            Step("aic", "FIX", "wait RELEASE[1]", Span(file, 10, 13, 10, 49), "waiting"),
            Step("aiv1", "V", "set RELEASE[1]", site, "never"),
        ),
    )
    tile_swap = Finding(
        "303", "paired with another slot or round", Row.PAIRING, Severity.WARNING, "rounds come in another order",
        Span(file, 10, 13, 10, 49, via=(Span(file, 9, 9, 9, 27),)),
        witness=Witness((("n", 3), ("m", 0))), replayed=True,
    )  # fmt: skip
    lanes = Finding(
        "602", "sub-cores conflict", Row.PARTICIPANTS, Severity.ERROR, "both write x[0]", Span(file, 4, 9, 4, 40),
        suppressed="lanes are equal",
    )  # fmt: skip
    refuted = KernelReport(
        name="hand_over",
        file=file,
        line=2,
        target="a5",
        verdict=Verdict.REFUTED,
        seconds=0.214,
        parameters=("n", "m"),
        assumptions=("n >= 0", "need(i) is the same on every core"),
        checks=(
            Check(Row.SLOT_MAPPING, Verdict.PROVED, "qk: both sides t % 2, in [0, 2)"),
            Check(Row.EVENT_POSITION, Verdict.REFUTED, "FP206: 1 signal left | n = 0"),
            Check(Row.PAIRING, Verdict.PROVED, "2 channels"),
            Check(Row.COUNTS, Verdict.UNKNOWN, "not decided"),
            Check(Row.BOUNDARY, Verdict.PROVED, "n = 0, 1, 2, 3 run"),
            Check(Row.PARTICIPANTS, Verdict.REFUTED, "aiv0 and aiv1 write x[0]"),
            Check(Row.FIFO, Verdict.NOT_APPLICABLE, "no messages"),
        ),
        findings=(drain, tile_swap, lanes),
        unknown=(Undecided(Row.COUNTS, "the bound of the loop on line 9 is read from memory"),),
        source=SOURCE,
    )
    proved = KernelReport(
        "fine", file, 20, "a3", Verdict.PROVED, 12.0, ("n",), ("n >= 0",),
        (Check(Row.SLOT_MAPPING, Verdict.PROVED, "one slot"),),
    )  # fmt: skip
    vacuous = KernelReport(
        "nothing", "kernels/b.kir", 1, "a5", Verdict.VACUOUS, 0.0, (), (),
        (Check(Row.SLOT_MAPPING, Verdict.VACUOUS, "no values"),),
    )  # fmt: skip
    error = InputError("kernels/bad.kir", 3, 14, "expected a pipe after '@'", "    matmul x @ Q")
    return Report(
        (refuted, proved, vacuous), (error, InputError("gone.kir", 0, 0, "can't read the file: no such file"))
    )
