"""Files of other versions and for other CPUs are refused by name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import tvm_ext
from tvm_ext.artifact.compatibility import versions
from tvm_ext.errors import ArtifactError


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
        convnet_file, tmp_path / "old.tvmx", versions={**versions(), "apache-tvm": "0.1"}
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
