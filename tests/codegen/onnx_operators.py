"""One quantised ONNX operator, run by ONNX Runtime: the oracle of int8 arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from benchmarks.integer_session import integer_session

MICROSOFT = "com.microsoft"


def one_operator(
    op: str,
    data: Mapping[int, np.ndarray],
    constants: Mapping[int, np.ndarray],
    domain: str = "",
    **attributes: Any,
) -> ModelProto:
    """A model of one operator; `data` and `constants` are its inputs by position."""
    dtype = next(iter(data.values())).dtype
    names = [f"i{i}" for i in range(max([*data, *constants]) + 1)]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], domain=domain, **attributes)],
        op,
        [
            helper.make_tensor_value_info(
                names[i], helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for i, x in data.items()
        ],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(dtype), None)],
        [numpy_helper.from_array(np.asarray(x), names[i]) for i, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def onnxruntime_result(
    op: str,
    data: Mapping[int, np.ndarray],
    constants: Mapping[int, Any],
    domain: str = "",
    **attributes: Any,
) -> np.ndarray:
    """What ONNX Runtime computes for one operator."""
    arrays = {i: np.asarray(x) for i, x in constants.items()}
    model = one_operator(op, data, arrays, domain, **attributes)
    feeds = {f"i{i}": x for i, x in data.items()}
    result: np.ndarray = integer_session(model).run(None, feeds)[0]
    return result


def quantization(rng: np.random.Generator, dtype: str, low: float = 0.01, high: float = 0.1) -> Any:
    """A random scale and zero point."""
    limits = np.iinfo(dtype)
    zero = np.array(rng.integers(limits.min, limits.max + 1), dtype)
    return np.float32(rng.uniform(low, high)), zero


def integers(rng: np.random.Generator, shape: Sequence[int], dtype: str = "int8") -> np.ndarray:
    """All values equally often."""
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
