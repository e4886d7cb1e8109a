"""`load_model` of saved Relay modules, and of Relax modules that this TVM saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm

import tvm_ext
from tvm_ext.errors import InputShapeError, ModelError
from tvm_ext.frontend import load_model
from tvm_ext.frontend.relay.params import write_relay_params

MODULE = """#[version = "0.0.5"]
def @main(%data: Tensor[(?, 3), float32], %weight: Tensor[(4, 3), float32]) {
  %0 = nn.dense(%data, %weight, units=4);
  (nn.relu(%0), %0)
}
"""
WEIGHT = np.arange(12, dtype="float32").reshape(4, 3) - 5
DATA = np.array([[1, -2, 3], [0.5, 0, -1]], "float32")
SHAPES = {"data": (2, 3)}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "old.relay.txt"
    path.write_text(MODULE)
    return path


def check(mod: tvm.IRModule) -> None:
    assert [param.name for param in mod["main"].params] == ["data"]
    product = DATA @ WEIGHT.T
    first, second = tvm_ext.build(mod)(DATA)
    np.testing.assert_allclose(first, np.maximum(product, 0), rtol=1e-6)
    np.testing.assert_allclose(second, product, rtol=1e-6)


def test_parameters_from_every_source(text: Path, tmp_path: Path) -> None:
    saved, packed = tmp_path / "old.params", tmp_path / "old.npz"
    write_relay_params(saved, {"weight": WEIGHT})
    np.savez(packed, weight=WEIGHT)
    mod = load_model(text, SHAPES, saved)
    check(mod)
    for params in ({"weight": WEIGHT}, str(saved), packed):
        tvm.ir.assert_structural_equal(load_model(str(text), SHAPES, params), mod)
    first, _ = tvm_ext.build(text, input_shapes=SHAPES, params=saved)(DATA)
    np.testing.assert_allclose(first, np.maximum(DATA @ WEIGHT.T, 0), rtol=1e-6)


def test_saved_relax(text: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    path.write_text(tvm.ir.save_json(load_model(text, SHAPES, {"weight": WEIGHT})))
    check(load_model(path))


def test_errors(text: Path, tmp_path: Path) -> None:
    with pytest.raises(InputShapeError, match=r"'data', dimension 0 is dynamic"):
        load_model(text)
    with pytest.raises(ModelError, match=r"unknown names \['wait'\]"):
        load_model(text, SHAPES, {"wait": WEIGHT})
    with pytest.raises(ModelError, match=r"gone\.params: can't be read: No such file"):
        load_model(text, SHAPES, tmp_path / "gone.params")
    with pytest.raises(ModelError, match=r"gone\.json: no such file"):
        load_model(tmp_path / "gone.json")
    text.write_text(MODULE[: len(MODULE) // 2])
    with pytest.raises(ModelError, match=r"old\.relay\.txt"):
        load_model(text, SHAPES)
    text.write_text("nothing of the kind")
    with pytest.raises(ModelError, match=r"begins neither as a Relay module .* nor as a Relax"):
        load_model(text)
    text.with_suffix(".json").write_text('{"root_index": 0, "nodes": [{"type": "None"}]}')
    with pytest.raises(ModelError, match=r"old\.relay\.json: "):
        load_model(text.with_suffix(".json"))
