"""Are the sources behind paths found, decoded, and each only once?"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from fencepost.discover import Source, decode, discover
from fencepost.findings import InputError

SUFFIXES = (".kir", ".py")


def names(path: Path, **more: object) -> list[str]:
    found = list(discover([str(path)], SUFFIXES, **more))  # type: ignore[arg-type]
    assert all(isinstance(s, Source) for s in found), found
    return [os.path.relpath(s.file, path) for s in found]


def put(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_folder_in_stable_order_without_the_rest(tmp_path: Path) -> None:
    for name in ("b.kir", "a.py", "c.txt", "sub/z.kir", "sub/deep/y.kir", ".git/h.py", "__pycache__/p.py", "env/e.py"):
        put(tmp_path / name)
    put(tmp_path / "env" / "pyvenv.cfg")
    assert names(tmp_path) == ["a.py", "b.kir", "sub/z.kir", "sub/deep/y.kir"]
    assert names(tmp_path, exclude=["sub/deep/*", "a*"]) == ["b.kir", "sub/z.kir"]


def test_names_below_the_current_folder_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "sub" / "k.kir")
    monkeypatch.chdir(tmp_path)
    assert [s.file for s in discover(["."], SUFFIXES)] == [os.path.join("sub", "k.kir")]


def test_a_loop_of_folders_ends(tmp_path: Path) -> None:
    put(tmp_path / "a" / "k.kir")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "ring.kir").symlink_to(tmp_path / "ring.kir")
    found = list(discover([str(tmp_path)], SUFFIXES))
    assert [type(f) for f in found] == [InputError, Source]
    assert "ring.kir" in found[0].file


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = put(tmp_path / "k.kir")
    (tmp_path / "again.kir").symlink_to(path)
    assert len(list(discover([str(path), str(tmp_path), str(path)], SUFFIXES))) == 1


def test_what_cannot_be_read_is_an_error_and_the_rest_comes(tmp_path: Path) -> None:
    put(tmp_path / "good.kir")
    found = list(discover([str(tmp_path / "gone.kir"), "bad\0name", str(tmp_path / "good.kir"), os.devnull], SUFFIXES))
    assert [type(f) for f in found] == [InputError, InputError, Source, InputError]
    assert "No such file" in found[0].message  # type: ignore[union-attr]


def test_a_pipe_in_a_folder_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.kir")
    put(tmp_path / "k.kir")
    assert names(tmp_path) == ["k.kir"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfa\r\nb\rc")))
    (source,) = discover(["-"], SUFFIXES, stdin_name="k.kir")
    assert source == Source("k.kir", "a\nb\nc", alone=True)


@pytest.mark.parametrize(
    ("data", "file", "text"),
    [
        (b"\xef\xbb\xbfx", "a.kir", "x"),
        (b"\xef\xbb\xbf# coding: utf-8\nx", "a.py", "# coding: utf-8\nx"),
        (b"# coding: latin-1\n\xe9", "a.py", "# coding: latin-1\né"),
        ("é".encode(), "a.kir", "é"),
        (b"", "a.kir", ""),
        (b"a\r\n\r\nb\r", "a.kir", "a\n\nb\n"),
    ],
)
def test_decoding(data: bytes, file: str, text: str) -> None:
    assert decode(data, file) == text


@pytest.mark.parametrize(
    ("data", "file", "message"),
    [
        (b"ab\nc\xff", "a.kir", "not UTF-8 text: byte 0xff at line 2, byte 2"),
        (b"# coding: latin-1\n\xff", "a.kir", "not UTF-8 text"),
        (b"# coding: nonsense\n\xff", "a.py", "not UTF-8 text"),
    ],
)
def test_what_is_not_text_is_told(data: bytes, file: str, message: str) -> None:
    with pytest.raises(ValueError, match="not UTF-8 text") as caught:
        decode(data, file)
    assert message in str(caught.value)


def test_a_link_to_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "k.kir").symlink_to("gone.kir")
    for path in (tmp_path, tmp_path / "k.kir"):
        (error,) = discover([str(path)], (".kir",))
        assert isinstance(error, InputError)
        assert error.message == "can't read the file: it is a link to 'gone.kir', which does not exist"
