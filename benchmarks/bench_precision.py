"""Whole models under precision "highest" and "high", and in ONNX Runtime.

Run ``python -m benchmarks.bench_precision [--models NAME,...] [--threads N] [--rounds N]
[--write]``. It needs a CPU with AMX, without which both precisions are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks import harness, results, zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.amx_probe import PRODUCTS, probe
from benchmarks.engines import onnxruntime_engine
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads, set_tvm_threads

MODELS = ("resnet50", "mobilenet_v1", "vgg19", "efficientnet_lite0", "minilm")
HEADER = (
    "model", "threads", "highest, ms", "high, ms", "highest / high", "ONNX Runtime / highest",
    "ONNX Runtime / high", "error of highest", "error of high", "layers on AMX", "AMX slowed down",
)  # fmt: skip
HIGHEST, HIGH, PEER, PROBE = "highest", "high", "ONNX Runtime", "AMX"
# An instruction takes 16 cycles; a unit that takes over twice as long as at 3 GHz is slowed down.
SLOW_S = 2 * 16 / 3e9


@dataclass(frozen=True)
class Row:
    """One model at one number of threads.

    Attributes
    ----------
    times : harness.Result
        Of `HIGHEST`, `HIGH`, `PEER`, and of `PROBE`, which is `PRODUCTS` instructions.
    errors : dict of str to float
        Of ours, the largest difference from ONNX Runtime over the largest output.
    layers, on_amx : int
    """

    model: str
    threads: int
    times: harness.Result
    errors: dict[str, float]
    layers: int
    on_amx: int

    @property
    def slowed(self) -> float:
        """Share of the rounds in which AMX was slowed down."""
        return float(np.mean(np.array(self.times.seconds[PROBE]) / PRODUCTS > SLOW_S))


def measure(model: str, threads: int, rounds: int, min_time_s: float = 0.2) -> Row:
    """Build a model twice, check and time it; the probe has its turn right behind ours."""
    import tvm_ext

    path, inputs = zoo.path(model), zoo.sample_inputs(model)
    set_tvm_threads(threads)
    ours = {p: tvm_ext.build(path, precision=p) for p in (HIGHEST, HIGH)}
    peer = onnxruntime_engine(path, inputs, threads)
    expected = peer()
    errors = {name: max_relative_error(exe(inputs), expected) for name, exe in ours.items()}
    engines = {
        **{name: exe.run for name, exe in ours.items()},
        PROBE: probe(ours[HIGH].target),
        PEER: peer,
    }
    times = harness.compare(engines, rounds=rounds, min_time_s=min_time_s)
    plan = ours[HIGH].plan
    on_amx = sum(layer.algorithm.startswith("amx_") for layer in plan)
    return Row(model, threads, times, errors, len(plan), on_amx)


def cells(row: Row) -> list[str]:
    """One line under `HEADER`."""
    times = row.times
    return [
        row.model, str(row.threads),
        *(f"{1e3 * times.median(name):.2f}" for name in (HIGHEST, HIGH)),
        *(f"{times.ratio(*pair):.2f}" for pair in ((HIGHEST, HIGH), (PEER, HIGHEST), (PEER, HIGH))),
        *(f"{row.errors[name]:.1e}" for name in (HIGHEST, HIGH)),
        f"{row.on_amx} of {row.layers}", f"{100 * row.slowed:.0f}% of rounds",
    ]  # fmt: skip


def section(rows: Sequence[Row], machine: dict[str, Any]) -> str:
    """Return the section of RESULTS.md."""
    return "\n\n".join(
        [
            "## Precision",
            f"`python -m benchmarks.bench_precision` on {machine['cpu']}, "
            f'{", ".join(machine["isa"])}. Float32 models, batch 1; with `precision="high"` '
            "three products of bfloat16 terms on AMX stand for one of float32 numbers where the "
            "planner expects a gain. Ratios above 1 mean that the one behind the slash is faster; "
            "medians of rounds in which all take turns. Errors: largest difference from ONNX "
            "Runtime over the largest output. The last column is the share of rounds in which a "
            f"product of tiles took over {1e9 * SLOW_S:.1f} ns: this machine is shared, and its "
            "host slows AMX down at times.",
            results.markdown_table(HEADER, [cells(row) for row in rows]),
        ]
    )


@click.command()
@click.option("--models", default=",".join(MODELS), show_default=True, help="Names of the zoo.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=21, show_default=True)
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(models: str, threads: int, rounds: int, write: bool) -> None:
    """Time models under both precisions."""
    prepare_tvm_threads(threads)
    from tvm_ext.host_amx import host_has_amx

    console = Console()
    if not host_has_amx():
        console.print("This machine has no AMX: both precisions are the same.")
        return
    names = models.split(",")
    rows = [measure(name, threads, rounds) for name in track(names, "models", console=console)]
    body = section(rows, describe_machine())
    console.print(body, markup=False)
    if write:
        results.write_section("precision", body)


if __name__ == "__main__":
    main()
