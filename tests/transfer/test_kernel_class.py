"""Kernels of a model by the sequence of their operators."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import relax

from tests.passes.relax_models import array, const, module
from tests.transfer.programs import conv_layer
from tvm_ext.errors import TuningError
from tvm_ext.transfer.kernel_class import KernelClasses, kernel_classes
from tvm_ext.transfer.kernel_class_ops import class_ops


def network(emit: Any, x: Any) -> Any:
    """Three equal convolutions with relu, one of another shape, one bare, a softmax, a product."""
    for seed in range(3):
        y = emit(relax.op.nn.conv2d(x, const(array(seed, 8, 8, 3, 3)), padding=1))
        x = emit(relax.op.nn.relu(y))
    x = emit(relax.op.nn.softmax(x, -1))
    y = emit(relax.op.nn.conv2d(x, const(array(4, 16, 8, 1, 1)), strides=2))
    x = emit(relax.op.nn.relu(y))
    x = emit(relax.op.nn.conv2d(x, const(array(5, 4, 16, 1, 1))))
    x = emit(relax.op.reshape(x, (1, 64)))
    return relax.op.matmul(x, const(array(6, 64, 10)))


MODEL = module({"x": (1, 8, 8, 8)}, network)


@pytest.fixture(scope="module")
def found() -> KernelClasses:
    return kernel_classes(MODEL)


def test_equal_kernels_count_as_one(found: KernelClasses) -> None:
    assert [k.letter for k in found.kernels] == ["A", "B", "A", "C", "D"]
    assert [len(k.layers) for k in found.kernels] == [3, 1, 1, 1, 1]
    assert found.letters[("nn.conv2d", "nn.relu")] == "A"
    assert found.counts[("nn.conv2d", "nn.relu")] == 2


def test_shapes_and_strides(found: KernelClasses) -> None:
    third = found.kernels[2]
    assert third.input_shape == (1, 8, 8, 8)
    assert third.weight_shape == (16, 8, 1, 1)
    assert third.strides == (2, 2)
    assert found.kernels[-1].weight_shape == (64, 10)
    assert found.kernels[-1].strides == ()


def test_estimated_shares_add_up(found: KernelClasses) -> None:
    assert found.basis == "estimated"
    assert sum(k.share for k in found.kernels) == pytest.approx(1)
    assert sum(found.shares.values()) == pytest.approx(1)


def test_measured_shares_and_the_row(found: KernelClasses) -> None:
    names = [name for kernel in found.kernels for name in kernel.layers]
    # Three convolutions of 1 s, a softmax of 2 s, and 5 s for the others: 10 s.
    times = dict(zip(names, [1, 1, 1, 2, 3, 1, 1], strict=True))
    measured = kernel_classes(MODEL, times=times)
    assert measured.basis == "measured"
    assert [k.share for k in measured.kernels] == pytest.approx([0.3, 0.2, 0.3, 0.1, 0.1])
    assert measured.row() == "A (2, 60%); B (1, 20%); C (1, 10%); D (1, 10%)"


def test_letters_go_on_from_another_model(found: KernelClasses) -> None:
    letters = {("nn.softmax",): "A", ("nn.dense",): "C"}
    again = kernel_classes(MODEL, letters=letters)
    assert [k.letter for k in again.kernels] == ["B", "A", "B", "D", "E"]


def test_after_z_comes_aa() -> None:
    letters = {(str(i),): chr(ord("A") + i) for i in range(26)}
    again = kernel_classes(MODEL, letters=letters)
    assert [k.letter for k in again.kernels] == ["AA", "AB", "AA", "AC", "AD"]
    assert again.row().startswith("AA (2, ")


def test_the_table_names_operators_and_uses(found: KernelClasses) -> None:
    text = str(found)
    assert "share of untuned time estimated" in text
    (line,) = [x for x in text.splitlines() if "16x8x1x1" in x]
    cells = [cell.strip() for cell in line.split("│")]
    assert cells[1:8] == ["3", "A", "conv2d relu", "1x8x8x8", "16x8x1x1", "2x2", "1"]


def test_convolutions_of_several_groups_are_classes_of_their_own() -> None:
    names = [class_ops(conv_layer(8, 8, groups=groups, epilogue=("relu",))) for groups in (1, 2, 8)]
    assert names == [
        ("nn.conv2d", "nn.relu"),
        ("nn.conv2d_grouped", "nn.relu"),
        ("nn.conv2d_depthwise", "nn.relu"),
    ]


@pytest.mark.parametrize(
    ("seconds", "message"),
    [(None, "no time for layer"), (float("nan"), "time nan s; allowed"), (-1.0, "time -1.0 s")],
)
def test_bad_times_are_refused(found: KernelClasses, seconds: float | None, message: str) -> None:
    times = {name: 1.0 for kernel in found.kernels for name in kernel.layers}
    name = found.kernels[0].layers[0]
    if seconds is None:
        del times[name]
    else:
        times[name] = seconds
    with pytest.raises(TuningError, match=message):
        kernel_classes(MODEL, times=times)
