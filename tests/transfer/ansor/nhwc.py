"""DAGs in NHWC as TOPI's operators make them, with what they compute by PyTorch.

Each takes the sizes of a workload, placeholders and output in a row, and gives the text, the
extents of reductions that the text leaves open, and the reference.
"""

import torch.nn.functional as F

AXES = "ax0, ax1, ax2, ax3"


def conv(sizes, epilogue):
    """A convolution, then per letter: r adds a stage of the output's shape, b adds a value per
    channel, s scales by one, R is ReLU."""
    _, height, width, inputs, rows, columns, _, outputs = sizes[:8]
    out_height, out_width = sizes[-3:-1]
    stride, pad = height // out_height, (rows - 1) // 2
    guard = f"((((i1 >= {pad}) && (i1 < {height + pad})) && (i2 >= {pad})) && (i2 < {width + pad}))"
    read = f"p0[i0, (i1 - {pad}), (i2 - {pad}), i3]"
    padded = f"tir.if_then_else({guard}, {read}, 0f)" if pad else "p0[i0, i1, i2, i3]"
    lines = [
        f"p0 = PLACEHOLDER [1, {height}, {width}, {inputs}]",
        f"pad_temp(i0, i1, i2, i3) = {padded}",
        f"p1 = PLACEHOLDER [{rows}, {columns}, {inputs}, {outputs}]",
        f"conv2d_nhwc(nn, yy, xx, ff) += (pad_temp[nn, ((yy*{stride}) + ry), ((xx*{stride}) + rx), "
        "rc]*p1[ry, rx, rc, ff])",
    ]
    last, number = "conv2d_nhwc", 2
    for letter in epilogue:
        if letter == "R":
            lines.append(f"T_relu({AXES}) = max({last}[{AXES}], 0f)")
            continue
        name, sign = ("T_multiply", "*") if letter == "s" else ("T_add", "+")
        size = [1, out_height, out_width, outputs] if letter == "r" else [1, 1, 1, outputs]
        index = AXES if letter == "r" else "ax0, 0, 0, ax3"
        lines.append(f"p{number} = PLACEHOLDER {size}")
        lines.append(f"{name}({AXES}) = ({last}[{AXES}] {sign} p{number}[{index}])")
        last, number = name, number + 1

    def reference(x, w, *rest):
        y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), stride=stride, padding=pad)
        y, others = y.permute(0, 2, 3, 1), iter(rest)
        for letter in epilogue:
            if letter == "R":
                y = y.relu()
            else:
                y = y * next(others) if letter == "s" else y + next(others)
        return y

    return "\n".join(lines), {}, reference


def max_pool(_sizes, _):
    text = f"""
p0 = PLACEHOLDER [1, 112, 112, 64]
pad_temp({AXES}) = tir.if_then_else(((((ax1 >= 1) && (ax1 < 113)) && (ax2 >= 1)) && (ax2 < 113)), \
p0[ax0, (ax1 - 1), (ax2 - 1), ax3], -3.40282e+38f)
pool_max({AXES}) max= pad_temp[ax0, ((ax1*2) + rv0), ((ax2*2) + rv1), ax3]
p1 = PLACEHOLDER [1, 1, 1, 64]
T_add({AXES}) = (pool_max[{AXES}] + p1[ax0, 0, 0, ax3])
T_relu({AXES}) = max(T_add[{AXES}], 0f)
"""

    def reference(x, bias):
        y = F.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)
        return (y + bias).relu()

    return text, {"rv0": 3, "rv1": 3}, reference


def average_pool(sizes, _):
    text = f"""
p0 = PLACEHOLDER {list(sizes[:4])}
adaptive_pool_sum({AXES}) += p0[ax0, ((ax1*7) + rv0), ((ax2*7) + rv1), ax3]
adaptive_pool_avg({AXES}) = (adaptive_pool_sum[{AXES}]/49f)
"""
    return text, {"rv0": 7, "rv1": 7}, lambda x: x.mean((1, 2), keepdim=True)


def softmax(_sizes, _):
    text = """
p0 = PLACEHOLDER [1, 1000]
T_softmax_maxelem(i0) max= p0[i0, k]
T_softmax_exp(i0, i1) = tir.exp((p0[i0, i1] - T_softmax_maxelem[i0]))
T_softmax_expsum(i0) += T_softmax_exp[i0, k]
T_softmax_norm(i0, i1) = (T_softmax_exp[i0, i1]/T_softmax_expsum[i0])
"""
    return text, {}, lambda x: x.softmax(1)
