"""Hardware descriptions: what is refused, and YAML."""

import pytest

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import AcceleratorError


def test_lanes_and_variant_by_hand():
    made = Accelerator("edge", pes=96, sram_bytes=2**20, parallel="input", pixel_parallel=3)
    assert made.lanes == 32
    assert made.variant == (
        "edge: pes=96 sram_bytes=1048576 parallel=input depthwise=hardware pixel_parallel=3"
    )


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("name", "", "a printable text"),
        ("name", "a\nb", "a printable text"),
        ("name", None, "a printable text"),
        ("pes", 0, "a whole number from 1 to 65536"),
        ("pes", 64.0, "a whole number from 1"),
        ("pes", True, "a whole number from 1"),
        ("sram_bytes", 2**32 + 1, "a whole number from 1 to 4294967296"),
        ("sram_bytes", "512KiB", "a whole number from 1"),
        ("dma_bytes_per_cycle", 0, "a whole number from 1 to 65536"),
        ("dma_latency_cycles", -1, "a whole number from 0 to 1048576"),
        ("fill_cycles", -1, "a whole number from 0 to 1048576"),
        ("parallel", "both", "output, input"),
        ("depthwise", True, "none, software, hardware"),
        ("double_buffering", 1, "true, false"),
        ("pixel_parallel", 3, "a divisor of pes=64"),
        ("clock_hz", 0, "a finite number above 0"),
        ("clock_hz", float("inf"), "a finite number above 0"),
        ("energy_per_mac_pj", -0.1, "a finite number from 0"),
        ("energy_per_dram_byte_pj", float("nan"), "a finite number from 0"),
        ("energy_per_sram_byte_pj", "6", "a finite number from 0"),
    ],
)
def test_refusals(option, value, allowed):
    with pytest.raises(AcceleratorError, match=f"{option} is .*; allowed: {allowed}"):
        Accelerator(**{option: value})


def test_yaml_and_files(tmp_path):
    made = Accelerator("edge", pes=128, parallel="input", clock_hz=2.5e8, double_buffering=False)
    assert Accelerator.from_yaml(made.to_yaml()) == made
    assert Accelerator.from_yaml("name: edge\npes: 128") == Accelerator("edge", pes=128)
    made.save(tmp_path / "edge.yaml")
    assert Accelerator.load(tmp_path / "edge.yaml") == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the hardware description is not YAML"),
        ("- 1", r"is a mapping, not \[1\]"),
        ("pe: 64", r"unknown keys \['pe'\]; allowed: name, pes"),
        ("1: 64", r"unknown keys \['1'\]"),
        ("pes: many", "pes is 'many'"),
    ],
)
def test_yaml_that_is_refused(text, message):
    with pytest.raises(AcceleratorError, match=message):
        Accelerator.from_yaml(text)


def test_files_that_are_refused(tmp_path):
    with pytest.raises(AcceleratorError, match="can't read the hardware description"):
        Accelerator.load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(AcceleratorError, match="can't read the hardware description"):
        Accelerator.load(tmp_path / "bytes.yaml")
    with pytest.raises(AcceleratorError, match="can't write"):
        Accelerator().save(tmp_path / "none" / "edge.yaml")
