"""Attribute records of Relay's tensor, reduction and device operators.

The form is that of `attribute_schema`. Names and defaults are those of TVM 0.8 to 0.19.
"""

from __future__ import annotations

TENSOR_RECORDS = """
ArangeAttrs: arange
    node start, stop, step
    dtype dtype
ArgReduceAttrs: argmax argmin
    node axis=None
    bool keepdims=False, select_last_index=False, exclude=False
ArgsortAttrs: argsort sort
    int axis=-1
    bool is_ascend=True
    dtype dtype=""
AutoSchedulerLayoutTransformAttrs: auto_scheduler_layout_transform
    str src_layout, dst_layout
CastAttrs: cast reinterpret
    dtype dtype
CastHintAttrs: annotation.cast_hint
    dtype dtype
ClipAttrs: clip
    float a_min, a_max
CompilerAttrs: annotation.compiler_begin annotation.compiler_end
    str compiler
ConcatenateAttrs: concatenate qnn.concatenate
    int axis=0
DFTAttrs: dft
    node inverse=False
DeviceCopyAttrs: device_copy
    node src_virtual_device=None, dst_virtual_device=None
    int src_dev_type=0, dst_dev_type=0
DynExpandDimsAttrs: dyn.expand_dims
    int num_newaxis=1
EinsumAttrs: einsum
    str equation
ExpandDimsAttrs: expand_dims
    int axis, num_newaxis=1
FixedPointMultiplyAttrs: fixed_point_multiply
    int multiplier, shift
FixedPointMultiplyPerAxisAttrs: fixed_point_multiply_per_axis
    node axes
    bool is_lshift_required=False, is_rshift_required=False
GatherAttrs: gather
    node axis=None
GatherNDAttrs: gather_nd
    node batch_dims=0, index_rank=None
InitOpAttrs: broadcast_to dyn.broadcast_to dyn.full dyn.ones dyn.zeros full ones zeros
    node shape
    dtype dtype=""
LayoutTransformAttrs: layout_transform
    str src_layout, dst_layout
MatrixSetDiagAttrs: matrix_set_diag
    int k1=0, k2=0
    bool super_diag_right_align=True, sub_diag_right_align=False
MeshgridAttrs: meshgrid
    str indexing="ij"
MetaScheduleLayoutTransformAttrs: meta_schedule_layout_transform
    node index_map
MultinomialAttrs: random.multinomial
    node num_samples=1
NdarraySizeAttrs: ndarray_size
    dtype dtype=""
NormalAttrs: random.normal
    node out_shape
    dtype out_dtype=""
OnDeviceAttrs: on_device
    node virtual_device=None
    int device_type=0
    bool constrain_result=False, constrain_body=True, is_fixed=False
OneHotAttrs: dyn.one_hot one_hot
    int depth=1, axis=-1
    dtype dtype=""
ReduceAttrs: all any max mean min prod sum
    node axis=None
    bool keepdims=False, exclude=False
RepeatAttrs: repeat
    node repeats, axis=None
ReshapeAttrs: contrib_reverse_reshape dyn.reshape reshape
    node newshape
    bool allowzero=False
ReshapeLikeAttrs: reshape_like
    node lhs_end=None, rhs_end=None
    int lhs_begin=0, rhs_begin=0
ReverseAttrs: reverse
    node axis=None
ReverseSequenceAttrs: reverse_sequence
    node seq_axis=1, batch_axis=0
ScanopAttrs: cumprod cumsum
    node axis=None, exclusive=False
    dtype dtype=""
ScatterAddAttrs: scatter_add
    node axis=0
ScatterAttrs: scatter
    node axis=0
ScatterElementsAttrs: scatter_elements
    node axis=0
    str reduction="update"
ScatterNDAttrs: scatter_nd
    str mode="update"
SearchSortedAttrs: searchsorted
    bool right=False
    dtype dtype="int32"
SequenceMaskAttrs: sequence_mask
    int axis=0
    float mask_value=0.0
ShapeOfAttrs: shape_of
    dtype dtype=""
SliceLikeAttrs: slice_like
    node axes
SlidingWindowAttrs: sliding_window
    node window_shape, strides
    int axis
SparseToDenseAttrs: sparse_to_dense
    node output_shape
SplitAttrs: split
    node indices_or_sections
    int axis=0
SqueezeAttrs: dyn.squeeze squeeze
    node axis=None
StackAttrs: stack
    node axis=0
StftAttrs: stft
    int n_fft=-1, hop_length=-1, win_length=-1
    bool normalized=False, onesided=True
StridedSliceAttrs: dyn.strided_slice strided_slice
    node begin, end, strides, axes
    str slice_mode="end"
TakeAttrs: take
    node batch_dims=0, axis=None
    str mode="clip"
ThreefryGenerateAttrs: random.threefry_generate
    node out_shape
TileAttrs: dyn.tile tile
    node reps
TopkAttrs: dyn.topk topk
    node k
    int axis=-1
    bool is_ascend=False
    str ret_type="both"
    dtype dtype=""
TransposeAttrs: transpose
    node axes
TriluAttrs: trilu
    bool upper=True
UniformAttrs: random.uniform
    node out_shape
    dtype out_dtype=""
UniqueAttrs: unique
    bool sorted=True, return_counts=False
VarianceAttrs: variance
    node axis=None
    bool keepdims=False, exclude=False, unbiased=False
"""
