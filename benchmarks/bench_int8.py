"""Quantised networks on the CPU: our integer kernels against our float ones and ONNX Runtime.

Run ``python -m benchmarks.bench_int8 [--models NAME,...] [--threads N] [--write]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks import harness, results, zoo
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads, set_tvm_threads

MODELS = ("resnet50", "resnet18", "mobilenet_v1", "mobilenet_v2")
THREADS = (1, 2)
HEADER = (
    "model", "threads", "int8, ms", "float32 / int8", "ONNX Runtime int8 / int8",
    "ONNX Runtime float32 / int8", "outputs that differ", "largest difference, steps",
)  # fmt: skip
_OURS, _FLOAT, _PEER, _PEER_FLOAT = "int8", "float32", "ONNX Runtime int8", "ONNX Runtime float32"


@dataclass(frozen=True)
class Row:
    """One model at one number of threads.

    Attributes
    ----------
    model : str
    threads : int
    ms : float
        Our quantised network, median.
    ratios : dict of str to float
        Of each other engine's time to it.
    differing, outputs : int
        Of the outputs, those that aren't ONNX Runtime's.
    steps : float
        The largest difference in quantisation steps of the output.
    """

    model: str
    threads: int
    ms: float
    ratios: dict[str, float]
    differing: int
    outputs: int
    steps: float


def measure(model: str, threads: int) -> Row:
    """Quantise a model of the zoo (QDQ, uint8, one scale a channel), check it, and time it."""
    import onnxruntime

    import tvm_ext

    inputs = zoo.sample_inputs(model)
    options = tvm_ext.QuantizeOptions(form="QDQ", activations="uint8")
    quantized = tvm_ext.quantize(zoo.path(model), [inputs], options)
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = threads
    sessions = {
        name: onnxruntime.InferenceSession(source, session_options, ["CPUExecutionProvider"])
        for name, source in (
            (_PEER, quantized.SerializeToString()), (_PEER_FLOAT, str(zoo.path(model))),
        )
    }  # fmt: skip
    set_tvm_threads(threads)
    ours, plain = tvm_ext.build(quantized), tvm_ext.build(zoo.path(model))
    got, want = np.asarray(ours(inputs)), np.asarray(sessions[_PEER].run(None, inputs)[0])
    # The output is dequantised: whole steps apart.
    values = np.unique(want)
    step = float(np.diff(values).min()) if len(values) > 1 else 1.0
    steps = float(np.abs(got - want).max()) / step
    if steps > 1.5:
        raise RuntimeError(f"{model}: an output differs by {steps:.1f} steps; at most 1")
    plain(inputs)
    engines = {
        _OURS: ours.run, _FLOAT: plain.run,
        **{name: partial(session.run, None, inputs) for name, session in sessions.items()},
    }  # fmt: skip
    result = harness.compare(engines, rounds=11)
    return Row(
        model, threads, result.median(_OURS) * 1e3,
        {name: result.ratio(name, _OURS) for name in (_FLOAT, _PEER, _PEER_FLOAT)},
        int((got != want).sum()), got.size, steps,
    )  # fmt: skip


def cells(row: Row) -> list[str]:
    """One line under `HEADER`."""
    return [
        row.model, str(row.threads), f"{row.ms:.2f}",
        *(f"{row.ratios[name]:.2f}" for name in (_FLOAT, _PEER, _PEER_FLOAT)),
        f"{row.differing} of {row.outputs}", f"{row.steps:.0f}",
    ]  # fmt: skip


def section(rows: Sequence[Row], machine: dict[str, Any]) -> str:
    """Return the section of RESULTS.md."""
    return "\n\n".join(
        [
            "## int8 on the CPU",
            f"`python -m benchmarks.bench_int8` on {machine['cpu']}, {', '.join(machine['isa'])}. "
            "QDQ models as `tvm_ext.quantize` writes them (uint8 activations, int8 weights with a "
            "scale a channel, random weights), against the same networks in float32 and ONNX "
            "Runtime's runs of both. Ratios above 1 mean that our int8 network is faster; medians "
            "of rounds in which all take turns.",
            results.markdown_table(HEADER, [cells(row) for row in rows]),
        ]
    )


@click.command()
@click.option("--models", default=",".join(MODELS), show_default=True, help="Names of the zoo.")
@click.option("--threads", type=click.IntRange(min=1), help="Default: 1 and 2.")
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(models: str, threads: int | None, write: bool) -> None:
    """Time quantised networks."""
    machine = describe_machine()
    counts = (threads,) if threads else THREADS
    prepare_tvm_threads(max(counts))
    console = Console()
    pairs = [(model, count) for count in counts for model in models.split(",")]
    rows = [measure(*pair) for pair in track(pairs, "models", console=console)]
    body = section(rows, machine)
    console.print(body, markup=False)
    if write:
        results.write_section("int8", body)


if __name__ == "__main__":
    main()
