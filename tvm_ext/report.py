"""A report on one compiled model: what it is, how fast it is, and where the time goes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from tvm_ext import plots, tables
from tvm_ext.files import replacing
from tvm_ext.threads import default_threads

if TYPE_CHECKING:
    from tvm_ext.executable import Executable
    from tvm_ext.viz import Drawing


def report(
    exe: Executable, path: str | os.PathLike[str] | None = None, graph: Drawing | None = None
) -> str:
    """Benchmark and profile a model on random inputs, and write down what comes out.

    Parameters
    ----------
    exe : Executable
    path : path, optional
        Where to write the same as one HTML page with plots, which needs no other file.
    graph : Drawing, optional
        A picture of the model, of `tvm_ext.viz.fusion_graph`, for that page.

    Returns
    -------
    str
        Summary, benchmark, plan table and profile table as plain text.

    Raises
    ------
    ArtifactError
        The page can't be written.
    """
    facts = summary(exe)
    benchmark, profile = exe.benchmark(), exe.profile()
    lines = [f"{name}: {value}" for name, value in facts.items()]
    text = "\n".join([*lines, f"latency: {benchmark}", "", str(exe.plan), "", str(profile), ""])
    if path is None:
        return text
    threads, target = default_threads(), exe.target
    figures = [
        plots.layer_times(profile),
        plots.roofline(
            profile, exe.plan, threads * target.fma_peak, threads * target.memory_bandwidth
        ),
        plots.estimates(profile),
    ]
    environment = Environment(
        loader=PackageLoader("tvm_ext"), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("report.html").render(
        facts=facts,
        benchmark=benchmark,
        plan=exe.plan,
        profile=profile,
        images=[plots.png_uri(figure) for figure in figures],
        graph=None if graph is None else graph.uri(),
        format_params=tables.format_params,
        short_op=tables.short_op,
    )
    _write(page, Path(path))
    return text


def summary(exe: Executable) -> dict[str, str]:
    """What the model is, by heading."""
    program = exe.program

    def ends(numbers: dict[str, int]) -> str:
        buffers = ((name, program.buffers[n]) for name, n in numbers.items())
        return ", ".join(f"{name} {b.dtype} {list(b.shape)}" for name, b in buffers)

    return {
        "target": f"{exe.target.name}, {default_threads()} threads used",
        "inputs": ends(program.inputs),
        "outputs": ends(program.outputs),
        "layers": f"{len(exe.plan)} in {len(program.calls)} kernel calls",
        "work": f"{exe.flops / 1e9:.3f} GFLOP an inference",
        "memory": f"{program.constant_bytes / 1e6:.1f} MB constants, "
        f"{program.arena_bytes / 1e6:.1f} MB activations",
    }


def _write(page: str, path: Path) -> None:
    with replacing(path) as stream:
        stream.write(page.encode())
