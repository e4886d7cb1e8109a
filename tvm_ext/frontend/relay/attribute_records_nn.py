"""Attribute records of Relay's neural network operators: their attributes, kinds and defaults.

The form is that of `attribute_schema`. Names and defaults are those of TVM 0.8 to 0.19;
`norm_region` of LRNAttrs is a vendor's, in whose files it stands beside the others.
"""

from __future__ import annotations

NN_RECORDS = """
AdaptivePool1DAttrs: nn.adaptive_avg_pool1d nn.adaptive_max_pool1d
    node output_size=[]
    str layout="NCW", out_layout=""
AdaptivePool2DAttrs: nn.adaptive_avg_pool2d nn.adaptive_max_pool2d
    node output_size=[]
    str layout="NCHW", out_layout=""
AdaptivePool3DAttrs: nn.adaptive_avg_pool3d nn.adaptive_max_pool3d
    node output_size=[]
    str layout="NCDHW", out_layout=""
AvgPool1DAttrs: nn.avg_pool1d
    node pool_size, strides=[1], dilation=[1], padding=[0]
    bool ceil_mode=False, count_include_pad=False
    str layout="NCW", out_layout=""
AvgPool2DAttrs: nn.avg_pool2d nn.avg_pool2d_grad qnn.avg_pool2d
    node pool_size, strides=[1, 1], dilation=[1, 1], padding=[0, 0]
    bool ceil_mode=False, count_include_pad=False
    str layout="NCHW", out_layout=""
AvgPool3DAttrs: nn.avg_pool3d
    node pool_size, strides=[1, 1, 1], dilation=[1, 1, 1], padding=[0, 0, 0]
    bool ceil_mode=False, count_include_pad=False
    str layout="NCDHW", out_layout=""
BatchMatmulAttrs: nn.batch_matmul qnn.batch_matmul
    bool transpose_a=False, transpose_b=False
    dtype out_dtype=""
BatchNormAttrs: nn.batch_norm
    int axis=1
    float epsilon=1e-5
    bool center=True, scale=True
BatchToSpaceNDAttrs: nn.batch_to_space_nd
    node crops, block_shape=[1, 1]
BiasAddAttrs: nn.bias_add
    int axis=1
BinaryConv2DAttrs: nn.bitserial_conv2d
    node strides=[1, 1], padding=[0, 0], kernel_size=[3, 3], channels=None
    int activation_bits=1, weight_bits=1
    bool unipolar=True
    str data_layout="NCHW", kernel_layout="OIHW"
    dtype pack_dtype="", out_dtype=""
BinaryDenseAttrs: nn.bitserial_dense
    node units
    int data_bits=1, weight_bits=1
    bool unipolar=True
    dtype pack_dtype="", out_dtype=""
BitPackAttrs: nn.bitpack
    int bits=1, pack_axis=1, bit_axis=-1
    str name="BitPack"
    dtype pack_type=""
Conv1DAttrs: nn.conv1d
    node strides=[1], padding=[0, 0], dilation=[1], channels=None, kernel_size=None
    int groups=1
    str data_layout="NCW", kernel_layout="OIW", out_layout=""
    dtype out_dtype=""
Conv1DTransposeAttrs: nn.conv1d_transpose
    node channels=None, kernel_size=None, strides=[1], output_padding=[0], padding=[0]
    node dilation=[1]
    int groups=1
    str data_layout="NCW", kernel_layout="IOW", out_layout=""
    dtype out_dtype=""
Conv2DAttrs: nn.contrib_conv2d_NCHWc nn.contrib_conv2d_gemm_without_weight_transform \
nn.contrib_depthwise_conv2d_NCHWc nn.conv2d nn.conv2d_backward_weight qnn.conv2d
    node strides=[1, 1], padding=[0, 0], dilation=[1, 1], channels=None, kernel_size=None
    int groups=1
    str data_layout="NCHW", kernel_layout="OIHW", out_layout=""
    dtype out_dtype=""
Conv2DTransposeAttrs: nn.conv2d_transpose qnn.conv2d_transpose
    node channels=None, kernel_size=None, strides=[1, 1], output_padding=[0, 0], padding=[0, 0]
    node dilation=[1, 1]
    int groups=1
    str data_layout="NCHW", kernel_layout="IOHW", out_layout=""
    dtype out_dtype=""
Conv2DWinogradAttrs: nn.contrib_conv2d_winograd_without_weight_transform
    node strides=[1, 1], padding=[0, 0], dilation=[1, 1], channels=None, kernel_size=None
    int tile_size, groups=1
    str data_layout="NCHW", kernel_layout="OIHW", out_layout=""
    dtype out_dtype=""
Conv2DWinogradNNPACKWeightTransformAttrs: nn.contrib_conv2d_winograd_nnpack_weight_transform
    int convolution_algorithm
    dtype out_dtype=""
Conv3DAttrs: nn.conv3d
    node strides=[1, 1, 1], padding=[0, 0, 0], dilation=[1, 1, 1], channels=None, kernel_size=None
    int groups=1
    str data_layout="NCDHW", kernel_layout="OIDHW", out_layout=""
    dtype out_dtype=""
Conv3DTransposeAttrs: nn.conv3d_transpose
    node channels=None, kernel_size=None, strides=[1, 1, 1], output_padding=[0, 0, 0]
    node padding=[0, 0, 0], dilation=[1, 1, 1]
    int groups=1
    str data_layout="NCDHW", kernel_layout="IODHW", out_layout=""
    dtype out_dtype=""
Conv3DWinogradAttrs: nn.contrib_conv3d_winograd_without_weight_transform
    node strides=[1, 1, 1], padding=[0, 0, 0], dilation=[1, 1, 1], channels=None, kernel_size=None
    int tile_size, groups=1
    str data_layout="NCDHW", kernel_layout="OIDHW", out_layout=""
    dtype out_dtype=""
ConvWinogradWeightTransformAttrs: nn.contrib_conv2d_winograd_weight_transform \
nn.contrib_conv3d_winograd_weight_transform
    int tile_size
CorrelationAttrs: nn.correlation
    node padding=[0, 0]
    int kernel_size=1, max_displacement=1, stride1=1, stride2=1
    bool is_multiply=True
    str layout="NCHW"
DeformableConv2DAttrs: nn.deformable_conv2d
    node strides=[1, 1], padding=[0, 0], dilation=[1, 1], channels=None, kernel_size=None
    int deformable_groups=1, groups=1
    str data_layout="NCHW", kernel_layout="OIHW", out_layout=""
    dtype out_dtype=""
DenseAttrs: nn.dense qnn.dense
    node units
    dtype out_dtype=""
DensePackAttrs: nn.contrib_dense_pack qnn.contrib_dense_pack
    node units
    str weight_layout="NC"
    dtype out_dtype=""
DilateAttrs: nn.dilate
    node strides=[1, 1]
    float dilation_value=0.0
DropoutAttrs: nn.dropout
    float rate=0.5
FIFOBufferAttrs: nn.fifo_buffer
    int axis=0
GlobalPool2DAttrs: nn.global_avg_pool2d nn.global_max_pool2d
    str layout="NCHW", out_layout=""
GroupNormAttrs: nn.group_norm
    int num_groups=0, axis=1
    float epsilon=1e-5
    bool center=True, scale=True
InstanceNormAttrs: nn.instance_norm
    int axis=1
    float epsilon=1e-5
    bool center=True, scale=True
L2NormalizeAttrs: nn.l2_normalize
    node axis
    float eps
LRNAttrs: nn.lrn
    int size=5, axis=1
    float bias=2.0, alpha=0.0001, beta=0.75
    str norm_region="ACROSS_CHANNELS"
LayerNormAttrs: nn.layer_norm
    int axis=-1
    float epsilon=1e-5
    bool center=True, scale=True
LeakyReluAttrs: nn.leaky_relu qnn.leaky_relu
    float alpha=0.25
MatmulAttrs: nn.matmul
    node units
    bool transpose_a=False, transpose_b=False
    dtype out_dtype=""
MaxPool1DAttrs: nn.max_pool1d
    node pool_size, strides=[1], dilation=[1], padding=[0]
    bool ceil_mode=False
    str layout="NCW", out_layout=""
MaxPool2DAttrs: nn.max_pool2d nn.max_pool2d_grad
    node pool_size, strides=[1, 1], dilation=[1, 1], padding=[0, 0]
    bool ceil_mode=False
    str layout="NCHW", out_layout=""
MaxPool3DAttrs: nn.max_pool3d
    node pool_size, strides=[1, 1, 1], dilation=[1, 1, 1], padding=[0, 0, 0]
    bool ceil_mode=False
    str layout="NCDHW", out_layout=""
MirrorPadAttrs: nn.mirror_pad
    node pad_width
    str mode="SYMMETRIC"
NLLLossAttrs: nn.nll_loss
    int ignore_index
    str reduction="mean"
PReluAttrs: nn.prelu
    int axis=1
PadAttrs: dyn.nn.pad nn.pad
    node pad_width
    str pad_mode="constant"
SoftmaxAttrs: nn.fast_softmax nn.log_softmax nn.softmax qnn.softmax
    int axis=-1
SpaceToBatchNDAttrs: nn.space_to_batch_nd
    node paddings, block_shape=[1, 1]
    float pad_value=0.0
SparseConv2DAttrs: nn.sparse_conv2d
    node kernel_size=[1, 1]
    str layout="NHWC"
SparseDenseAttrs: nn.internal.sparse_dense_padded nn.sparse_dense
    bool sparse_lhs=False
SparseTransposeAttrs: nn.sparse_transpose
SubPixelAttrs: nn.depth_to_space nn.space_to_depth
    int block_size=1
    str layout="NCHW", mode="DCR"
UpSampling3DAttrs: dyn.nn.upsampling3d nn.upsampling3d
    float scale_d, scale_h, scale_w
    str layout="NCDHW", method="nearest_neighbor", coordinate_transformation_mode="half_pixel"
UpSamplingAttrs: dyn.nn.upsampling nn.upsampling
    float scale_h, scale_w
    bool align_corners=False
    str layout="NCHW", method="nearest_neighbor"
"""
