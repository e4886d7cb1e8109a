"""Single convolutions and matmuls against the FMA peak, and grouped ones against their MACs.

Run ``python -m benchmarks.bench_kernels [--write]``. One thread. Runs of the peak's FMA chains
alternate with those of each kernel, since the clock of a shared machine wanders.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
import numpy as np
from rich.console import Console

from benchmarks import results
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads

# (in channels, map, out channels, kernel, stride): layers of ResNet-50 and VGG.
CONVS = (
    (64, 56, 256, 1, 1), (256, 56, 64, 1, 1), (128, 28, 512, 1, 1), (512, 28, 128, 1, 1),
    (256, 14, 1024, 1, 1), (1024, 14, 256, 1, 1), (512, 7, 2048, 1, 1), (64, 56, 64, 3, 1),
    (128, 28, 128, 3, 1), (256, 14, 256, 3, 1), (128, 56, 128, 3, 2), (256, 28, 256, 3, 2),
)  # fmt: skip
MATMULS = ((128, 384, 1536), (128, 1536, 384), (512, 512, 512), (256, 1024, 1024))
# (network, channels, map): layers whose groups grow.
GROUPED = (
    ("WRN-40-2", 32, 32), ("WRN-40-2", 64, 16), ("WRN-40-2", 128, 8), ("ResNet-34", 64, 56),
    ("ResNet-34", 128, 28), ("ResNet-34", 256, 14), ("ResNet-34", 512, 7),
    ("MobileNetV2", 192, 14), ("MobileNetV2", 576, 14),
)  # fmt: skip
GROUPS = (2, 4, 8, 16)
_REPEATS = 40
# Runs of the kernel, and of the peak, between two changes.
_RUNS = 3


def peak_rows() -> list[list[str]]:
    """One row a kernel: time, GFLOP/s, share of the peak measured in turn with it, error."""
    from benchmarks.kernels import conv_kernel, matmul_kernel
    from tvm_ext.schedules.matmul_workload import MatmulWorkload
    from tvm_ext.schedules.peak import fma_probe
    from tvm_ext.target import resolve

    target = resolve()
    kernels = []
    for c, size, k, kernel, stride in CONVS:
        name = f"conv {kernel}x{kernel}/{stride}, {c}x{size}x{size} to {k}"
        kernels.append(
            (name, conv_kernel("spatial_pack", _conv(c, size, k, kernel, stride), target))
        )
    for m, k, n in MATMULS:
        workload = MatmulWorkload.of((m, k), (k, n), packed=True)
        kernels.append((f"matmul {m}x{k}x{n}", matmul_kernel("matmul", workload, target)))
    rows = []
    probe = fma_probe(target)
    for name, kernel in kernels:
        seconds, shares = [], []
        for _ in range(_REPEATS):
            peak = probe.rate(_RUNS)
            seconds.append(kernel.seconds(_RUNS).min())
            shares.append(kernel.workload.flops / seconds[-1] / peak)
        median = float(np.median(seconds))
        rows.append(
            [
                name, kernel.name, f"{min(seconds) * 1e3:.3f}", f"{median * 1e3:.3f}",
                f"{kernel.workload.flops / median / 1e9:.1f}", f"{np.median(shares):.0%}",
                f"{kernel.error:.1e}",
            ]
        )  # fmt: skip
    return rows


def grouped_rows() -> list[list[str]]:
    """One row a layer: GSPC's time for each g over (standard time / g)."""
    from benchmarks.kernels import conv_kernel
    from tvm_ext.target import resolve

    target = resolve()
    rows = []
    for network, channels, size in GROUPED:
        standard = conv_kernel("spatial_pack", _conv(channels, size, channels, 3, 1), target)
        base = standard.seconds(_REPEATS).min()
        cells = [f"{network} {channels}x{size}x{size}", f"{base * 1e3:.3f}"]
        for groups in (*GROUPS, channels):
            workload = _conv(channels, size, channels, 3, 1, groups)
            seconds = conv_kernel("gspc", workload, target).seconds(_REPEATS).min()
            expected = base / groups
            mark = "" if channels // groups >= 16 else "*"
            cells.append(
                f"{expected * 1e3:.3f} / {seconds * 1e3:.3f} = {seconds / expected:.2f}{mark}"
            )
        rows.append(cells)
    return rows


def _conv(channels: int, size: int, out: int, kernel: int, stride: int, groups: int = 1):  # type: ignore[no-untyped-def]
    from tvm_ext.schedules.conv_workload import ConvWorkload

    pad = (kernel // 2,) * 2
    return ConvWorkload(
        1, channels, (size, size), out, (kernel, kernel), (stride, stride), pad, pad, (1, 1), groups
    )


def _section(title: str, text: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    machine = describe_machine()
    return (
        f"## {title}\n\n`python -m benchmarks.bench_kernels` on {machine['cpu']}, "
        f"{', '.join(machine['isa'])}. {text}\n\n{results.markdown_table(header, rows)}"
    )


@click.command()
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(write: bool) -> None:
    """Time single kernels on one thread."""
    prepare_tvm_threads(1)
    console = Console()
    peak = _section(
        "Kernels against the FMA peak, 1 thread",
        "Runs of the kernel and of independent FMA chains in turn, 40 rounds of 3 runs, the best "
        "of each round: least and median time, and the median share of what the chains reach.",
        ("kernel", "algorithm", "least ms", "ms", "GFLOP/s", "of peak", "error"),
        peak_rows(),
    )
    console.print(peak, markup=False)
    grouped = _section(
        "Grouped spatial pack (GSPC) 3x3, 1 thread",
        "For each g: expected ms (standard convolution's time / g) / measured ms = ratio. "
        "* marks fewer than 16 channels a group.",
        ("layer", "g = 1, ms", *(f"g = {g}" for g in GROUPS), "g = N"),
        grouped_rows(),
    )
    console.print(grouped, markup=False)
    if write:
        results.write_section("kernels", peak)
        results.write_section("gspc", grouped)


if __name__ == "__main__":
    main()
