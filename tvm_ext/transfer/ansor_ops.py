"""The kernel class of a computation of Ansor's, from the names that TVM gave its stages."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from tvm_ext.transfer.kernel_class_ops import Ops

OPERATORS = MappingProxyType(
    {
        "DepthwiseConv2d": "nn.conv2d_depthwise",
        "adaptive_pool_avg": "nn.adaptive_avg_pool2d",
        "conv2d_NCHWc": "nn.conv2d",
        "conv2d_NHWC": "nn.conv2d",
        "conv2d_nchw": "nn.conv2d",
        "conv2d_nhwc": "nn.conv2d",
        "depthwise_conv2d_NCHWc": "nn.conv2d_depthwise",
        "group_conv2d_nchw": "nn.conv2d_grouped",
        "pool_avg": "nn.avg_pool2d",
        "pool_max": "nn.max_pool2d",
        "T_batch_matmul_NN": "matmul",
        "T_batch_matmul_NT": "matmul",
        "T_matmul_NN": "matmul",
        "T_matmul_NT": "matmul",
        "T_softmax_norm": "nn.softmax",
        "T_relu": "nn.relu",
    }
)
"""The operator that ends with a stage, by the stage's name, in the words of kernel classes."""

# Stages that are only part of an operator, which another one stands for.
_PARTS = frozenset(
    {
        "adaptive_pool_sum", "data_pad", "pad_temp", "pool_sum", "T_softmax_exp",
        "T_softmax_expsum", "T_softmax_maxelem",
    }
)  # fmt: skip


def stage_ops(labels: Iterable[str]) -> Ops:
    """The operators of a computation, in order.

    A stage that isn't in `OPERATORS` has its own name, without TVM's mark of elementwise ones:
    ``add`` for ``T_add``.

    Parameters
    ----------
    labels : iterable of str
        Of the computed stages.
    """
    return tuple(
        OPERATORS.get(label, label.removeprefix("T_")) for label in labels if label not in _PARTS
    )
