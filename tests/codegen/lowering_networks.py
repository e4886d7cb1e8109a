"""Random networks of every kind of layer, and running them on the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.arithmetic import add_registers
from tvm_ext.codegen.lowering import emit_plan, make_plan, pack_inputs, unpack_outputs
from tvm_ext.codegen.lowering.plan import NetworkPlan
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import (
    Abs,
    Add,
    LeakyRelu,
    Maximum,
    Minimum,
    Multiply,
    Relu,
    Requantize,
)
from tvm_ext.codegen.network_layers import Conv, Layer, MatMul, Pair, TensorSpec, window_shape
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool
from tvm_ext.codegen.network_reference import run_reference
from tvm_ext.codegen.program import Program
from tvm_ext.codegen.simulator import Result, simulate


@dataclass
class Builder:
    """Appends layers with random constants; a method returns the tensor that it makes."""

    rng: np.random.Generator
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)

    def input(self, *shape: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        return self.tensor(name, shape)

    def tensor(self, name: str, shape: tuple[int, ...], like: str | None = None) -> str:
        scale = float(np.float32(self.rng.uniform(0.01, 0.2)))
        zero = int(self.rng.integers(-20, 21))
        if like is not None:
            scale, zero = self.tensors[like].scale, self.tensors[like].zero_point
        self.tensors[name] = TensorSpec(name, tuple(map(int, shape)), "int8", scale, zero)
        return name

    def weights(self, name: str, shape: tuple[int, ...], filters: int) -> dict[str, str]:
        names = {part: f"{name}.{part}" for part in ("weight", "bias", "scales")}
        scale = 1 / (50 * np.sqrt(np.prod(shape) / filters))
        self.constants |= {
            names["weight"]: self.rng.integers(-128, 128, shape).astype("int8"),
            names["bias"]: self.rng.integers(-3000, 3001, filters).astype("int32"),
            names["scales"]: (scale * self.rng.uniform(0.5, 1.5, filters)).astype("float32"),
        }
        return names

    def clamp(self, output: str) -> tuple[int, int]:
        zero = self.tensors[output].zero_point
        choices = ((-128, 127), (zero, 127), (zero, min(127, zero + 60)), (-100, 90))
        return choices[self.rng.integers(len(choices))]

    def conv(self, x, filters, kernel, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1),
             depthwise=False):  # fmt: skip
        _, channels, *size = self.tensors[x].shape
        name, groups = f"l{len(self.layers)}", channels if depthwise else 1
        filters = channels if depthwise else filters
        shape = window_shape(tuple(size), kernel, strides, dilations, pads)
        y = self.tensor(name, (1, filters, *shape))
        self.layers.append(
            Conv(
                name=name, inputs=(x,), output=y, strides=strides, pads=pads, dilations=dilations,
                groups=groups, clamp=self.clamp(y),
                **self.weights(name, (filters, channels // groups, *kernel), filters),
            )
        )  # fmt: skip
        return y

    def matmul(self, x: str, columns: int) -> str:
        rows, depth = self.tensors[x].shape
        name = f"l{len(self.layers)}"
        y = self.tensor(name, (rows, columns))
        weights = self.weights(name, (depth, columns), columns)
        self.layers.append(MatMul(name=name, inputs=(x,), output=y, clamp=self.clamp(y), **weights))
        return y

    def pool(self, x, kind, kernel=None, strides=(1, 1), pads=(0, 0, 0, 0), inside=True):
        _, channels, *size = self.tensors[x].shape
        kernel = kernel or tuple(size)
        name = f"l{len(self.layers)}"
        shape = window_shape(tuple(size), kernel, strides, (1, 1), pads)
        y = self.tensor(name, (1, channels, *shape), x if kind == "max" else None)
        self.layers.append(
            Pool(
                name=name, inputs=(x,), output=y, kind=kind, kernel=kernel, strides=strides,
                pads=pads, count_include_pad=not inside,
            )
        )  # fmt: skip
        return y

    def elementwise(self, kind: type[Layer], *xs: str) -> str:
        name = f"l{len(self.layers)}"
        same = kind in (Minimum, Maximum, Abs, Relu)
        # One of two may have a value a channel.
        whole = max((self.tensors[x] for x in xs), key=lambda spec: spec.size)
        y = self.tensor(name, whole.shape, xs[0] if same else None)
        extra: dict[str, object] = {}
        if kind in (Multiply, LeakyRelu, Requantize):
            extra["scale"] = float(np.float32(0.02 if kind is Multiply else 0.7))
        if kind is LeakyRelu:
            extra["negative_scale"] = float(np.float32(-0.13))
        if kind is Add:
            specs = [self.tensors[n] for n in (*xs, y)]
            extra["shift"] = int(self.rng.choice([0, 128]))
            extra["scales"], extra["offset"] = add_registers(*specs, extra["shift"])
        if kind in (Add, Multiply, Requantize):
            extra["clamp"] = self.clamp(y)
        self.layers.append(kind(name=name, inputs=xs, output=y, **extra))
        return y

    def requantized_as(self, x: str, like: str) -> str:
        """`x` with the scale and zero point of another tensor."""
        name = f"l{len(self.layers)}"
        y = self.tensor(name, self.tensors[x].shape, like)
        scale = float(np.float32(self.tensors[x].scale / self.tensors[like].scale))
        self.layers.append(Requantize(name=name, inputs=(x,), output=y, scale=scale))
        return y

    def concat(self, *xs: str) -> str:
        name, shapes = f"l{len(self.layers)}", [self.tensors[x].shape for x in xs]
        whole = (shapes[0][0], sum(s[1] for s in shapes), *shapes[0][2:])
        y = self.tensor(name, whole, xs[0])
        self.layers.append(Concat(name=name, inputs=xs, output=y))
        return y

    def interleave(self, factors: Pair, *xs: str) -> str:
        name, (_, channels, *size) = f"l{len(self.layers)}", self.tensors[xs[0]].shape
        y = self.tensor(name, (1, channels, size[0] * factors[0], size[1] * factors[1]), xs[0])
        self.layers.append(Interleave(name=name, inputs=xs, output=y, factors=factors))
        return y

    def reshape(self, x: str, *shape: int) -> str:
        name = f"l{len(self.layers)}"
        y = self.tensor(name, shape, x)
        self.layers.append(Reshape(name=name, inputs=(x,), output=y))
        return y

    def network(self, *outputs: str) -> Network:
        return Network(
            "random", tuple(self.inputs), outputs, self.tensors, tuple(self.layers), self.constants
        )


def random_network(seed: int, depthwise: bool = True) -> Network:
    """A few layers of any kind one behind the other, with side branches."""
    rng = np.random.default_rng(seed)
    builder = Builder(rng)
    pick = lambda *options: options[rng.integers(len(options))]  # noqa: E731
    x = builder.input(1, pick(1, 3, 5, 17), int(rng.integers(5, 15)), int(rng.integers(5, 15)))
    outputs = []
    for _ in range(int(rng.integers(2, 6))):
        _, channels, height, width = builder.tensors[x].shape
        kind = pick("conv", "conv", "depthwise", "pool", "one", "two", "gate", "concat",
                    "interleave", "reshape")  # fmt: skip
        kernel = (min(height, pick(1, 2, 3)), min(width, pick(1, 3, 4)))
        pads = tuple(int(rng.integers(0, kernel[i % 2])) for i in range(4))
        strides = (pick(1, 1, 2, 3), pick(1, 1, 2))
        dilations = tuple(2 if 2 * (k - 1) < s and rng.random() < 0.3 else 1
                          for k, s in zip(kernel, (height, width), strict=True))  # fmt: skip
        if kind == "conv" or (kind == "depthwise" and (channels == 1 or not depthwise)):
            x = builder.conv(x, pick(1, 4, 9, 16, 21), kernel, strides, pads, dilations)
        elif kind == "depthwise":
            x = builder.conv(x, channels, kernel, strides, pads, dilations, depthwise=True)
        elif kind == "pool":
            x = builder.pool(x, pick("max", "average"), kernel, strides, pads, pick(True, False))
        elif kind == "one":
            x = builder.elementwise(pick(Abs, Relu, LeakyRelu, Requantize), x)
        elif kind == "two":
            other = pick(x, builder.elementwise(Relu, x))
            x = builder.elementwise(pick(Add, Multiply, Minimum, Maximum), x, other)
        elif kind == "concat":
            left = builder.requantized_as(builder.conv(x, pick(3, 8), (1, 1)), x)
            x = builder.concat(*pick((left, x), (x, left), (left, builder.pool(x, "max", (1, 1)))))
        elif kind == "gate":
            gate = builder.pool(x, "global_average")
            if (op := pick(Add, Multiply, Minimum, Maximum)) in (Minimum, Maximum):
                gate = builder.requantized_as(gate, x)
            x = builder.elementwise(op, *pick((x, gate), (gate, x)))
        elif kind == "interleave":
            other = builder.elementwise(Relu, builder.elementwise(Relu, x))
            x = builder.interleave(
                *pick(((1, 2), x, other), ((2, 1), other, x), ((2, 2), *[x] * 4))
            )
        else:
            x = builder.reshape(x, 1, height, width, channels)
        if rng.random() < 0.2:
            outputs.append(x)
    ending = pick("", "flatten", "global")
    if ending == "global":
        x = builder.pool(x, "global_average")
    if ending:
        flat = builder.reshape(x, 1, builder.tensors[x].size)
        x = builder.matmul(flat, pick(1, 7, 20))
    if x in builder.inputs:
        x = builder.elementwise(Relu, x)
    return builder.network(*dict.fromkeys([*(o for o in outputs if o not in builder.inputs), x]))


def run_program(
    network: Network, program: Program, accelerator: Accelerator, seed: int = 0
) -> Result:
    """Simulate a program of a network; its outputs are the reference's, bit for bit."""
    rng = np.random.default_rng(seed)
    inputs = {
        name: rng.integers(-128, 128, network.tensors[name].shape).astype("int8")
        for name in network.inputs
    }
    memory = program.memory_image(pack_inputs(network, inputs))
    result = simulate(program, accelerator, memory)
    outputs, wanted = (
        unpack_outputs(network, program.outputs(memory)),
        run_reference(network, inputs),
    )
    assert list(outputs) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(outputs[name], array, err_msg=name)
    return result


def run_network(
    network: Network, accelerator: Accelerator, mapping: str = "auto"
) -> tuple[NetworkPlan, Result]:
    """Plan, lower and simulate a network, with the check of `run_program`."""
    plan = make_plan(network, accelerator, mapping=mapping)
    return plan, run_program(network, emit_plan(plan), accelerator)
