"""Handwritten digits through a trained, quantised network on the accelerator: the same bits as
ONNX Runtime's?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import torch

import tvm_ext
from benchmarks import digits
from benchmarks.integer_session import integer_session
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.frontend.onnx_export import to_onnx

HEADER = (
    "data", "activations", "images", "all outputs equal", "largest difference, steps",
    "MACs on the accelerator", "float, right", "ONNX Runtime int8, right", "ours, right",
)  # fmt: skip
_CALIBRATION = 100
"""Training images that the quantiser sees."""


@dataclass(frozen=True)
class DigitsRow:
    """A data set's test images.

    Attributes
    ----------
    data, activations : str
        The data set, and the quantised type.
    images, equal : int
        How many, and those of which all ten outputs are ONNX Runtime's to the bit.
    steps : float
        The largest difference of an output, in steps of its quantisation.
    offloaded : float
        Share of the products that the accelerator computes.
    accuracies : (float, float, float)
        Of the float model, of the quantised one in ONNX Runtime, and in ours.
    """

    data: str
    activations: str
    images: int
    equal: int
    steps: float
    offloaded: float
    accuracies: tuple[float, float, float]


@dataclass(frozen=True)
class Trained:
    """A network that has learned digits.

    Attributes
    ----------
    data : str
        A name of `digits.DATA`.
    model : torch.nn.Module
    split : digits.Split
        It was trained on one part.
    """

    data: str
    model: torch.nn.Module
    split: digits.Split


def trained(data: str, epochs: int) -> Trained:
    """Train a network of four convolutions on four fifths of a data set."""
    split = next(digits.splits(data, 5))
    torch.manual_seed(0)
    model = digits.VggLike(16, stride=2 if data == "mnist" else 1)
    return Trained(data, digits.train(model, split, epochs, seed=0), split)


def measure(network: Trained, accelerator: Accelerator, activations: str) -> DigitsRow:
    """Quantise, build for the accelerator, and run the images that weren't trained on."""
    options = tvm_ext.QuantizeOptions(activations=activations)
    images, classes = (tensor.numpy() for tensor in network.split.test.tensors)
    typical = network.split.train.tensors[0].numpy()[:_CALIBRATION]
    program = torch.export.export(network.model, (torch.from_numpy(images[:1]),))
    model = to_onnx(tvm_ext.load_model(program))
    quantized = tvm_ext.quantize(model, [image[None] for image in typical], options)
    exe = tvm_ext.build(quantized, accelerator=accelerator, tuning="none")
    ours = np.concatenate([exe(image[None]) for image in images])
    theirs = _onnxruntime_results(quantized, images)
    with torch.no_grad():
        real = network.model(torch.from_numpy(images)).numpy()
    # Outputs are dequantised: whole steps apart.
    step = float(np.diff(np.unique(theirs)).min())
    gflop = sum(layer.gflop for layer in exe.plan if layer.device == "accelerator")
    macs = digits.count_macs(network.model, torch.from_numpy(images[:1]))
    return DigitsRow(
        network.data, activations, len(images), int((ours == theirs).all(1).sum()),
        float(np.abs(ours - theirs).max()) / step, gflop * 1e9 / (2 * macs),
        tuple(float((y.argmax(1) == classes).mean()) for y in (real, theirs, ours)),
    )  # fmt: skip


def cells(row: DigitsRow) -> list[str]:
    """A line under `HEADER`."""
    return [
        row.data, row.activations, f"{row.images:,}", f"{row.equal:,}", f"{row.steps:.0f}",
        f"{row.offloaded:.1%}", *(f"{accuracy:.1%}" for accuracy in row.accuracies),
    ]  # fmt: skip


def check(rows: Sequence[DigitsRow]) -> None:
    """Refuse rows that aren't bit-exact.

    Raises
    ------
    RuntimeError
        An output differs from ONNX Runtime's.
    """
    for row in rows:
        if row.equal < row.images:
            raise RuntimeError(
                f"{row.data}, {row.activations}: {row.images - row.equal} of {row.images} images "
                f"differ from ONNX Runtime, by up to {row.steps:.1f} steps"
            )


def _onnxruntime_results(model: onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    session = integer_session(model)
    (value,) = session.get_inputs()
    return np.concatenate([session.run(None, {value.name: image[None]})[0] for image in images])
