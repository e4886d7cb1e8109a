"""A network with real weights on photographs: the same answers as ONNX Runtime's."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from skimage import data

import tvm_ext
from benchmarks import zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.integer_session import integer_session
from benchmarks.zoo.efficientnet_lite import preprocess

TOLERANCE = 1e-4
# Sample images that scikit-image's wheel holds, so that none is downloaded.
COLOUR = ("astronaut", "chelsea", "coffee", "rocket", "retina", "hubble_deep_field",
          "immunohistochemistry")  # fmt: skip
GREY = ("camera", "coins", "moon", "page", "text", "brick", "grass", "gravel")
# ImageNet classes that name what the picture shows.
SHOWN = {
    "chelsea": {281, 282, 283, 284, 285},  # tabby, tiger cat, Persian, Siamese, Egyptian
    "coffee": {504, 967, 968},  # coffee mug, espresso, cup
    "rocket": {657, 744, 812},  # missile, projectile, space shuttle
}


@pytest.fixture(scope="module")
def network() -> onnx.ModelProto:
    return zoo.recipe("efficientnet_lite0").build()


@pytest.fixture(scope="module")
def pictures() -> dict[str, np.ndarray]:
    """Each picture as the network's input."""
    found = {name: getattr(data, name)() for name in COLOUR}
    found |= {name: np.stack([getattr(data, name)()] * 3, axis=-1) for name in GREY}
    return {name: preprocess(picture) for name, picture in found.items()}


@pytest.fixture(scope="module")
def logits(
    network: onnx.ModelProto, pictures: dict[str, np.ndarray]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """For each picture ours and ONNX Runtime's."""
    executable = tvm_ext.build(network)
    session = integer_session(network)
    return {
        name: (executable(x), session.run(None, {"input": x})[0]) for name, x in pictures.items()
    }


@pytest.mark.parametrize("name", [*COLOUR, *GREY])
def test_top_1_and_logits_agree(
    logits: dict[str, tuple[np.ndarray, np.ndarray]], name: str
) -> None:
    ours, theirs = logits[name]
    assert ours.argmax() == theirs.argmax()
    assert max_relative_error(ours, theirs) <= TOLERANCE


@pytest.mark.parametrize("name", SHOWN)
def test_the_answer_is_what_the_picture_shows(
    logits: dict[str, tuple[np.ndarray, np.ndarray]], name: str
) -> None:
    assert int(logits[name][0].argmax()) in SHOWN[name]
