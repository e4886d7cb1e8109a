"""Saving: what the file holds, and what a failure leaves behind."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import tvm_ext
from tests import models
from tvm_ext.artifact.compatibility import versions
from tvm_ext.errors import ArtifactError


def test_members_are_stored_uncompressed_and_not_pickled(convnet_file: Path) -> None:
    with zipfile.ZipFile(convnet_file) as file:
        infos = {i.filename: i for i in file.infolist()}
        assert set(infos) == {
            "metadata.json", "plan.yaml", "program.json", "code.so", "constants.bin",
        }  # fmt: skip
        assert {i.compress_type for i in infos.values()} == {zipfile.ZIP_STORED}
        head = json.loads(file.read("metadata.json"))
    assert head["format"] == 1
    assert head["versions"] == versions()


def test_no_temporary_files_stay_behind(
    convnet: tvm_ext.Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = convnet.save(tmp_path / "a.tvmx")
    tvm_ext.load(path)(models.inputs_for(models.convnet()))
    assert list(scratch.iterdir()) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tvmx", "scratch"]


def test_a_failure_keeps_the_old_file(
    convnet: tvm_ext.Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.tvmx"
    path.write_text("old")
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(ArtifactError, match="can't link"):
        convnet.save(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.tvmx"]


def test_unwritable_folder(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"can't write .*model\.tvmx: No such file"):
        convnet.save(tmp_path / "missing" / "model.tvmx")
