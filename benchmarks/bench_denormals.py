"""What subnormal numbers cost: single operators on ordinary and on subnormal data.

Run ``python -m benchmarks.bench_denormals [--write]``. One thread. Processors take a slow path for
subnormal numbers; flushing them to zero would be quick and wrong, so each result is checked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console

from benchmarks import results
from benchmarks.engines import Engine, onnxruntime_engine
from benchmarks.harness import compare
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads

HEADER = (
    "operator", "subnormal", "ours, ms", "subnormal, ms", "ratio", "ONNX Runtime, ms",
    "subnormal, ms", "ratio", "our error, quanta", "theirs",
)  # fmt: skip
_QUANTUM = float(np.finfo("float32").smallest_subnormal)
_MAP, _FEATURES, _FLAT = (1, 64, 28, 28), (128, 256), (256, 1024)
_WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}


def _normal(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _gelu(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return x / 2 * (1 + erf(x / np.sqrt(2)))


@dataclass
class Case:
    """One operator with ordinary and with subnormal data.

    Attributes
    ----------
    exact : callable, optional
        The operator in float64; without it the operator is linear in each input, and its result on
        the ordinary data is scaled.
    scales : tuple of float
        The subnormal data are the ordinary ones times these: input, weights.
    subnormal : ndarray, optional
        Other data than scaled ones.
    """

    name: str
    what: str
    op: str
    x: np.ndarray
    w: np.ndarray | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    scales: tuple[float, float] = (1e-39, 1.0)
    subnormal: np.ndarray | None = None
    exact: Callable[[np.ndarray], np.ndarray] | None = None


def cases() -> list[Case]:
    """Convolution, product, pools, softmax and activations; inputs, or what is made of them."""
    conv, product = _normal((64, 64, 3, 3), 1) / 24, _normal((256, 256), 1) / 16
    same = {"pads": [1] * 4}
    x, matrix, rows, flat = (_normal(s) for s in (_MAP, _FEATURES, _FLAT, _FLAT))
    far = np.random.default_rng(2).uniform(-102, -88, _FLAT).astype("float32")
    masked = far.copy()
    masked[:, 0] = 0
    both = (1e-20, 1e-20)
    inputs, products, sums = "inputs", "products", "results"
    return [
        Case("Conv 3x3, 64x28x28", inputs, "Conv", x, conv, same),
        Case("Conv 3x3, 64x28x28", products, "Conv", x, conv, same, scales=both),
        Case("MatMul 128x256x256", inputs, "MatMul", matrix, product),
        Case("MatMul 128x256x256", products, "MatMul", matrix, product, scales=both),
        Case("MaxPool 3x3", inputs, "MaxPool", x, attrs=_WINDOW),
        Case("AveragePool 3x3", inputs, "AveragePool", x, attrs=_WINDOW),
        Case("Softmax", inputs, "Softmax", rows, exact=_softmax),
        Case("Softmax", sums, "Softmax", rows, subnormal=masked, exact=_softmax),
        Case("Sigmoid", inputs, "Sigmoid", flat, exact=_sigmoid),
        Case("Sigmoid", sums, "Sigmoid", flat, subnormal=far, exact=_sigmoid),
        Case("Exp", inputs, "Exp", flat, exact=np.exp),
        Case("Exp", sums, "Exp", flat, subnormal=far, exact=np.exp),
        Case("Gelu", inputs, "Gelu", flat, exact=_gelu),
    ]


def _model(case: Case, w: np.ndarray | None) -> onnx.ModelProto:
    node = helper.make_node(case.op, ["x"] if w is None else ["x", "w"], ["y"], **case.attrs)
    graph = helper.make_graph(
        [node],
        "operator",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, case.x.shape)],
        [onnx.ValueInfoProto(name="y")],
        [] if w is None else [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _engines(case: Case, x: np.ndarray, w: np.ndarray | None, folder: Path) -> dict[str, Engine]:
    import tvm_ext

    path = folder / "operator.onnx"
    model = _model(case, w)
    onnx.save(model, str(path))
    executable = tvm_ext.build(model)
    return {"ours": lambda: executable(x), "ort": onnxruntime_engine(path, {"x": x}, 1)}


def row(case: Case) -> list[str]:
    """Times, ratios, and errors on the subnormal data."""
    scale_x, scale_w = case.scales
    x = case.x * np.float32(scale_x) if case.subnormal is None else case.subnormal
    w = None if case.w is None else case.w * np.float32(scale_w)
    with tempfile.TemporaryDirectory() as folder:
        engines = _engines(case, case.x, case.w, Path(folder))
        ordinary = engines["ort"]()[0].astype("float64")
        slow = _engines(case, x, w, Path(folder))
        engines.update({f"{name} subnormal": engine for name, engine in slow.items()})
        times = compare(engines, rounds=9, min_time_s=0.05, settle_s=0.08)
        outputs = [_only(engines[f"{name} subnormal"]()) for name in ("ours", "ort")]
    exact = ordinary * scale_x * scale_w
    if case.exact is not None:
        exact = case.exact(x.astype("float64"))
    cells = [case.name, case.what]
    for name in ("ours", "ort"):
        pair = (name, f"{name} subnormal")
        cells += [f"{times.median(n) * 1e3:.3f}" for n in pair]
        cells.append(f"{times.ratio(pair[1], pair[0]):.2f}")
    return [*cells, *(f"{_quanta(y, exact):.0f}" for y in outputs)]


def _quanta(result: np.ndarray, exact: np.ndarray) -> float:
    """Largest error, in smallest subnormal numbers, beyond the rounding of ordinary numbers."""
    error = np.abs(result.astype("float64") - exact) - 1e-6 * np.abs(exact)
    return float(np.maximum(error, 0).max() / _QUANTUM)


def _only(outputs: Any) -> np.ndarray:
    return np.asarray(outputs[0] if isinstance(outputs, list) else outputs)


@click.command()
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(write: bool) -> None:
    """Time every operator on ordinary and on subnormal data."""
    prepare_tvm_threads(1)
    machine = describe_machine()
    table = results.markdown_table(HEADER, [row(case) for case in cases()])
    body = (
        f"## Subnormal numbers, 1 thread\n\n`python -m benchmarks.bench_denormals` on "
        f"{machine['cpu']}, {', '.join(machine['isa'])}. The same operator on ordinary and on "
        "subnormal inputs, on inputs of 1e-20 under weights of 1e-20, or where the results are "
        "subnormal; runs of both, ours and ONNX Runtime's, in turn. Errors are those "
        "beyond a relative 1e-6, in smallest subnormal numbers.\n\n" + table
    )
    Console().print(body, markup=False)
    if write:
        results.write_section("denormals", body)


if __name__ == "__main__":
    main()
