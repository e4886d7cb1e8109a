"""Where tensors lie: storages of bytes, and the images in them that tensors are.

Every activation is an image (rows, pixels, channels) with the channels next to each other: a tensor
(1, C, H, W) is the image (H, W, C), a tensor (M, K) is (M, 1, K). Layers that move no data get
views of the same storage: a `Concat` of channels is a storage whose slices its inputs are, an
`Interleave` one whose every other pixels they are, and a `Reshape` that keeps the order is another
image of the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import MatMul, Shape
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape

Image = tuple[int, int, int]


@dataclass(frozen=True)
class View:
    """An image in a storage.

    Attributes
    ----------
    storage : str
        Name of the storage.
    shape : tuple of int
        Rows, pixels of a row, channels of a pixel.
    row_pitch, pixel_pitch : int
        Bytes from one row, one pixel to the next. 0: there is one pixel, seen as many.
    offset : int
        Bytes from the storage's start to the first value.
    item_bytes : int
        1: int8; 4: int32.
    """

    storage: str
    shape: Image
    row_pitch: int
    pixel_pitch: int
    offset: int = 0
    item_bytes: int = 1

    @property
    def nbytes(self) -> int:
        """Bytes of its values."""
        return prod(self.shape) * self.item_bytes

    def at(self, row: int, pixel: int, channel: int) -> int:
        """Bytes from the storage's start to a value."""
        return (
            self.offset
            + row * self.row_pitch
            + pixel * self.pixel_pitch
            + channel * self.item_bytes
        )

    @property
    def repeats(self) -> bool:
        """Whether all pixels are the same bytes."""
        return self.row_pitch == self.pixel_pitch == 0

    def repeated(self, shape: Image) -> View:
        """A view of one pixel as an image of many; one of this shape already as it is."""
        if shape == self.shape:
            return self
        return replace(self, shape=shape, row_pitch=0, pixel_pitch=0)


@dataclass(frozen=True)
class Placement:
    """All views of a network.

    Attributes
    ----------
    views : dict of str to View
        By tensor.
    storages : dict of str to int
        Bytes of each storage.
    permuted : dict of str to (channels, rows, pixels)
        Flattened images that are still in the order (rows, pixels, channels): the products that
        read them have their weights permuted.
    """

    views: dict[str, View]
    storages: dict[str, int]
    permuted: dict[str, tuple[int, int, int]]


def image_shape(shape: Shape) -> Image:
    """(1, C, H, W) to (H, W, C), (M, K) to (M, 1, K)."""
    return (shape[2], shape[3], shape[1]) if len(shape) == 4 else (shape[0], 1, shape[1])


def dense_view(storage: str, shape: Image, item_bytes: int = 1) -> View:
    """The image that fills a storage."""
    pixel = shape[2] * item_bytes
    return View(storage, shape, shape[1] * pixel, pixel, 0, item_bytes)


def place_tensors(network: Network) -> Placement:
    """Give every tensor a view, sharing storages where that saves a move."""
    slices = _slices(network)
    aliases, permuted = _aliases(network, slices)
    views: dict[str, View] = {}
    # A slice's whole is a tensor behind it, the source of an alias is one before it.
    for name in reversed([*network.inputs, *(layer.output for layer in network.layers)]):
        shape = image_shape(network.tensors[name].shape)
        if name in slices:
            layer, index = slices[name]
            shapes = [image_shape(network.tensors[part].shape) for part in layer.inputs]
            views[name] = parts_of(layer, views[layer.output], shapes)[index]
        elif name not in aliases:
            views[name] = dense_view(name, shape)
    for layer in network.layers:
        if layer.output in aliases:
            storage = views[aliases[layer.output]].storage
            shape = image_shape(network.tensors[layer.output].shape)
            views[layer.output] = dense_view(storage, shape)
    storages = {view.storage: network.tensors[view.storage].size for view in views.values()}
    return Placement(views, storages, permuted)


def parts_of(layer: Concat | Interleave, whole: View, shapes: Sequence[Image]) -> list[View]:
    """Where in its result each input of a layer that only moves images belongs."""
    if isinstance(layer, Interleave):
        rows, columns = layer.factors
        return [
            replace(
                whole, shape=shape, row_pitch=whole.row_pitch * rows,
                pixel_pitch=whole.pixel_pitch * columns,
                offset=whole.at(index // columns, index % columns, 0),
            )
            for index, shape in enumerate(shapes)
        ]  # fmt: skip
    parts, channel = [], 0
    for shape in shapes:
        parts.append(replace(whole, shape=shape, offset=whole.at(0, 0, channel)))
        channel += shape[2]
    return parts


def _slices(network: Network) -> dict[str, tuple[Concat | Interleave, int]]:
    """Tensors that can be made as a part of another: the layer that joins them, which part.

    An image that an `Interleave` repeats is made on its own: it is read more than once.
    """
    reshaped = {name for layer in network.layers if isinstance(layer, Reshape)
                for name in (*layer.inputs, layer.output)}  # fmt: skip
    own = {*network.inputs, *network.outputs, *reshaped}
    slices: dict[str, tuple[Concat | Interleave, int]] = {}
    for layer in network.layers:
        if not isinstance(layer, (Concat, Interleave)) or layer.output in reshaped:
            continue
        for index, name in enumerate(layer.inputs):
            repeats = isinstance(layer, Interleave) and layer.inputs.count(name) > 1
            if name not in own and name not in slices and not repeats:
                slices[name] = (layer, index)
    return slices


def _aliases(
    network: Network, slices: dict[str, tuple[Concat | Interleave, int]]
) -> tuple[dict[str, str], dict[str, tuple[int, int, int]]]:
    """Results of reshapes that are the same bytes: their input, and those that are permuted."""
    aliases: dict[str, str] = {}
    permuted: dict[str, tuple[int, int, int]] = {}
    for layer in network.layers:
        if not isinstance(layer, Reshape):
            continue
        source, target = layer.inputs[0], layer.output
        before, after = (network.tensors[name].shape for name in (source, target))
        if target in network.outputs and _root(aliases, source) in network.inputs:
            continue
        if source in permuted:
            continue
        if _in_order(before) and _in_order(after):
            aliases[target] = source
        elif len(before) == 4 and after == (1, prod(before)) and _only_products(network, target):
            aliases[target] = source
            permuted[target] = (before[1], before[2], before[3])
    return aliases, permuted


def _root(aliases: dict[str, str], name: str) -> str:
    while name in aliases:
        name = aliases[name]
    return name


def _in_order(shape: Shape) -> bool:
    """Whether channels last is the logical order."""
    return len(shape) == 2 or shape[1] == 1 or shape[2] == shape[3] == 1


def _only_products(network: Network, name: str) -> bool:
    readers = [layer for layer in network.layers if name in layer.inputs]
    return name not in network.outputs and all(isinstance(x, MatMul) for x in readers)
