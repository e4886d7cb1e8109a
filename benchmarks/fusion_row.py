"""One model under our fusion and under TVM's FuseOps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks import harness, zoo
from benchmarks.accuracy import max_relative_error
from benchmarks.tvm_threads import set_tvm_threads

if TYPE_CHECKING:
    from tvm_ext.viz.fused_layers import FusedLayers

OURS, FUSE_OPS = "tvm_ext", "FuseOps"
TOLERANCE = 1e-3
"""Largest relative difference of the two builds' outputs that counts as equal."""

COUNTS_HEADER = (
    "model", "operators, loaded", "rewritten", "kernels: FuseOps, loaded", "FuseOps, rewritten",
    "tvm_ext", "ratio to loaded", "to rewritten", "MB between: FuseOps, loaded",
    "FuseOps, rewritten", "tvm_ext", "ratio to loaded", "to rewritten",
)  # fmt: skip
TIMES_HEADER = (
    "model", "FuseOps, ms", "tvm_ext, ms", "ratio", "kernel calls: FuseOps", "tvm_ext", "difference"
)  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """What fusion makes of one model.

    Attributes
    ----------
    loaded, rewritten : int
        Operators as loaded, and after every graph pass before fusion.
    fused : tuple of FusedLayers
        Of FuseOps on the loaded and on the rewritten model, and of the program that we compile.
    """

    loaded: int
    rewritten: int
    fused: tuple[FusedLayers, FusedLayers, FusedLayers]

    def ratios(self) -> list[float]:
        """Ours to FuseOps on the loaded and the rewritten model: kernels, then bytes."""
        *peers, ours = self.fused
        return [ours.kernels / p.kernels for p in peers] + [ours.nbytes / p.nbytes for p in peers]

    def cells(self) -> list[str]:
        """Return the row of the table, under `COUNTS_HEADER` after the model."""
        texts = [f"{ratio:.2f}" for ratio in self.ratios()]
        layers = [str(f.kernels) for f in self.fused]
        megabytes = [f"{f.nbytes / 1e6:.1f}" for f in self.fused]
        return [
            str(self.loaded), str(self.rewritten), *layers, *texts[:2], *megabytes, *texts[2:]
        ]  # fmt: skip


@dataclass
class Row:
    """One model; `failure` says why the rest is missing."""

    model: str
    counts: Counts | None = None
    times: dict[int, harness.Result] = field(default_factory=dict)
    calls: tuple[int, int] = (0, 0)
    error: float = float("nan")
    failure: str = ""

    @property
    def good(self) -> bool:
        """Whether both builds that were timed ran, with equal outputs."""
        return not self.failure and (not self.times or self.error <= TOLERANCE)

    def cells(self, threads: int) -> list[str]:
        """Return the row of the table of times, under `TIMES_HEADER`."""
        if self.failure:
            return [self.model, f"failed: {self.failure}", *[""] * (len(TIMES_HEADER) - 2)]
        times = self.times[threads]
        wrong = "" if self.good else " WRONG"
        return [
            self.model,
            *(f"{1e3 * times.median(engine):.2f}" for engine in (FUSE_OPS, OURS)),
            f"{times.ratio(OURS, FUSE_OPS):.3f}",
            *(str(calls) for calls in self.calls),
            f"{self.error:.1e}{wrong}",
        ]


def bench_model(
    name: str,
    threads: Sequence[int],
    options: dict[str, Any],
    stage: Callable[[str], None],
    target: str = "native",
) -> Row:
    """Count one model's kernels, build it both ways, and time the two in turn.

    Parameters
    ----------
    name : str
        A model of the zoo.
    threads : Sequence[int]
        Numbers of threads; without any, nothing is compiled.
    options : dict[str, Any]
        For `harness.compare`.
    stage : callable
        Told what is being done.
    target : str
        Native, or what `tvm_ext.target.resolve` takes, if nothing is compiled.

    Returns
    -------
    Row
        A failure becomes its `failure`: the other models of a run are still worth having.
    """
    row = Row(name)
    try:
        import tvm

        from benchmarks.fuse_ops import tvm_fused_layers
        from benchmarks.fuse_ops_groups import FuseOpsGroups
        from tvm_ext.frontend import load_model
        from tvm_ext.fusion_profile import CostProfile
        from tvm_ext.lower import lower
        from tvm_ext.passes import UniversalFusion
        from tvm_ext.pipeline import graph_pipeline
        from tvm_ext.target import resolve
        from tvm_ext.viz.fused_layers import called_layers, operators

        stage("fuse")
        mod = load_model(zoo.path(name))
        cpu = resolve(target)
        fusion = UniversalFusion(CostProfile(cpu))
        rewritten = tvm.transform.Sequential(graph_pipeline().passes[:-1])(mod)
        ours, names = fusion(rewritten), [str(n) for n in mod["main"].attrs["tvm_ext.output_names"]]
        called = called_layers(lower(*_planned(ours, cpu), names).program)
        counted = (tvm_fused_layers(mod), tvm_fused_layers(rewritten), called)
        row.counts = Counts(operators(mod), operators(rewritten), counted)
        if not threads:
            return row
        stage("build")
        theirs = FuseOpsGroups(fusion=fusion)(rewritten)
        grouped = {FUSE_OPS: theirs, OURS: ours}
        built = {engine: build_grouped(mod, names) for engine, mod in grouped.items()}
        row.calls = (len(built[FUSE_OPS].program.calls), len(built[OURS].program.calls))
        inputs = zoo.sample_inputs(name)
        row.error = max_relative_error(built[OURS](inputs), built[FUSE_OPS](inputs))
        for count in threads:
            stage(f"{count} threads")
            set_tvm_threads(count)
            engines = {engine: _call(executable, inputs) for engine, executable in built.items()}
            row.times[count] = harness.compare(engines, **options)
    except Exception as error:
        row.failure = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return row


def _call(executable: Any, inputs: Any) -> harness.Engine:
    return lambda: executable(inputs)


def build_grouped(grouped: Any, names: list[str]) -> Any:
    """Do what `tvm_ext.build` does after the graph passes, for this machine.

    Parameters
    ----------
    grouped : tvm.IRModule
        Calls of `main` are to group functions.
    names : list[str]
        Of the outputs.

    Returns
    -------
    tvm_ext.Executable
    """
    from tvm_ext.assemble import assemble
    from tvm_ext.target import resolve

    return assemble(*_planned(grouped, resolve("native")), names)


def _planned(grouped: Any, cpu: Any) -> tuple[Any, Any, Any, Any]:
    """A grouped module with its layers, their plan, and the target: what lowering takes."""
    from tvm_ext import planner
    from tvm_ext.layers import layers

    found = layers(grouped)
    return grouped, found, planner.choose(found, cpu), cpu
