"""Saved models: they come back equal in another process, and damage is named."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests import models
from tvm_ext import artifact
from tvm_ext.errors import ArtifactError

_RUN_SAVED = """
import sys, numpy as np, tvm_ext
exe = tvm_ext.load(sys.argv[1])
np.save(sys.argv[3], exe(np.load(sys.argv[2])))
assert not {"onnxruntime", "pickle5"} & set(sys.modules)
"""

# Nothing but TVM: the library must not need this package.
_RUN_EXPORTED = """
import sys, numpy as np, tvm
from tvm import relax
library = tvm.runtime.load_module(sys.argv[1])
main = relax.VirtualMachine(library, tvm.cpu())["main"]
for _ in range(2):
    out = main(tvm.runtime.tensor(np.load(sys.argv[2])))
np.save(sys.argv[3], out.numpy())
assert "tvm_ext" not in sys.modules
"""


def _in_subprocess(script: str, model: Path, tmp_path: Path) -> np.ndarray:
    inputs = models.inputs_for(models.convnet())
    np.save(tmp_path / "x.npy", inputs["x"])
    subprocess.run(
        [sys.executable, "-c", script, str(model), "x.npy", "y.npy"], cwd=tmp_path, check=True
    )
    return np.load(tmp_path / "y.npy")


def test_loads_in_a_fresh_process(
    convnet: tvm_ext.Executable, convnet_file: Path, tmp_path: Path
) -> None:
    inputs = models.inputs_for(models.convnet())
    got = _in_subprocess(_RUN_SAVED, convnet_file, tmp_path)
    assert np.array_equal(got, convnet(inputs))
    want = models.oracle(models.convnet(), inputs)[0]
    assert models.relative_error(got, want) < models.RTOL


def test_exported_library_needs_only_tvm(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    library = convnet.export_library(tmp_path / "convnet.so")
    got = _in_subprocess(_RUN_EXPORTED, library, tmp_path)
    want = models.oracle(models.convnet(), models.inputs_for(models.convnet()))[0]
    assert models.relative_error(got, want) < models.RTOL
    assert sorted(p.name for p in tmp_path.iterdir()) == ["convnet.so", "x.npy", "y.npy"]


def test_a_loaded_model_is_the_same(convnet: tvm_ext.Executable, convnet_file: Path) -> None:
    loaded = tvm_ext.load(convnet_file)
    assert loaded.plan == convnet.plan
    assert loaded.program == convnet.program
    assert loaded.target == convnet.target
    assert (loaded.input_names, loaded.output_names) == (("x",), ("scores",))
    assert {row.name for row in loaded.profile(runs=1).rows} >= {"conv2d_0", "conv2d_1"}


def test_the_file_may_go_once_loaded(
    convnet: tvm_ext.Executable, convnet_file: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copy(convnet_file, tmp_path))
    loaded = tvm_ext.load(copy)
    copy.unlink()
    inputs = models.inputs_for(models.convnet())
    assert np.array_equal(loaded(inputs), convnet(inputs))


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


def test_members_are_stored_uncompressed_and_not_pickled(convnet_file: Path) -> None:
    with zipfile.ZipFile(convnet_file) as file:
        infos = {i.filename: i for i in file.infolist()}
        assert set(infos) == {
            "metadata.json", "plan.yaml", "program.json", "code.so", "constants.bin",
        }  # fmt: skip
        assert {i.compress_type for i in infos.values()} == {zipfile.ZIP_STORED}
        head = json.loads(file.read("metadata.json"))
    assert head["format"] == 1
    assert head["versions"] == artifact.versions()


def test_what_a_loaded_model_cannot_do(convnet_file: Path, tmp_path: Path) -> None:
    loaded = tvm_ext.load(convnet_file)
    with pytest.raises(ArtifactError, match="can't be saved again"):
        loaded.save(tmp_path / "again.tvmx")
    with pytest.raises(ArtifactError, match="can't be exported"):
        loaded.export_library(tmp_path / "again.so")
    with pytest.raises(ArtifactError, match="no assembly"):
        loaded.assembly()
    assert list(tmp_path.iterdir()) == []


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"can't read .*gone\.tvmx: No such file"):
        tvm_ext.load(tmp_path / "gone.tvmx")
    with pytest.raises(ArtifactError, match="can't read"):
        tvm_ext.load(tmp_path)
    (tmp_path / "text.tvmx").write_text("hello")
    with pytest.raises(ArtifactError, match="not a saved model"):
        tvm_ext.load(tmp_path / "text.tvmx")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("a", "b")
    with pytest.raises(ArtifactError, match=r"it has no metadata\.json"):
        tvm_ext.load(tmp_path / "other.zip")


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_truncated(convnet_file: Path, tmp_path: Path, keep: float) -> None:
    data = convnet_file.read_bytes()
    broken = tmp_path / "broken.tvmx"
    broken.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ArtifactError, match=r"broken\.tvmx is truncated"):
        tvm_ext.load(broken)


def test_a_flipped_byte_is_found_or_harmless(
    convnet: tvm_ext.Executable, convnet_file: Path, tmp_path: Path
) -> None:
    """A zip has bytes (dates, attributes) that no reader looks at."""
    data = bytearray(convnet_file.read_bytes())
    places = random.Random(5).sample(range(len(data)), 40) + list(range(len(data) - 80, len(data)))
    found = 0
    for place in places:
        broken = bytearray(data)
        broken[place] ^= 0x55
        path = tmp_path / "broken.tvmx"
        path.write_bytes(broken)
        try:
            loaded = tvm_ext.load(path)
        except ArtifactError as error:
            assert "broken.tvmx" in str(error)
            found += 1
        else:
            assert loaded.program == convnet.program
    assert found > 40


def _changed(source: Path, path: Path, **changes: Any) -> Path:
    """The same file with other metadata."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "metadata.json":
                data = json.dumps({**json.loads(data), **changes}).encode()
            new.writestr(name, data)
    return path


def test_other_versions(convnet_file: Path, tmp_path: Path) -> None:
    future = _changed(convnet_file, tmp_path / "future.tvmx", format=2)
    with pytest.raises(ArtifactError, match=r"format version 2; allowed: 1"):
        tvm_ext.load(future)
    old = _changed(
        convnet_file, tmp_path / "old.tvmx", versions={**artifact.versions(), "apache-tvm": "0.1"}
    )
    with pytest.raises(ArtifactError, match=r"made with apache-tvm 0\.1; installed: 0\.27"):
        tvm_ext.load(old)


def test_other_cpu(convnet_file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(convnet_file) as file:
        head = json.loads(file.read("metadata.json"))
    better = _changed(convnet_file, tmp_path / "better.tvmx", features=[*head["features"], "avx99"])
    with pytest.raises(ArtifactError, match=r"another kind of CPU.*lacks: avx99"):
        tvm_ext.load(better)
    llvm = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}
    arm = _changed(
        convnet_file, tmp_path / "arm.tvmx", target={**head["target"], "llvm": llvm, "isa": "neon"}
    )
    with pytest.raises(ArtifactError, match="another kind of CPU, neoverse-n1"):
        tvm_ext.load(arm)


def test_no_compiler_writes_nothing(
    convnet: tvm_ext.Executable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    for write in (convnet.save, convnet.export_library):
        with pytest.raises(ArtifactError, match="needs a C compiler"):
            write(tmp_path / "never")
    assert list(tmp_path.iterdir()) == []


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
