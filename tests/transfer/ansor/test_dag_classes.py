"""Every class of operator in Ansor's DAGs, small: numpy's and TE's values against PyTorch's."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import tvm

from tests.transfer.ansor.fixtures import assert_close, random_inputs, run
from tvm_ext.transfer.ansor import ComputeDag
from tvm_ext.transfer.ansor.errors import DagError


def blocked(x: torch.Tensor) -> torch.Tensor:
    """(n, c, h, w, 4) as (n, 4c, h, w)."""
    return x.permute(0, 1, 4, 2, 3).flatten(1, 2)


def conv(stride, residual, relu, kernel):
    """A convolution of 2x4 channels of 9x9 to 3x4 ones, NCHW4c, with bias."""
    pad = kernel // 2
    size = (9 + 2 * pad - kernel) // stride + 1
    padded = (
        "data_pad(i0, i1, i2, i3, i4) = tir.if_then_else("
        f"((((i2 >= {pad}) && (i2 < {9 + pad})) && (i3 >= {pad})) && (i3 < {9 + pad})), "
        f"p0[i0, i1, (i2 - {pad}), (i3 - {pad}), i4], 0f)"
    )
    source = "data_pad" if pad else "p0"
    y, x = (
        (f"((oh*{stride}) + kh)", f"((ow*{stride}) + kw)")
        if stride > 1
        else ("(oh + kh)", "(ow + kw)")
    )
    axes = "ax0, ax1, ax2, ax3, ax4"
    lines = [
        "p0 = PLACEHOLDER [2, 2, 9, 9, 4]",
        *([padded] if pad else []),
        f"p1 = PLACEHOLDER [3, 2, {kernel}, {kernel}, 4, 4]",
        f"conv2d_NCHWc(n, oc_chunk, oh, ow, oc_block) += ({source}[n, floordiv(ic, 4), {y}, {x}, "
        "floormod(ic, 4)]*p1[oc_chunk, floordiv(ic, 4), kh, kw, floormod(ic, 4), oc_block])",
        "p2 = PLACEHOLDER [1, 3, 1, 1, 4]",
        f"T_add({axes}) = (conv2d_NCHWc[{axes}] + p2[0, ax1, 0, 0, ax4])",
    ]
    if residual:
        lines += [
            f"p3 = PLACEHOLDER [2, 3, {size}, {size}, 4]",
            f"T_add({axes}) = (T_add[{axes}] + p3[{axes}])",
        ]
    if relu:
        lines.append(f"T_relu({axes}) = max(T_add[{axes}], 0f)")
    out = [2, 3, size, size, 4]
    shapes = [
        [2, 2, 9, 9, 4],
        [3, 2, kernel, kernel, 4, 4],
        [1, 3, 1, 1, 4],
        *[out] * residual,
        out,
    ]

    def reference(data, weight, bias, *rest):
        weight = weight.permute(0, 5, 1, 4, 2, 3).flatten(0, 1).flatten(1, 2)
        y = F.conv2d(blocked(data), weight, blocked(bias).flatten(), stride, pad)
        y = y + blocked(rest[0]) if rest else y
        y = y.relu() if relu else y
        return y.unflatten(1, (3, 4)).permute(0, 1, 3, 4, 2)

    return "\n".join(lines), shapes, None, reference


def pool(kind, kernel, stride, pad, ceil=False):
    """A pool of 9x9."""
    axes = "ax0, ax1, ax2, ax3"
    high = 9 + pad
    pads = (
        f"((((ax2 >= {pad}) && (ax2 < {high})) && (ax3 >= {pad})) && (ax3 < {high}))" if pad
        else "((ax2 < 9) && (ax3 < 9))"
    )  # fmt: skip
    empty = "-3.40282e+38f" if kind == "max" else "0f"
    size = (
        int(np.ceil((9 + 2 * pad - kernel) / stride) if ceil else (9 + 2 * pad - kernel) // stride)
        + 1
    )
    reads = f"[ax0, ax1, ((ax2*{stride}) + rv0), ((ax3*{stride}) + rv1)]"
    lines = ["p0 = PLACEHOLDER [2, 3, 9, 9]"]
    source = "p0"
    if pad or ceil:
        read = f"p0[ax0, ax1, (ax2 - {pad}), (ax3 - {pad})]"
        lines.append(f"pad_temp({axes}) = tir.if_then_else({pads}, {read}, {empty})")
        source = "pad_temp"
    if kind == "max":
        lines.append(f"pool_max({axes}) max= {source}{reads}")
    else:
        # The divisor counts what lies inside the input: from where the window starts to its end.
        counts = [
            f"((min((({a}*{stride}) + {kernel - 1 - pad}), 8) - (({a}*{stride}) - {pad} + "
            f"max(({pad} - ({a}*{stride})), 0))) + 1)"
            for a in ("ax2", "ax3")
        ]
        lines.append(f"pool_sum({axes}) += {source}{reads}")
        lines.append(f"pool_avg({axes}) = (pool_sum[{axes}]/float32(max(({'*'.join(counts)}), 1)))")

    def reference(x):
        if kind == "max":
            return F.max_pool2d(x, kernel, stride, pad, ceil_mode=ceil)
        return F.avg_pool2d(x, kernel, stride, pad, ceil, count_include_pad=False)

    out = [2, 3, size, size]
    return "\n".join(lines), [[2, 3, 9, 9], out], {"rv0": kernel, "rv1": kernel}, reference


SOFTMAX = """
p0 = PLACEHOLDER [3, 10]
T_softmax_maxelem(i0) max= p0[i0, k]
T_softmax_exp(i0, i1) = tir.exp((p0[i0, i1] - T_softmax_maxelem[i0]))
T_softmax_expsum(i0) += T_softmax_exp[i0, k]
T_softmax_norm(i0, i1) = (T_softmax_exp[i0, i1]/T_softmax_expsum[i0])
"""
LRN = """
p0 = PLACEHOLDER [2, 7, 4, 4]
pad_data(ax0, ax1, ax2, ax3) = tir.if_then_else(((ax1 >= 2) && (ax1 < 9)), \
p0[ax0, (ax1 - 2), ax2, ax3], 0f)
tensor(ax0, ax1, ax2, ax3) += (pad_data[ax0, (ax1 + rxs), ax2, ax3]\
*pad_data[ax0, (ax1 + rxs), ax2, ax3])
tensor(ax0, ax1, ax2, ax3) = tir.pow((2f + ((0.5f*tensor[ax0, ax1, ax2, ax3])/5f)), 0.75f)
T_divide(ax0, ax1, ax2, ax3) = (p0[ax0, ax1, ax2, ax3]/tensor[ax0, ax1, ax2, ax3])
"""
DENSE = """
p0 = PLACEHOLDER [3, 20]
p1 = PLACEHOLDER [10, 20]
T_matmul_NT(i0, i1) += (p0[i0, k]*p1[i1, k])
p2 = PLACEHOLDER [1, 10]
T_add(ax0, ax1) = (T_matmul_NT[ax0, ax1] + p2[0, ax1])
"""
ADAPTIVE = """
p0 = PLACEHOLDER [2, 3, 8, 6]
adaptive_pool_sum(ax0, ax1, ax2, ax3) += p0[ax0, ax1, ((ax2*4) + rv0), ((ax3*3) + rv1)]
adaptive_pool_avg(ax0, ax1, ax2, ax3) = (adaptive_pool_sum[ax0, ax1, ax2, ax3]*0.0833333f)
"""
TO_BLOCKS = """
p0 = PLACEHOLDER [2, 8, 5, 5]
T_layout_trans(ax0, ax1, ax2, ax3, ax4) = tir.if_then_else((((ax0 < 2) && (((ax1*4) + ax4) < 8)) \
&& (ax2 < 5)), p0[ax0, ((ax1*4) + ax4), ax2, ax3], 0f)
"""
FROM_BLOCKS = """
p0 = PLACEHOLDER [2, 2, 5, 5, 4]
T_layout_trans(ax0, ax1, ax2, ax3) = p0[ax0, floordiv(ax1, 4), ax2, ax3, floormod(ax1, 4)]
"""
CONCAT = """
p0 = PLACEHOLDER [2, 3, 5]
p1 = PLACEHOLDER [2, 4, 5]
T_concat(ax0, ax1, ax2) = tir.if_then_else((ax1 >= 3), p1[ax0, (ax1 - 3), ax2], p0[ax0, ax1, ax2])
"""
BATCH_NORM = """
p0 = PLACEHOLDER [2, 5, 3, 3]
p1 = PLACEHOLDER [5, 1, 1]
T_multiply(ax0, ax1, ax2, ax3) = (p0[ax0, ax1, ax2, ax3]*p1[ax1, 0, 0])
p2 = PLACEHOLDER [5, 1, 1]
T_add(ax0, ax1, ax2, ax3) = (T_multiply[ax0, ax1, ax2, ax3] + p2[ax1, 0, 0])
"""
DEPTHWISE = """
p0 = PLACEHOLDER [2, 3, 8, 8]
p1 = PLACEHOLDER [3, 2, 3, 3]
DepthwiseConv2d(b, c, i, j) += (p0[b, floordiv(c, 2), (i + di), (j + dj)]\
*p1[floordiv(c, 2), floormod(c, 2), di, dj])
"""
ACTIVATIONS = """
p0 = PLACEHOLDER [4, 9]
T_gelu(i, j) = ((p0[i, j]*0.5f)*(1f + tir.erf((p0[i, j]*0.707107f))))
T_swish(i, j) = (p0[i, j]*tir.sigmoid(p0[i, j]))
T_clip(i, j) = max(min(T_swish[i, j], 1f), -1f)
T_leaky(i, j) = select((0f < T_clip[i, j]), T_clip[i, j], (T_clip[i, j]*0.1f))
T_norm(i, j) = (T_leaky[i, j]*tir.rsqrt(tir.fabs((p0[i, j] + tir.tanh(p0[i, j])))))
out(i, j) = ((T_gelu[i, j] + T_norm[i, j]) - tir.sqrt(tir.exp(tir.floor(p0[i, j]))))
"""


def activations(x):
    leaky = F.leaky_relu(F.hardtanh(F.silu(x)), 0.1)
    return F.gelu(x) + leaky * (x + x.tanh()).abs().rsqrt() - x.floor().exp().sqrt()


CLASSES = {
    **{
        f"conv {kernel}x{kernel} stride {stride}{' residual' * residual}{' relu' * relu}": conv(
            stride, residual, relu, kernel
        )
        for kernel, stride, residual, relu in (
            (1, 1, False, True), (1, 2, False, False), (3, 1, True, True), (3, 2, False, True),
            (5, 1, False, False),
        )
    },
    "max pool": pool("max", 3, 2, 0),
    "max pool, padded": pool("max", 3, 1, 1),
    "max pool, ceil": pool("max", 2, 2, 0, ceil=True),
    "average pool": pool("avg", 3, 2, 0),
    "average pool, padded": pool("avg", 3, 2, 1),
    "average pool, global": pool("avg", 9, 1, 0),
    "softmax": (SOFTMAX, [[3, 10], [3, 10]], None, lambda x: x.softmax(1)),
    "lrn": (
        LRN, [[2, 7, 4, 4]] * 2, {"rxs": 5}, lambda x: F.local_response_norm(x, 5, 0.5, 0.75, 2.0)
    ),
    "dense": (DENSE, [[3, 20], [10, 20], [1, 10], [3, 10]], None, lambda x, w, b: x @ w.T + b),
    "adaptive pool": (
        ADAPTIVE, [[2, 3, 8, 6], [2, 3, 2, 2]], {"rv0": 4, "rv1": 3},
        lambda x: F.adaptive_avg_pool2d(x, 2),
    ),
    "to blocks": (
        TO_BLOCKS, [[2, 8, 5, 5], [2, 2, 5, 5, 4]], None,
        lambda x: x.unflatten(1, (2, 4)).permute(0, 1, 3, 4, 2),
    ),
    "from blocks": (FROM_BLOCKS, [[2, 2, 5, 5, 4], [2, 8, 5, 5]], None, blocked),
    "concatenation": (
        CONCAT, [[2, 3, 5], [2, 4, 5], [2, 7, 5]], None, lambda a, b: torch.cat([a, b], 1)
    ),
    "batch norm": (
        BATCH_NORM, [[2, 5, 3, 3], [5, 1, 1], [5, 1, 1], [2, 5, 3, 3]], None,
        lambda x, scale, shift: x * scale + shift,
    ),
    "depthwise": (
        DEPTHWISE, [[2, 3, 8, 8], [3, 2, 3, 3], [2, 6, 6, 6]], None,
        lambda x, w: F.conv2d(x, w.flatten(0, 1)[:, None], groups=3),
    ),
    "activations": (ACTIVATIONS, [[4, 9], [4, 9]], None, activations),
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_numpy_and_te_compute_what_pytorch_does(name):
    text, shapes, reduce_extents, reference = CLASSES[name]
    dag = ComputeDag.parse(text, shapes, reduce_extents=reduce_extents)
    inputs = random_inputs(dag)
    expected = reference(*[torch.from_numpy(array).double() for array in inputs]).numpy()
    (found,) = dag.evaluate(inputs)
    assert found.dtype == np.float64
    assert_close(found, expected, 1e-6)
    assert_close(run(tvm.IRModule({"main": dag.function}), dag, inputs), expected)


def test_several_outputs():
    text = "a = PLACEHOLDER [3]\nb(i) = (a[i] + 1f)\nc(i) = (a[i]*2f)"
    dag = ComputeDag.parse(text, [[3], [3], [3]])
    assert [name for name, _ in dag.arguments] == ["a", "b", "c"]
    b, c = dag.evaluate([np.array([1, 2, 3], "float32")])
    assert (b.tolist(), c.tolist()) == ([2, 3, 4], [2, 4, 6])


def test_integers_divide_and_reduce_by_minimum():
    text = "a = PLACEHOLDER [6]\nb(i) = ((a[i]/4) - (a[i] % 4))\nc() min= b[k]"
    dag = ComputeDag.parse(text, [[6], []], dtypes={"a": "int32"})
    # Towards zero: -7/4 is -1, and the remainder is -3.
    (least,) = dag.evaluate([np.array([-7, -4, 5, 9, 3, 0], "int32")])
    assert least == min(-1 + 3, -1, 1 - 1, 2 - 1, 0 - 3, 0)


def test_sizes_in_a_row_are_shapes():
    flat = ComputeDag.parse(SOFTMAX, [3, 10, 3, 10])
    assert flat.arguments == (("p0", (3, 10)), ("T_softmax_norm", (3, 10)))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([[3, 10]], r"allowed: 2 shapes of ranks \[2, 2\]"),
        ([[3, 10], [3]], r"allowed: 2 shapes of ranks \[2, 2\]"),
        ([[3, 11], [3, 11]], r"p0 is printed as \[3, 10\], the shapes say \[3, 11\]"),
    ],
)
def test_shapes_that_dont_fit(shapes, message):
    with pytest.raises(DagError, match=message):
        ComputeDag.parse(SOFTMAX, shapes)
