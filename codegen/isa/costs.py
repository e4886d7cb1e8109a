"""The timing model's terms: cycles of each kind of instruction, without waiting.

All arguments are sizes in elements; `docs/simulator.md` has the terms with worked examples.
"""

from __future__ import annotations

from tvm_ext.codegen.accelerator import Accelerator

SET_CYCLES = 1


def conv_cycles(
    accelerator: Accelerator, pixels: int, taps: int, in_channels: int, out_channels: int
) -> int:
    """OP_CONV, OP_CONV_RELU, and OP_MAT_MUL with rows as pixels and one tap.

    `pixels` are the output's, `taps` the window's.
    """
    groups = -(-pixels // accelerator.pixel_parallel)
    if accelerator.parallel == "output":
        products = in_channels * -(-out_channels // accelerator.lanes)
    else:
        products = out_channels * -(-in_channels // accelerator.lanes)
    return accelerator.fill_cycles + groups * taps * products


def depth_conv_cycles(accelerator: Accelerator, pixels: int, taps: int, channels: int) -> int:
    """OP_DEPTH_CONV and OP_POOL: one tap of as many channels as there are lanes a cycle."""
    groups = -(-pixels // accelerator.pixel_parallel)
    return accelerator.fill_cycles + groups * taps * -(-channels // accelerator.lanes)


def elementwise_cycles(accelerator: Accelerator, elements: int) -> int:
    """Instructions that work value by value: all PEs are lanes."""
    return accelerator.fill_cycles + -(-elements // accelerator.pes)


def bus_cycles(accelerator: Accelerator, run_bytes: int, runs: int) -> int:
    """The bus's cycles for `runs` runs of bytes next to each other in system memory."""
    return runs * -(-run_bytes // accelerator.dma_bytes_per_cycle)


def dma_cycles(accelerator: Accelerator, run_bytes: int, runs: int) -> int:
    """OP_DMA_READ and OP_DMA_WRITE."""
    return accelerator.dma_latency_cycles + bus_cycles(accelerator, run_bytes, runs)
