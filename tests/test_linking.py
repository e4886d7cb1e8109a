"""Shared libraries: one for TVM's own runtime, and clear refusals where none can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

import tvm_ext
from tests import models
from tests.subprocesses import in_subprocess
from tvm_ext.errors import ArtifactError

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


def test_exported_library_needs_only_tvm(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    library = convnet.export_library(tmp_path / "convnet.so")
    got = in_subprocess(_RUN_EXPORTED, library, tmp_path)
    want = models.oracle(models.convnet(), models.inputs_for(models.convnet()))[0]
    assert models.relative_error(got, want) < models.RTOL
    assert sorted(p.name for p in tmp_path.iterdir()) == ["convnet.so", "x.npy", "y.npy"]


def test_what_a_loaded_model_cannot_do(convnet_file: Path, tmp_path: Path) -> None:
    loaded = tvm_ext.load(convnet_file)
    with pytest.raises(ArtifactError, match="can't be saved again"):
        loaded.save(tmp_path / "again.tvmx")
    with pytest.raises(ArtifactError, match="can't be exported"):
        loaded.export_library(tmp_path / "again.so")
    with pytest.raises(ArtifactError, match="no assembly"):
        loaded.assembly()
    assert list(tmp_path.iterdir()) == []


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
