"""How each anchor operator of Relax is read: workload, data inputs, constant weights.

A reader returns an `Anchor`, or the reason (naming attribute and value) why our kernels don't
take the call; the layer then falls back to TVM's own operator, and the plan shows that reason.
"""

from __future__ import annotations

from tvm_ext.anchors.anchor import Reader
from tvm_ext.anchors.moves import concat, permute, strided_slice, view
from tvm_ext.anchors.products import conv, conv_transpose, matmul
from tvm_ext.anchors.reductions import global_pool, layer_norm, mean, pool, rms_norm, softmax
from tvm_ext.anchors.resizing import resize2d

ANCHORS: dict[str, Reader] = {
    "relax.nn.conv1d": conv,
    "relax.nn.conv2d": conv,
    "relax.nn.conv3d": conv,
    "relax.nn.conv1d_transpose": conv_transpose,
    "relax.nn.conv2d_transpose": conv_transpose,
    "relax.nn.conv3d_transpose": conv_transpose,
    "relax.matmul": matmul,
    "relax.nn.max_pool1d": pool("max"),
    "relax.nn.max_pool2d": pool("max"),
    "relax.nn.max_pool3d": pool("max"),
    "relax.nn.avg_pool1d": pool("avg"),
    "relax.nn.avg_pool2d": pool("avg"),
    "relax.nn.avg_pool3d": pool("avg"),
    "relax.nn.adaptive_avg_pool1d": global_pool,
    "relax.nn.adaptive_avg_pool2d": global_pool,
    "relax.nn.adaptive_avg_pool3d": global_pool,
    "relax.mean": mean,
    "relax.nn.softmax": softmax("softmax"),
    "relax.nn.log_softmax": softmax("log_softmax"),
    "relax.nn.layer_norm": layer_norm,
    "relax.nn.rms_norm": rms_norm,
    "relax.concat": concat,
    "relax.reshape": view,
    "relax.flatten": view,
    "relax.squeeze": view,
    "relax.expand_dims": view,
    "relax.permute_dims": permute,
    "relax.strided_slice": strided_slice,
    "relax.image.resize2d": resize2d,
}
