"""Are the settings of a project found, read and checked?"""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.config import Config, ConfigError, load
from fencepost.findings import Severity

ALL = """
[tool.fencepost]
target = "a3"
select = ["2", "FP304"]
ignore = ["fp307"]
severity = { FP305 = "warning" }
exclude = ["*_draft.kir"]
assume = ["n >= 0"]
timeout = 5
jobs = 2
baseline = "base.json"
"""


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text, "utf-8")
    return folder


def test_every_key(tmp_path: Path) -> None:
    write(tmp_path, ALL)
    assert load(tmp_path) == Config(
        target="a3",
        select=("2", "304"),
        ignore=("307",),
        severity={"305": Severity.WARNING},
        exclude=("*_draft.kir",),
        assume=("n >= 0",),
        timeout=5.0,
        jobs=2,
        baseline=tmp_path / "base.json",
    )


def test_the_nearest_table_counts(tmp_path: Path) -> None:
    write(tmp_path, ALL)
    below = write(tmp_path / "a" / "b", "[project]\nname = 'fencepost-user'\n")
    assert load(below / "c").target == "a3"
    write(below, '[tool.fencepost]\ntarget = "a2"\n')
    assert load(below).target == "a2"


def test_a_word_in_a_path_is_no_table(tmp_path: Path) -> None:
    write(tmp_path, "[tool.other]\nfencepost = 1\n")
    assert load(tmp_path) == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.fencepost]\nselct = ["2"]', "no key 'selct'; did you mean 'select'"),
        ('[tool.fencepost]\ntarget = "a9"', "target: expected one of a5, a3, a2"),
        ('[tool.fencepost]\nselect = "2"', "select: expected a list of strings"),
        ('[tool.fencepost]\nselect = ["two"]', "select: 'two' is not a code"),
        ('[tool.fencepost]\nignore = ["FP999"]', "ignore: no rule has the code FP999; did you mean FP9"),
        ('[tool.fencepost]\nselect = ["39"]', "select: no rule has the code FP39; did you mean FP3"),
        ('[tool.fencepost]\nseverity = { 399 = "note" }', "severity: no rule has the code FP399"),
        ("[tool.fencepost]\ntimeout = 1e400", "timeout: expected a positive number"),
        (f"[tool.fencepost]\ntimeout = {10**400}", "timeout: expected a positive number"),
        ("[tool.fencepost]\ntimeout = 0", "timeout: expected a positive number"),
        ("[tool.fencepost]\ntimeout = nan", "timeout: expected a positive number"),
        ("[tool.fencepost]\njobs = true", "jobs: expected a number of processes"),
        ('[tool.fencepost]\nseverity = { 206 = "fatal" }', "'fatal' is not a severity"),
        ("[tool.fencepost]\nexclude = [1]", "exclude: expected a list of strings"),
        ("[tool]\nfencepost = 3", "tool.fencepost is not a table"),
        ("[tool.fencepost", "pyproject.toml: "),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)
