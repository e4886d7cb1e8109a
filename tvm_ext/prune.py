"""One verb for all ways to prune."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tvm

from tvm_ext.errors import OptionError, PruningError
from tvm_ext.frontend import load_model
from tvm_ext.layer_speedup import density_for
from tvm_ext.passes.pruning.apply import check_scheme, choose_layers, prune_layers
from tvm_ext.passes.pruning.channel_prune import ChannelPrune
from tvm_ext.passes.pruning.options import check_density
from tvm_ext.passes.pruning.prunable import Prunable, prunables
from tvm_ext.passes.pruning.prune_pass import by_pattern
from tvm_ext.passes.pruning.report import PruningReport
from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.passes.pruning.selection import per_layer
from tvm_ext.target import CpuTarget, resolve


class Pruned(NamedTuple):
    """A pruned model.

    Attributes
    ----------
    module : tvm.IRModule
        Dense, with zeros in its weights or with fewer channels; `tvm_ext.build` takes it.
    report : PruningReport
        What has become of each layer; a `ChannelReport` for channels.
    """

    module: tvm.IRModule
    report: PruningReport


def prune(
    model: Any,
    scheme: Scheme | ChannelPrune,
    *,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] | None = None,
    density: float | Mapping[str, float] | None = None,
    speedup: float | Mapping[str, float] | None = None,
    target: str | Mapping[str, Any] | CpuTarget = "native",
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> Pruned:
    """Set weights of a model to zero, or remove channels.

    Parameters
    ----------
    model : path, onnx.ModelProto, torch.export.ExportedProgram or tvm.IRModule
    scheme : Scheme or ChannelPrune
        Which weights are kept: a `PatternPrune`, `BlockPrune` or `MagnitudePrune` of
        `tvm_ext.passes.pruning`. A `ChannelPrune` has options of its own for layers and density,
        which are not given here then.
    include, exclude, density
        Which layers, and how much of them, as for the pass `tvm_ext.passes.pruning.Prune`.
    speedup : float or Mapping[str, float], optional
        In place of a density: for all layers, or pattern -> how many times faster than its fastest
        dense kernel a layer has to be. The density is the largest for which the cost model
        estimates that. A layer that can't be so fast is left alone, and the report says so; if it
        is named itself, that is an error.
    target : str, dict or CpuTarget
        For which machine `speedup` is estimated, as for `tvm_ext.build`.
    input_shapes : dict, optional
        Shapes of the inputs, needed where the model leaves them open.

    Returns
    -------
    Pruned
        The module and the report, also as a pair.

    Raises
    ------
    OptionError
        An option has a value that it doesn't know, or a layer has both a density and a speed-up.
    PruningError
        A pattern matches no layer, the scheme doesn't take a layer that `include` names or takes
        none, a weight is NaN or infinite, or a named layer can't have its speed-up.
    ModelError, InputShapeError, UnsupportedOperatorsError
        The model can't be loaded.
    TargetError
        The target is unknown.
    """
    if isinstance(scheme, ChannelPrune):
        given = {"include": include, "exclude": exclude, "density": density, "speedup": speedup}
        for option, value in given.items():
            if value not in ((), None):
                raise OptionError(f"{option}={value!r}: ChannelPrune takes its own options")
        return Pruned(*scheme.apply(load_model(model, input_shapes=input_shapes)))
    check_scheme(scheme)
    cpu = resolve(target)
    shares, wanted = by_pattern(density), by_pattern(speedup)
    for pattern, share in shares.items():
        check_density(f"density of {pattern!r}", share)
    for pattern, times in wanted.items():
        _check_speedup(f"speedup of {pattern!r}", times)
    mod = load_model(model, input_shapes=input_shapes)
    layers = prunables(mod)
    notes = choose_layers(layers, scheme, include, exclude)
    if wanted:
        chosen = [layer for layer in layers if not notes[layer.name]]
        shares.update(_densities(chosen, scheme, shares, wanted, cpu, notes))
    return Pruned(*prune_layers(mod, layers, notes, scheme, shares))


def _check_speedup(option: str, value: Any) -> None:
    if not isinstance(value, int | float) or not 1 < value < float("inf"):
        raise OptionError(f"{option} is {value!r}; it has to be a number above 1")


def _densities(
    layers: Sequence[Prunable],
    scheme: Scheme,
    shares: Mapping[str, float],
    speedups: Mapping[str, float],
    target: CpuTarget,
    notes: dict[str, str],
) -> dict[str, float]:
    """The densities by name that the speed-ups need; `notes` get the layers that can't have one."""
    names = [layer.name for layer in layers]
    wanted = per_layer("speedup", speedups, names)
    for name in per_layer("density", shares, names):
        if name in wanted:
            raise OptionError(f"layer {name} has a density and speedup={wanted[name]}")
    fitted = scheme.fitted({layer.name: layer.weights for layer in layers})
    found = {}
    for layer in (x for x in layers if x.name in wanted):
        density = density_for(layer, fitted, wanted[layer.name], target)
        if isinstance(density, float):
            found[layer.name] = density
        elif layer.name in speedups:
            raise PruningError(f"layer {layer.name}: {density}")
        else:
            notes[layer.name] = density
    return found
