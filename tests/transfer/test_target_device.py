"""The kind of device of a target."""

import pytest

from tvm_ext.transfer.target_device import device_kind


@pytest.mark.parametrize(
    ("target", "device"),
    [
        ("llvm", "cpu"), ("llvm -keys=arm_cpu,cpu -device=arm_cpu", "cpu"), ("c", "cpu"),
        ("cuda -keys=cuda,gpu", "gpu"), ("opencl -device=mali", "gpu"), ("rocm", "gpu"),
        ("metal", "gpu"), ("vulkan", "gpu"), ("webgpu", "gpu"), ("nvptx", "gpu"),
        ("hexagon -keys=hexagon,cpu", "other"), ("ext_dev", "other"), ("llvmish", "other"),
        ("", "other"),
    ],
)  # fmt: skip
def test_device(target: str, device: str) -> None:
    assert device_kind(target) == device
