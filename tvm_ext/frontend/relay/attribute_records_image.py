"""Attribute records of Relay's image, vision and quantised operators.

The form is that of `attribute_schema`. Names and defaults are those of TVM 0.8 to 0.19.
"""

from __future__ import annotations

IMAGE_RECORDS = """
AffineGridAttrs: image.affine_grid
    node target_shape
AllClassNonMaximumSuppressionAttrs: vision.all_class_non_max_suppression
    str output_format="onnx"
BroadcastAttrs: qnn.add qnn.mul qnn.subtract
    int lhs_axis=-1, rhs_axis=-1
CropAndResizeAttrs: image.crop_and_resize
    node crop_size=None
    float extrapolation_value=0.0
    str layout="NCHW", method="bilinear"
    dtype out_dtype=""
DequantizeAttrs: qnn.dequantize qnn.simulated_dequantize
    int axis=-1
    dtype out_dtype="float32"
Dilation2DAttrs: image.dilation2d
    node strides=[1, 1], padding=[0, 0], dilations=[1, 1]
    str data_layout="NCHW", kernel_layout="IHW"
    dtype out_dtype=""
GetValidCountsAttrs: vision.get_valid_counts
    node score_threshold
    int id_index=0, score_index=1
GridSampleAttrs: image.grid_sample
    bool align_corners=True
    str method="bilinear", layout="NCHW", padding_mode="zeros"
MultiBoxPriorAttrs: vision.multibox_prior
    node sizes=[1.0], ratios=[1.0], steps=[-1.0, -1.0], offsets=[0.5, 0.5]
    bool clip=False
MultiBoxTransformLocAttrs: vision.multibox_transform_loc
    node variances=[0.1, 0.1, 0.2, 0.2]
    float threshold=0.01
    bool clip=True, keep_background=False
NonMaximumSuppressionAttrs: vision.non_max_suppression
    int top_k=-1, coord_start=2, score_index=1, id_index=0
    bool force_suppress=False, return_indices=True, invalid_to_bottom=False
ProposalAttrs: vision.proposal
    node scales=[4.0, 8.0, 16.0, 32.0], ratios=[0.5, 1.0, 2.0]
    int feature_stride=16, rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=300, rpn_min_size=16
    float threshold=0.7
    bool iou_loss=False
QuantizeAttrs: qnn.quantize
    int axis=-1
    dtype out_dtype
ROIAlignAttrs: vision.roi_align
    node pooled_size
    int sample_ratio=-1
    float spatial_scale
    str layout="NCHW", mode="avg"
ROIPoolAttrs: vision.roi_pool
    node pooled_size
    float spatial_scale
    str layout="NCHW"
RegularNonMaximumSuppressionAttrs: vision.regular_non_max_suppression
    int max_detections_per_class, max_detections, num_classes
    float iou_threshold, score_threshold
RequantizeAttrs: qnn.requantize
    int axis=-1
    str rounding="UPWARD", compute_dtype="None"
    dtype out_dtype=""
Resize1DAttrs: image.resize1d
    node size=None, roi=None
    int cubic_exclude=0
    float cubic_alpha=-0.5, extrapolation_value=0.0
    str layout="NCW", method="linear", coordinate_transformation_mode="half_pixel"
    str rounding_method="round"
    dtype out_dtype=""
Resize2DAttrs: dyn.image.resize2d image.resize2d
    node size=None, roi=None
    int cubic_exclude=0
    float cubic_alpha=-0.5, extrapolation_value=0.0
    str layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel"
    str rounding_method="round"
    dtype out_dtype=""
Resize3DAttrs: image.resize3d
    node size=None, roi=None
    int cubic_exclude=0
    float cubic_alpha=-0.5, extrapolation_value=0.0
    str layout="NCDHW", method="linear", coordinate_transformation_mode="half_pixel"
    str rounding_method="round"
    dtype out_dtype=""
SimulatedQuantizeAttrs: qnn.simulated_quantize
    int axis=-1
YoloReorgAttrs: vision.yolo_reorg
    node stride=1
"""
