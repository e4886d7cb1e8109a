"""Models that several test files share, built once a session."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tvm_ext
from tests import models
from tvm_ext import target

# PyTorch's threads, which TVM's aren't: two test processes share the cores, where threads that
# wait for each other by spinning take ten times as long. Set before anything imports PyTorch;
# processes that tests start have it, too.
os.environ.setdefault("MKL_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def convnet() -> tvm_ext.Executable:
    return tvm_ext.build(models.convnet())


@pytest.fixture(scope="session")
def two_inputs() -> tvm_ext.Executable:
    return tvm_ext.build(models.two_inputs())


@pytest.fixture(scope="session")
def convnet_onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "convnet.onnx"
    path.write_bytes(models.convnet().SerializeToString())
    return path


@pytest.fixture(scope="session")
def convnet_file(convnet: tvm_ext.Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convnet.save(tmp_path_factory.mktemp("saved") / "convnet.tvmx")


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose measured peak and bandwidth don't change between runs, as its plans would."""
    monkeypatch.setattr(target, "_measured", lambda _: (100e9, 10e9))
