"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import models
from tests.schedules.kernels import HOST
from tests.transfer.fork_servers import shared_fork_servers
from tests.transfer.programs import record
from tvm_ext import threads
from tvm_ext.grouped_model import grouped
from tvm_ext.transfer.bank import Bank, Provenance
from tvm_ext.transfer.tensor_program import LayerProgram, tensor_program

__all__ = ["all_threads", "bank_file", "pooled_onnx", "shared_fork_servers"]


@pytest.fixture
def all_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo --threads."""
    before = threads.default_threads()
    # Start the pool with all of them: it never grows.
    threads.use(before)
    monkeypatch.setenv("TVM_NUM_THREADS", str(before))
    yield
    threads.use(before)


@pytest.fixture(scope="session")
def pooled_onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose product has a kernel of its own."""
    path = tmp_path_factory.mktemp("models") / "pooled.onnx"
    path.write_bytes(models.convnet(pooled=True).SerializeToString())
    return path


@pytest.fixture(scope="session")
def bank_file(pooled_onnx: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of the model's first convolution and of its product, which promise much."""
    layers = {layer.name: layer for layer in grouped(pooled_onnx, HOST).layers}
    bank = Bank(str(HOST.llvm["mcpu"]))
    for name in ("conv2d_0", "matmul_6"):
        made = tensor_program(layers[name])
        assert isinstance(made, LayerProgram)
        bank.add([replace(record(made, 1e-9), target=bank.mcpu)], Provenance("convnet, search", 1))
    path = tmp_path_factory.mktemp("bank") / "bank.jsonl.gz"
    bank.save(path)
    return path
