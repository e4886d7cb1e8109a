"""A convolutional network on scikit-learn's digits: the accelerator's bits are ONNX Runtime's."""

from dataclasses import replace

import pytest
import torch

from benchmarks.accelerator_digits import cells, check, measure, trained
from benchmarks.bench_accelerator import digits_section
from tvm_ext.codegen.accelerator import Accelerator


@pytest.fixture(scope="module")
def network():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield trained("digits", 2)
    torch.set_num_threads(threads)


def test_all_test_images_bit_for_bit(network):
    row = measure(network, Accelerator("edge", sram_bytes=16 * 1024), "uint8")
    assert (row.images, row.equal, row.steps) == (360, 360, 0)
    # Everything but the conversions of the input and of the result.
    assert row.offloaded == pytest.approx(1, rel=1e-3)
    assert min(row.accuracies) > 0.9
    assert row.accuracies[1] == row.accuracies[2]
    check([row])
    with pytest.raises(RuntimeError, match="digits, uint8: 1 of 360 images differ"):
        check([replace(row, equal=359)])
    assert " | ".join(cells(row)) in digits_section([row])
