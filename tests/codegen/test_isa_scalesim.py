"""Convolutions' cycles against an independent simulator of systolic arrays.

The numbers are SCALE-Sim 3.0.0's (scalesim on PyPI, with NumPy 2.3): `Total Cycles` of
its COMPUTE_REPORT.csv plus one, as it counts from 0; InterfaceBandwidth CALC, memories of 512 KiB,
inputs of the size that the windows reach. `benchmarks.bench_scalesim` runs it on whole networks.
"""

import pytest

from tvm_ext.codegen import isa
from tvm_ext.codegen.accelerator import Accelerator

# Pixels, taps, channels and filters of 14x14 results of a 3x3 window, and of 4x3 results of a 3x3
# window with stride 2.
SAME, ODD = (196, 9, 64, 64), (12, 9, 10, 9)

OUTPUT_STATIONARY = [
    (SAME, (32, 32), 8932),
    (SAME, (1, 64), 125244),
    (SAME, (8, 8), 118000),
    (ODD, (32, 32), 152),
    (ODD, (1, 64), 1836),
    (ODD, (8, 8), 416),
    (ODD, (4, 8), 600),
]


@pytest.mark.parametrize(("layer", "array", "cycles"), OUTPUT_STATIONARY)
def test_output_parallel(layer, array, cycles):
    """Dataflow os of G x L PEs: what it needs besides our cycles is fill and drain, G + L - 2
    cycles each time that G pixels and L filters have been summed.
    """
    pixels, taps, channels, filters = layer
    height, width = array
    hardware = Accelerator(pes=height * width, pixel_parallel=height, fill_cycles=0)
    folds = -(-pixels // height) * -(-filters // width)
    ours = isa.conv_cycles(hardware, pixels, taps, channels, filters)
    assert cycles == ours + folds * (height + width - 2)


def test_input_parallel():
    """Dataflow ws of L x 1 PEs: L cycles to shift weights in, L - 1 until the last row has values.
    64 channels of a tap are one fold for 64 lanes.
    """
    pixels, taps, channels, filters = SAME
    hardware = Accelerator(pes=64, parallel="input", fill_cycles=0)
    ours = isa.conv_cycles(hardware, pixels, taps, channels, filters)
    assert ours + taps * filters * (2 * 64 - 1) == 186048


@pytest.mark.parametrize(("lanes", "cycles"), [(64, 2502), (48, 1926)])
def test_input_parallel_with_few_channels(lanes, cycles):
    """The array sums 9 taps of 10 channels together, in 2 folds; an instruction sums a tap at a
    time, in 9 passes.
    """
    pixels, taps, channels, filters = ODD
    hardware = Accelerator(pes=lanes, parallel="input", fill_cycles=0)
    assert cycles == 2 * filters * (pixels + 2 * lanes - 1)
    assert isa.conv_cycles(hardware, pixels, taps, channels, filters) == 9 * filters * pixels
