"""A small one-stage object detector, seeded random weights.

The backbone and the PAN neck are those of YOLOv8n, with SiLU as Sigmoid and Mul and batch norms
folded into the convolutions, as exporters leave them; each of the three levels has a box and a
class branch, and the boxes are decoded from anchors as YOLOv5's exporter writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from benchmarks.zoo.builder import GraphBuilder
from benchmarks.zoo.calibrate import calibrate
from benchmarks.zoo.random_weights import biases, conv_weight
from benchmarks.zoo.recipe import Inputs, Recipe, random_image

# YOLOv5's anchors (width, height) for the strides 8, 16 and 32, in pixels of a 640-pixel image.
_ANCHORS = (
    (8, ((10, 13), (16, 30), (33, 23))),
    (16, ((30, 61), (62, 45), (59, 119))),
    (32, ((116, 90), (156, 198), (373, 326))),
)
_ANCHOR_IMAGE = 640
# Repeats of the bottleneck in the backbone's four stages.
_DEPTHS = (1, 2, 2, 1)
_CALIBRATION_IMAGES = 8


@dataclass(frozen=True)
class Size:
    """The dimensions of a detector.

    Attributes
    ----------
    image : int
        Height and width in pixels, a multiple of 32.
    width : int
        Channels of the stem; the last stage has 16 times as many.
    classes : int
    """

    image: int = 320
    width: int = 16
    classes: int = 80


def build(size: Size) -> onnx.ModelProto:
    """Make the model: input (1, 3, image, image) to (1, boxes, 5 + classes).

    A row is a box's centre, width and height as fractions of the image, its objectness and the
    classes' scores.
    """
    net = _Network(size)
    levels = net.neck(net.backbone("input"))
    rows = [net.head(x, i) for i, x in enumerate(levels)]
    output = net.graph.op("Concat", *rows, axis=1)
    boxes = sum(len(anchors) * (size.image // stride) ** 2 for stride, anchors in _ANCHORS)
    sample = images(size, net.rng)
    model = net.graph.model(sample, output, (1, boxes, 5 + size.classes))
    # At the coarsest level, behind the large pools, an image's pixels differ less than images do.
    batch = [sample, *(images(size, net.rng) for _ in range(_CALIBRATION_IMAGES - 1))]
    return calibrate(model, {"input": np.concatenate([image["input"] for image in batch])})


def images(size: Size, rng: np.random.Generator) -> Inputs:
    """Draw a random image."""
    return {"input": random_image(rng, size.image)}


class _Network:
    """A graph, its dimensions, the random weights that go into it and its tensors' channels."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.graph = GraphBuilder("detector")
        self.rng = np.random.default_rng(320)
        self.channels = {"input": 3}

    def conv(self, x: str, name: str, cout: int, kernel: int = 1, stride: int = 1) -> str:
        half = kernel // 2
        weight = conv_weight(self.rng, cout, self.channels[x], kernel, kernel)
        bias = biases(self.rng, cout)
        y = self.graph.conv(x, name, weight, bias=bias, stride=stride, pads=(half, half))
        self.channels[y] = cout
        return y

    def conv_silu(self, x: str, name: str, cout: int, kernel: int = 1, stride: int = 1) -> str:
        x = self.conv(x, name, cout, kernel, stride)
        y = self.graph.op("Mul", x, self.graph.op("Sigmoid", x))
        self.channels[y] = cout
        return y

    def concat(self, *parts: str) -> str:
        y = self.graph.op("Concat", *parts, axis=1)
        self.channels[y] = sum(self.channels[part] for part in parts)
        return y

    def split_stage(self, x: str, name: str, cout: int, repeats: int, residual: bool) -> str:
        """Append YOLOv8's C2f: bottlenecks on one half of the channels, all outputs joined."""
        half = cout // 2
        halves = self.graph.split(self.conv_silu(x, f"{name}.cv1", cout), [half, half], 1)
        self.channels.update(dict.fromkeys(halves, half))
        parts = list(halves)
        for i in range(repeats):
            y = self.conv_silu(parts[-1], f"{name}.m.{i}.cv1", half, 3)
            y = self.conv_silu(y, f"{name}.m.{i}.cv2", half, 3)
            if residual:
                y = self.graph.op("Add", parts[-1], y)
                self.channels[y] = half
            parts.append(y)
        return self.conv_silu(self.concat(*parts), f"{name}.cv2", cout)

    def pyramid_pool(self, x: str, name: str) -> str:
        """Append SPPF: three max pools one after the other, all joined."""
        cout = self.channels[x]
        parts = [self.conv_silu(x, f"{name}.cv1", cout // 2)]
        for _ in range(3):
            y = self.graph.op(
                "MaxPool", parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]
            )
            self.channels[y] = cout // 2
            parts.append(y)
        return self.conv_silu(self.concat(*parts), f"{name}.cv2", cout)

    def upsample(self, x: str) -> str:
        scales = self.graph.weight("twice", np.array([1, 1, 2, 2], np.float32))
        y = self.graph.op(
            "Resize",
            *(x, "", scales),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        self.channels[y] = self.channels[x]
        return y

    def backbone(self, x: str) -> list[str]:
        """Append the backbone; its levels have strides 8, 16 and 32."""
        width, levels = self.size.width, []
        x = self.conv_silu(x, "stem", width, 3, 2)
        for i, depth in enumerate(_DEPTHS):
            width *= 2
            x = self.conv_silu(x, f"stage{i}.down", width, 3, 2)
            x = self.split_stage(x, f"stage{i}.c2f", width, depth, residual=True)
            levels.append(x)
        levels[-1] = self.pyramid_pool(levels[-1], "sppf")
        return levels[1:]

    def neck(self, levels: list[str]) -> list[str]:
        """Append the path down to the finest level and the path back up."""
        fine, middle, coarse = levels
        widths = [self.channels[x] for x in levels]
        middle = self.concat(self.upsample(coarse), middle)
        middle = self.split_stage(middle, "fpn.middle", widths[1], 1, residual=False)
        fine = self.concat(self.upsample(middle), fine)
        fine = self.split_stage(fine, "fpn.fine", widths[0], 1, residual=False)
        down = self.conv_silu(fine, "pan.down1", widths[0], 3, 2)
        middle = self.split_stage(
            self.concat(down, middle), "pan.middle", widths[1], 1, residual=False
        )
        down = self.conv_silu(middle, "pan.down2", widths[1], 3, 2)
        coarse = self.split_stage(
            self.concat(down, coarse), "pan.coarse", widths[2], 1, residual=False
        )
        return [fine, middle, coarse]

    def head(self, x: str, level: int) -> str:
        """Append a level's branches and decode its boxes, one a row."""
        graph, name, classes = self.graph, f"head{level}", self.size.classes
        stride, anchors = _ANCHORS[level]
        cells, count = self.size.image // stride, len(anchors)
        parts = []
        for branch, values in (("box", 5), ("class", classes)):
            y = self.conv_silu(x, f"{name}.{branch}.0", 4 * self.size.width, 3)
            y = self.conv_silu(y, f"{name}.{branch}.1", 4 * self.size.width, 3)
            y = self.conv(y, f"{name}.{branch}.2", count * values)
            shape = graph.integers(f"{name}.{branch}.by_anchor", [-1, count, values, cells, cells])
            parts.append(graph.op("Transpose", graph.op("Reshape", y, shape), perm=[0, 1, 3, 4, 2]))
        y = graph.op("Sigmoid", graph.op("Concat", *parts, axis=-1))
        y = self.decode(y, name, cells, np.array(anchors, np.float32) / _ANCHOR_IMAGE)
        shape = graph.integers(f"{name}.rows", [-1, count * cells**2, 5 + classes])
        return graph.op("Reshape", y, shape)

    def decode(self, y: str, name: str, cells: int, anchors: np.ndarray) -> str:
        """Turn (1, anchors, cells, cells, 5 + classes) in [0, 1] into boxes and scores."""
        graph, two = self.graph, self.graph.scalar("two", 2.0)
        whole = (1, len(anchors), cells, cells, 2)
        rows, columns = np.indices((cells, cells), np.float32)
        corner = np.broadcast_to(np.stack([columns, rows], -1) - 0.5, whole)
        extent = np.broadcast_to(anchors[None, :, None, None], whole)
        centre, wide, scores = graph.split(y, [2, 2, 1 + self.size.classes], 4)
        centre = graph.op("Add", graph.op("Mul", centre, two), graph.weight(f"{name}.grid", corner))
        centre = graph.op("Mul", centre, graph.scalar(f"{name}.cell", 1.0 / cells))
        wide = graph.op("Pow", graph.op("Mul", wide, two), two)
        wide = graph.op("Mul", wide, graph.weight(f"{name}.anchors", extent))
        return graph.op("Concat", centre, wide, scores, axis=4)


RECIPES = (
    Recipe(
        "detector",
        "YOLO-like detector with a PAN neck, 320 pixels, seeded random weights",
        partial(build, Size()),
        partial(images, Size()),
    ),
)
