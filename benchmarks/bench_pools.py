"""Convolution, ReLU and max pool as one kernel against a convolution and a pool: ``--write``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks import harness, results
from benchmarks.accuracy import max_relative_error
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads, set_tvm_threads


@dataclass(frozen=True)
class Shape:
    """A convolution of square maps, kernels and windows, and the pool behind it."""

    name: str
    channels: tuple[int, int]
    size: int
    kernel: int
    stride: int
    padding: int
    pool: tuple[int, int, int]  # window, stride, padding


SHAPES = (
    *(
        Shape(f"VGG {c} x {n} x {n}", (c, c), n, 3, 1, 1, (2, 2, 0))
        for c, n in ((64, 224), (128, 112), (256, 56), (512, 28), (512, 14))
    ),
    Shape("first layer, 3 to 64 x 224 x 224", (3, 64), 224, 3, 1, 1, (2, 2, 0)),
    Shape("ResNet stem", (3, 64), 224, 7, 2, 3, (3, 2, 1)),
    Shape("SqueezeNet stem", (3, 64), 224, 3, 2, 0, (3, 2, 0)),
)


def module(shape: Shape) -> Any:
    """The three operators on random weights."""
    import tvm
    from tvm import relax

    inputs, outputs = shape.channels
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((outputs, inputs, shape.kernel, shape.kernel))
    weight /= shape.kernel * np.sqrt(inputs)
    x = relax.Var("x", relax.TensorType((1, inputs, shape.size, shape.size), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(
                relax.op.nn.conv2d(
                    x, relax.const(weight.astype("float32")),
                    strides=shape.stride, padding=shape.padding,
                )
            )  # fmt: skip
            window, stride, padding = shape.pool
            pooled = relax.op.nn.max_pool2d(
                builder.emit(relax.op.nn.relu(y)), (window, window), stride, padding
            )
            out = builder.emit_output(pooled)
        builder.emit_func_output(out)
    made: tvm.IRModule = builder.get()
    return made


def compare(shape: Shape, threads: int, rounds: int) -> list[str]:
    """The cells of a shape's row."""
    from benchmarks.fusion_row import build_grouped
    from tvm_ext.passes import UniversalFusion
    from tvm_ext.pipeline import graph_pipeline

    set_tvm_threads(threads)
    built = {
        name: build_grouped(
            graph_pipeline(UniversalFusion(lambda *_, fused=fused: fused))(module(shape)), ["y"]
        )
        for name, fused in (("pair", False), ("one", True))
    }
    inputs = built["one"].random_inputs()
    error = max_relative_error(built["one"](inputs), built["pair"](inputs))
    kernels = [len(exe.plan) for exe in built.values()]
    if kernels != [2, 1]:
        raise RuntimeError(f"{shape.name}: {kernels} kernels, not 2 and 1")
    for exe in built.values():
        exe.set_inputs(inputs)
    result = harness.compare({n: exe.run for n, exe in built.items()}, rounds=rounds)
    algorithm = next(iter(built["one"].plan)).algorithm
    return [
        shape.name, str(threads), algorithm, f"{result.median('pair') * 1e3:.2f}",
        f"{result.median('one') * 1e3:.2f}", f"{result.ratio('pair', 'one'):.2f}", f"{error:.0e}",
    ]  # fmt: skip


@click.command()
@click.option("--threads", multiple=True, type=click.IntRange(min=1), default=(1, 2))
@click.option("--rounds", default=15, show_default=True)
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(threads: tuple[int, ...], rounds: int, write: bool) -> None:
    """Time convolutions with their pools fused and apart."""
    prepare_tvm_threads(max(threads))
    console = Console()
    jobs = [(shape, count) for count in threads for shape in SHAPES]
    rows = [compare(*job, rounds) for job in track(jobs, "pools", console=console)]
    machine = describe_machine()
    header = ["shape", "threads", "algorithm", "pair ms", "one kernel ms", "speed-up", "difference"]
    body = "\n\n".join(
        [
            "## Convolution, ReLU and max pool as one kernel",
            f"`python -m benchmarks.bench_pools` on {machine['cpu']}, {', '.join(machine['isa'])}. "
            "The same operators built with the pool in the convolution's kernel and apart, each "
            "with the algorithm that the planner takes for it; medians of interleaved rounds in "
            "one process, the speed-up is the median over the rounds. Difference: "
            "max|a - b| / max|b| of the outputs.",
            results.markdown_table(header, rows),
        ]
    )
    console.print(body, markup=False)
    if write:
        results.write_section("pools", body)


if __name__ == "__main__":
    main()
