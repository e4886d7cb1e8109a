"""Loading: saved models come back equal in another process, and damage is named."""

from __future__ import annotations

import random
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tvm_ext
from tests import models
from tests.subprocesses import in_subprocess
from tvm_ext.artifact.read import is_artifact
from tvm_ext.errors import ArtifactError

_RUN_SAVED = """
import sys, numpy as np, tvm_ext
exe = tvm_ext.load(sys.argv[1])
np.save(sys.argv[3], exe(np.load(sys.argv[2])))
assert not {"onnxruntime", "pickle5"} & set(sys.modules)
"""


def test_loads_in_a_fresh_process(
    convnet: tvm_ext.Executable, convnet_file: Path, tmp_path: Path
) -> None:
    inputs = models.inputs_for(models.convnet())
    got = in_subprocess(_RUN_SAVED, convnet_file, tmp_path)
    assert np.array_equal(got, convnet(inputs))
    want = models.oracle(models.convnet(), inputs)[0]
    assert models.relative_error(got, want) < models.RTOL


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


def test_is_artifact(convnet_file: Path, convnet_onnx: Path, tmp_path: Path) -> None:
    assert is_artifact(convnet_file)
    assert not is_artifact(convnet_onnx)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("a", "b")
    assert not is_artifact(tmp_path / "other.zip")
