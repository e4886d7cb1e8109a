"""Pools of a network."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.codegen.network_layers import POOLS, Constants, Layer, Pair, Specs, window_shape


@dataclass(frozen=True, kw_only=True)
class Pool(Layer):
    """Pooling of each channel.

    ``max``: the largest value of the window, padding left out; quantised as the input is.
    ``average`` and ``global_average``: ``total = sum(x - zx)`` in int32 over the window, padding
    being zx; ``y = sat8(rne(f32(f32(total) * scale)) + zy)`` with ``scale = f32(sx / f32(sy * n))``
    (`arithmetic.average_scale`) and n the number of pixels: of the whole window, or with
    `count_include_pad` false of those inside the image.

    Attributes
    ----------
    kind : str
        max, average, global_average.
    kernel, strides : (rows, columns)
        A global pool has the image's size and strides 1.
    pads : (top, left, bottom, right)
        Each smaller than the kernel.
    count_include_pad : bool
    """

    kind: str
    kernel: Pair
    strides: Pair = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    count_include_pad: bool = False

    def problem(self, tensors: Specs, constants: Constants) -> str:
        x, y = tensors[self.inputs[0]], tensors[self.output]
        if self.kind not in POOLS:
            return f"kind {self.kind!r}; allowed: {', '.join(POOLS)}"
        if len(x.shape) != 4:
            return f"the input has shape {x.shape}; allowed: (1, C, H, W)"
        if min(*self.strides, *self.kernel) < 1 or min(self.pads) < 0:
            return f"kernel {self.kernel}, strides {self.strides}, pads {self.pads}"
        if max(p - k for p, k in zip(self.pads, self.kernel * 2, strict=True)) >= 0:
            return f"pads {self.pads}; allowed: less than the kernel {self.kernel}"
        if self.kind == "global_average" and (
            self.kernel != x.shape[2:] or any(self.pads) or self.strides != (1, 1)
        ):
            return f"a global pool of {x.shape} with kernel {self.kernel}"
        if self.kind == "max" and not x.quantized_as(y):
            return "a max pool's input and output have the same scale and zero point"
        rows, columns = window_shape(
            (x.shape[2], x.shape[3]), self.kernel, self.strides, (1, 1), self.pads
        )
        return self._problem_of(1, (*x.shape[:2], rows, columns), tensors)
