"""A file is written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tvm_ext.errors import ArtifactError
from tvm_ext.files import replacing


def test_takes_the_place_at_the_end_with_ordinary_rights(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    before = os.umask(0o027)
    try:
        with replacing(path) as stream:
            stream.write(b"new")
            assert path.read_text() == "old"
    finally:
        assert os.umask(before) == 0o027
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_an_exception_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path) as stream:
        stream.write(b"new")
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_no_such_folder(tmp_path: Path) -> None:
    message = r"can't write .*gone/a: No such file"
    with pytest.raises(ArtifactError, match=message), replacing(tmp_path / "gone" / "a"):
        pass
