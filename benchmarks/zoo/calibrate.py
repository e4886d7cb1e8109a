"""Give a network with random weights the activation statistics of a trained one.

Random weights alone make activations explode, vanish or forget the input after some tens of
layers, and then an error in the compiler may not show in the output. Here one sample runs through
the network and every layer is normalised with what arrives there: a batch norm gets the mean and
variance of its input, as training would leave them, and a convolution or fully connected layer
with no batch norm behind it is rescaled (data-dependent initialisation, Krähenbühl et al. 2016,
arXiv:1511.06856, section 3.1). The run happens in ONNX Runtime on a copy of the graph in which
each such layer is replaced by nodes that compute the statistics and apply them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.zoo.recipe import Inputs

# A channel with almost no variance (dead behind a ReLU) would be blown up by 1 / std.
_MIN_RELATIVE_VARIANCE = 0.05


def calibrate(model: onnx.ModelProto, inputs: Inputs, logits_std: float = 2.5) -> onnx.ModelProto:
    """Rescale weights and set batch-norm statistics so that every layer's output is O(1).

    Parameters
    ----------
    model : onnx.ModelProto
        Opset 9 to 17; weights are float32 initializers, each used by one node. Changed in place.
    inputs : dict[str, numpy.ndarray]
        The sample; of a larger batch than the model's where no node of the graph fixes the batch.
    logits_std : float
        Standard deviation that the last fully connected layer or convolution gets; the others
        get 1.

    Returns
    -------
    onnx.ModelProto
        `model`.

    Raises
    ------
    ValueError
        If two layers share a weight.
    """
    probe = _Probe(model, logits_std)
    statistics = probe.run(inputs)
    for initializer in model.graph.initializer:
        update = probe.updates.get(initializer.name)
        if update is not None:
            value = update(numpy_helper.to_array(initializer), statistics)
            initializer.CopyFrom(
                numpy_helper.from_array(value.astype(np.float32), initializer.name)
            )
    return model


@dataclass
class _Probe:
    """The copy of the graph that computes statistics, and what to do with them."""

    model: onnx.ModelProto
    logits_std: float
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    updates: dict = field(default_factory=dict)
    reshaped: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = onnx.shape_inference.infer_shapes(self.model).graph
        shapes = {
            info.name: tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
            for info in (*graph.value_info, *graph.output)
        }
        normalised = {n.input[0] for n in graph.node if n.op_type == "BatchNormalization"}
        layers = [n.output[0] for n in graph.node if n.op_type in ("Conv", "Gemm")]
        # Some exporters keep a fully connected layer's weight in 4-D behind a Reshape.
        self.reshaped = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Reshape"}
        self.ranks = {weight.name: len(weight.dims) for weight in graph.initializer}
        for node in graph.node:
            if node.op_type == "BatchNormalization":
                self._probe_batch_norm(node)
            elif node.output[0] in layers and node.output[0] not in normalised:
                # With one pixel a channel has no variance of its own: use the layer's. So too for
                # the last layer, where classes must differ in their mean.
                shape = shapes.get(node.output[0], ())
                last = node.output[0] == layers[-1]
                per_channel = not last and len(shape) > 2 and np.prod(shape[2:]) > 1
                target = self.logits_std if last else 1.0
                self._probe_layer(node, per_channel, target)
            else:
                self.nodes.append(node)

    def run(self, inputs: Inputs) -> dict[str, np.ndarray]:
        import onnxruntime

        graph = helper.make_graph(
            self.nodes,
            "probe",
            [
                helper.make_tensor_value_info(
                    key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
                )
                for key, value in inputs.items()
            ],
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            [
                *self.model.graph.initializer,
                *(numpy_helper.from_array(v, k) for k, v in self.constants.items()),
            ],
        )
        probe = helper.make_model(
            graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        # Unused biases of the replaced layers would be warned about.
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(
            probe.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return dict(zip(self.outputs, session.run(self.outputs, inputs), strict=True))

    def _op(self, op_type: str, *inputs: str, output: str = "", **attributes: object) -> str:
        output = output or f"probe/{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def _constant(self, name: str, value: object, dtype: type = np.float32) -> str:
        self.constants[f"probe/{name}"] = np.array(value, dtype)
        return f"probe/{name}"

    def _as_channels(self, vector: str, rank: int = 4) -> str:
        shape = [1, -1, *[1] * (rank - 2)]
        return self._op("Reshape", vector, self._constant(f"channels{rank}", shape, np.int64))

    def _mean_and_variance(self, x: str, axes: list[int]) -> tuple[str, str, str]:
        """Return x minus its mean, the mean and the variance, the latter two as outputs."""
        mean = self._op("ReduceMean", x, axes=axes, keepdims=1)
        centred = self._op("Sub", x, mean)
        variance = self._op("ReduceMean", self._op("Mul", centred, centred), axes=axes, keepdims=1)
        average = self._op("ReduceMean", variance, keepdims=1)
        least = self._op("Mul", average, self._constant("least", _MIN_RELATIVE_VARIANCE))
        variance = self._op("Max", variance, least)
        self.outputs += [mean, variance]
        return centred, mean, variance

    def _update(self, name: str, update: object) -> None:
        if name in self.updates:
            raise ValueError(f"weight {name!r} is shared by two layers")
        self.updates[name] = update

    def _probe_batch_norm(self, node: onnx.NodeProto) -> None:
        x, scale, bias, running_mean, running_variance = node.input
        centred, mean, variance = self._mean_and_variance(x, [0, 2, 3])
        normal = self._op("Div", centred, self._op("Sqrt", variance))
        scaled = self._op("Mul", normal, self._as_channels(scale))
        self._op("Add", scaled, self._as_channels(bias), output=node.output[0])
        self._update(running_mean, lambda old, got: got[mean].reshape(old.shape))
        self._update(running_variance, lambda old, got: got[variance].reshape(old.shape))

    def _probe_layer(self, node: onnx.NodeProto, per_channel: bool, target: float) -> None:
        weight = self.reshaped.get(node.input[1], node.input[1])
        bias = node.input[2] if len(node.input) > 2 else None
        raw = helper.make_node(node.op_type, node.input[:2], [f"probe/{len(self.nodes)}"])
        raw.attribute.extend(node.attribute)
        if node.op_type == "Gemm":
            # Before opset 11 the third input is not optional.
            raw.input.append(self._constant("zero", [0.0]))
        self.nodes.append(raw)
        rank = 2 if node.op_type == "Gemm" else self.ranks[weight]
        axes = [axis for axis in range(rank) if axis != 1 or not per_channel]
        centred, mean, variance = self._mean_and_variance(raw.output[0], axes)
        # The mean can be taken out only where a bias can put it back in, channel by channel.
        shift = per_channel and bias is not None
        gain = self._op("Sqrt", variance)
        normal = self._op("Div", centred if shift else raw.output[0], gain)
        scaled = self._op("Mul", normal, self._constant(f"target{target}", target))
        if bias is None:
            self._op("Identity", scaled, output=node.output[0])
        else:
            by_channel = self._as_channels(bias, rank) if node.op_type == "Conv" else bias
            self._op("Add", scaled, by_channel, output=node.output[0])

        def factor(statistics: dict[str, np.ndarray]) -> np.ndarray:
            return target / np.sqrt(statistics[variance].reshape(-1))

        outputs_first = node.op_type == "Conv" or any(
            a.name == "transB" and a.i for a in node.attribute
        )

        def scale(old: np.ndarray, statistics: dict[str, np.ndarray]) -> np.ndarray:
            by_output = factor(statistics)
            if outputs_first:
                by_output = by_output.reshape(-1, *[1] * (old.ndim - 1))
            return old * by_output

        self._update(weight, scale)
        if shift:
            self._update(
                bias,
                lambda old, got: old - got[mean].reshape(-1) * factor(got),
            )
