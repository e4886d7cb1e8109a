"""Float ONNX models to int8, by ONNX Runtime's static quantiser."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from google.protobuf.message import DecodeError

from tvm_ext.codegen.errors import QuantizationError
from tvm_ext.errors import MissingPackageError, ModelError, OptionError

Sample = Mapping[str, np.ndarray] | Sequence[np.ndarray] | np.ndarray
_ALLOWED = {
    "form": ("QDQ", "QOperator"),
    "activations": ("int8", "uint8"),
    "weights": ("int8",),
    "calibration": ("minmax", "entropy", "percentile"),
}
# The first version of the standard operators whose DequantizeLinear has an axis.
_AXES_SINCE = 13
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True)
class QuantizeOptions:
    """How a model is quantised.

    Attributes
    ----------
    form : str
        ``"QDQ"``: float operators between DequantizeLinear and QuantizeLinear. ``"QOperator"``:
        QLinearConv and its like.
    activations : str
        int8 or uint8, one scale and zero point a tensor.
    weights : str
        int8, symmetric.
    per_channel : bool
        Whether weights have one scale an output channel.
    calibration : str
        Ranges of activations: ``"minmax"`` of all that is seen, ``"entropy"`` or ``"percentile"``
        of its distribution.

    Raises
    ------
    OptionError
        At construction: an option has a value that isn't allowed.
    """

    form: str = "QDQ"
    activations: str = "int8"
    weights: str = "int8"
    per_channel: bool = True
    calibration: str = "minmax"

    def __post_init__(self) -> None:
        for option, allowed in _ALLOWED.items():
            value = getattr(self, option)
            if value not in allowed:
                raise OptionError(f"{option}={value!r}; allowed: {', '.join(allowed)}")
        if not isinstance(self.per_channel, bool):
            raise OptionError(f"per_channel={self.per_channel!r}; allowed: True, False")


def quantize(
    model: str | os.PathLike[str] | onnx.ModelProto,
    calibration_data: Iterable[Sample] | None = None,
    options: QuantizeOptions | None = None,
) -> onnx.ModelProto:
    """Quantise a float model; needs ``pip install 'tvm_ext[quantize]'``.

    Batch norms are folded into convolutions first.

    Parameters
    ----------
    model : path or onnx.ModelProto
        It isn't changed. One that is quantised already is returned as it is.
    calibration_data : iterable
        Typical inputs: dicts by input name, sequences in the order of the inputs, or arrays where
        there is one input. Each sample is run once; a hundred are usually enough.
    options : QuantizeOptions, optional

    Returns
    -------
    onnx.ModelProto
        The quantised model; its inputs and outputs are float, as before.

    Raises
    ------
    QuantizationError
        A float model without calibration data, data that don't fit the model's inputs or aren't
        finite, or the quantiser fails.
    ModelError
        The file can't be read.
    MissingPackageError
        onnxruntime isn't installed.
    """
    loaded = model if isinstance(model, onnx.ModelProto) else _read(model)
    if any(node.op_type in _QUANTIZED or "QLinear" in node.op_type for node in loaded.graph.node):
        return loaded
    if calibration_data is None:
        raise QuantizationError(
            "the model is float and there is no calibration data; give typical inputs as "
            "calibration_data, or a model that is quantised"
        )
    chosen = options or QuantizeOptions()
    samples = _samples(loaded, calibration_data)
    first = next(samples, None)
    if first is None:
        raise QuantizationError("calibration_data is empty; allowed: one sample or more")
    return _quantized(loaded, _Reader(first, samples), chosen)


class _Reader:
    """Samples, one at a time, as the quantiser asks for them."""

    def __init__(self, first: dict[str, np.ndarray], rest: Iterator[dict[str, np.ndarray]]) -> None:
        self._first: dict[str, np.ndarray] | None = first
        self._rest = rest

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next sample, None at the end."""
        first, self._first = self._first, None
        return next(self._rest, None) if first is None else first


def _read(path: str | os.PathLike[str]) -> onnx.ModelProto:
    try:
        return onnx.load(path, format="protobuf")
    except (OSError, ValueError, DecodeError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{path} can't be read: {error}") from error


def _samples(model: onnx.ModelProto, data: Iterable[Sample]) -> Iterator[dict[str, np.ndarray]]:
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {v.name: v for v in model.graph.input if v.name not in weights}
    for number, sample in enumerate(data):
        named = _by_name(sample, list(inputs), number)
        yield {name: _checked(inputs[name], named[name], number) for name in inputs}


def _by_name(sample: Sample, names: list[str], number: int) -> Mapping[str, Any]:
    if isinstance(sample, Mapping):
        if set(sample) != set(names):
            raise QuantizationError(
                f"calibration sample {number} has inputs {sorted(sample)}; the model has {names}"
            )
        return sample
    arrays = list(sample) if isinstance(sample, (list, tuple)) else [sample]
    if len(arrays) != len(names):
        raise QuantizationError(
            f"calibration sample {number} has {len(arrays)} arrays; the model has inputs {names}"
        )
    return dict(zip(names, arrays, strict=True))


def _checked(value: onnx.ValueInfoProto, data: Any, number: int) -> np.ndarray:
    array = np.asarray(data)
    tensor = value.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    fits = array.ndim == len(dims) and all(
        d in (None, n) for d, n in zip(dims, array.shape, strict=True)
    )
    what = f"calibration sample {number}, input {value.name!r}"
    if array.dtype != dtype or not fits:
        shown = tuple("any" if d is None else d for d in dims)
        raise QuantizationError(
            f"{what}: {array.dtype} of shape {array.shape}; allowed: {dtype} of shape {shown}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise QuantizationError(f"{what}: it has NaN or infinite values; allowed: finite ones")
    return array


def _with_axes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in an operator set that has scales by channel; itself if it is new enough."""
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
    if version >= _AXES_SINCE:
        return model
    return onnx.version_converter.convert_version(model, _AXES_SINCE)


def _quantized(
    model: onnx.ModelProto, reader: _Reader, options: QuantizeOptions
) -> onnx.ModelProto:
    try:
        from onnxruntime.quantization import (
            CalibrationMethod,
            QuantFormat,
            QuantType,
            quant_pre_process,
            quantize_static,
        )
    except ImportError as error:
        raise MissingPackageError(
            "quantizing needs onnxruntime; install it with: pip install 'tvm_ext[quantize]'"
        ) from error
    methods = {
        "minmax": CalibrationMethod.MinMax,
        "entropy": CalibrationMethod.Entropy,
        "percentile": CalibrationMethod.Percentile,
    }
    types = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    with tempfile.TemporaryDirectory(prefix="tvm_ext-") as folder:
        source, prepared, made = (str(Path(folder, f"{n}.onnx")) for n in ("a", "b", "c"))
        try:
            onnx.save(_with_axes(model), source)
            quant_pre_process(source, prepared, skip_symbolic_shape=True)
            quantize_static(
                prepared,
                made,
                reader,
                quant_format=QuantFormat[options.form],
                activation_type=types[options.activations],
                weight_type=types[options.weights],
                per_channel=options.per_channel,
                calibrate_method=methods[options.calibration],
                extra_options={"WeightSymmetric": True},
            )
        except QuantizationError:
            raise
        # The quantiser runs the model and lets whatever goes wrong in it through.
        except Exception as error:
            raise QuantizationError(f"ONNX Runtime can't quantise the model: {error}") from error
        return onnx.load(made)
