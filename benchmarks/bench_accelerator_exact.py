"""Quantised networks on the accelerator against ONNX Runtime: do they give the same bits?

Run ``python -m benchmarks.bench_accelerator_exact [--models NAME,...] [--activations TYPE,...]
[--sram SIZE] [--write]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import click
import numpy as np
import onnx
from onnx import numpy_helper
from rich.console import Console
from rich.progress import track

from benchmarks import results, zoo
from benchmarks.integer_session import integer_session
from benchmarks.machine import describe_machine
from tvm_ext.codegen.sizes import format_size, parse_size

MODELS = ("mobilenet_v1", "mobilenet_v2", "resnet18", "ppocr_det")
FORMS = ("QDQ", "QOperator")
SEED = 5
NOT_THE_FILE = "WeightBiasQuantization"
"""ONNX Runtime's optimisation that rounds weights to 8 bits which the file has in float32."""
HEADER = (
    "model", "form", "activations", "weight scales", "subgraphs", "MACs offloaded", "outputs",
    "differ", "largest difference, steps", "million cycles",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A network and how it is quantised.

    Attributes
    ----------
    model : str
        Of the zoo.
    form, activations, per_channel
        As of `tvm_ext.QuantizeOptions`.
    """

    model: str
    form: str
    activations: str
    per_channel: bool


@dataclass(frozen=True)
class Row:
    """A result.

    Attributes
    ----------
    case : Case
    subgraphs : int
    share : float
        Of the multiply-accumulates that the accelerator does.
    outputs, differing : int
        Output values, and those that aren't ONNX Runtime's.
    steps : float
        The largest difference, in quantisation steps of the output.
    cycles : int
        Of all subgraphs.
    """

    case: Case
    subgraphs: int
    share: float
    outputs: int
    differing: int
    steps: float
    cycles: int


def cases(models: Sequence[str], activations: Sequence[str]) -> list[Case]:
    """All forms of each model."""
    kinds = product(models, FORMS, activations, (True, False))
    return [Case(*kind) for kind in kinds]


def output_step(model: onnx.ModelProto) -> float:
    """The scale of the first output, which a DequantizeLinear makes.

    Raises
    ------
    RuntimeError
        Something else makes it.
    """
    name = model.graph.output[0].name
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if name in node.output and node.op_type == "DequantizeLinear":
            return float(numpy_helper.to_array(constants[node.input[1]]))
    raise RuntimeError(f"output {name} isn't dequantised")


def measure(case: Case, sram_bytes: int) -> Row:
    """Quantise, build for the accelerator, run on its simulator, and compare one input's outputs.

    Raises
    ------
    RuntimeError
        An output differs by more than one step.
    """
    import tvm_ext
    from tvm_ext.codegen.accelerator import Accelerator
    from tvm_ext.codegen.byoc import RUNTIME, SimulatedNetwork, partition

    options = tvm_ext.QuantizeOptions(
        form=case.form, activations=case.activations, per_channel=case.per_channel
    )
    model = tvm_ext.quantize(zoo.path(case.model), [zoo.sample_inputs(case.model)], options)
    session = integer_session(model, [NOT_THE_FILE])
    hardware = Accelerator(sram_bytes=sram_bytes)
    RUNTIME.use(SimulatedNetwork)
    exe = tvm_ext.build(model, accelerator=hardware)
    inputs = zoo.sample_inputs(case.model, SEED)
    want, got = np.asarray(session.run(None, inputs)[0]), np.asarray(exe(inputs))
    steps = float(np.abs(got - want).max()) / output_step(model)
    if steps > 1.5:
        raise RuntimeError(f"{case}: an output differs by {steps:.1f} steps; at most 1")
    cycles = sum(loaded.compiled.result.cycles for loaded in RUNTIME.loaded)
    share = partition(tvm_ext.load_model(model), hardware).share
    return Row(case, len(RUNTIME.loaded), share, got.size, int((got != want).sum()), steps, cycles)


def cells(row: Row) -> list[str]:
    """One line under `HEADER`."""
    case = row.case
    return [
        case.model, case.form, case.activations, "channel" if case.per_channel else "tensor",
        str(row.subgraphs), f"{100 * row.share:.2f} %", str(row.outputs), str(row.differing),
        f"{row.steps:.0f}", f"{row.cycles / 1e6:.1f}",
    ]  # fmt: skip


def section(rows: Sequence[Row], sram_bytes: int, machine: dict[str, Any]) -> str:
    """The section of RESULTS.md."""
    return "\n\n".join(
        [
            "## Accelerator: the same bits as ONNX Runtime",
            f"`python -m benchmarks.bench_accelerator_exact` on {machine['cpu']}. Networks as "
            "`tvm_ext.quantize` writes them, int8 weights, built with `tvm_ext.build(model, "
            f"accelerator=Accelerator(sram_bytes={sram_bytes}))` ({format_size(sram_bytes)}) and "
            "run on the simulator, "
            "against ONNX Runtime's results of the same file on one input that wasn't used to "
            f"calibrate. Of its optimisations `{NOT_THE_FILE}` is off: it rounds weights of "
            "transposed convolutions to 8 bits that QOperator files have in float32, and gives "
            "another network. PP-OCR detection has real weights at 640x640, the others random ones "
            "at 224x224. What of PP-OCR isn't offloaded are two transposed convolutions, which "
            "ONNX Runtime computes in float32, and the steps behind them.",
            results.markdown_table(HEADER, [cells(row) for row in rows]),
        ]
    )


@click.command()
@click.option("--models", default=",".join(MODELS), show_default=True, help="Names of the zoo.")
@click.option("--activations", default="uint8", show_default=True, help="uint8, int8 or both.")
@click.option("--sram", default="512KiB", show_default=True, help="The accelerator's memory.")
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(models: str, activations: str, sram: str, write: bool) -> None:
    """Compare quantised networks on the accelerator with ONNX Runtime."""
    console, sram_bytes = Console(), parse_size(sram)
    wanted = cases(models.split(","), activations.split(","))
    rows = [measure(case, sram_bytes) for case in track(wanted, "networks", console=console)]
    body = section(rows, sram_bytes, describe_machine())
    console.print(body, markup=False)
    if write:
        results.write_section("accelerator-exact", body)


if __name__ == "__main__":
    main()
