"""From the options of `tvm-ext prune` to the arguments of `tvm_ext.prune`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from tvm_ext.passes.pruning import BlockPrune, ChannelPrune, MagnitudePrune, PatternPrune

# Each with the options that only some of them have.
SCHEMES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "block": (BlockPrune, ("density", "block", "scope")),
    "pattern": (PatternPrune, ("lanes", "entries", "patterns")),
    "magnitude": (MagnitudePrune, ("density", "scope")),
    "channel": (ChannelPrune, ("density", "multiple")),
}


class Block(click.ParamType):
    """``4x16`` or ``auto``."""

    name = "ROWSxCOLUMNS|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int] | str:
        if value == "auto":
            return "auto"
        rows, _, columns = value.partition("x")
        try:
            return int(rows), int(columns)
        except ValueError:
            self.fail(f"{value!r} is not like 4x16, or auto", param, ctx)


class LayerDensity(click.ParamType):
    """``PATTERN=0.1``."""

    name = "PATTERN=SHARE"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, float]:
        pattern, _, share = value.rpartition("=")
        try:
            return pattern, float(share)
        except ValueError:
            self.fail(f"{value!r} is not like conv1=0.1", param, ctx)


def prune_arguments(
    name: str,
    *,
    density: float | None,
    layer_densities: Iterable[tuple[str, float]],
    speedup: float | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    everything: bool,
    **own: Any,
) -> dict[str, Any]:
    """The arguments of `tvm_ext.prune` except the model and the machine.

    Parameters
    ----------
    name : str
        One of `SCHEMES`.
    own
        Options of single schemes by the names that their classes have; None where not given.

    Raises
    ------
    click.UsageError
        An option that the scheme doesn't have, or a density that is missing or given twice.
    OptionError
        An option has a value that the scheme doesn't know.
    """
    scheme, known = SCHEMES[name]
    options = {option: value for option, value in own.items() if value is not None}
    for option in options:
        if option not in known:
            raise click.UsageError(f"--{option} is no option of --scheme {name}")
    if density is not None and speedup is not None:
        raise click.UsageError("--density and --speedup: each decides how much is kept")
    shares = dict(layer_densities)
    if scheme is ChannelPrune and (shares or speedup is not None):
        raise click.UsageError("--layer-density and --speedup are no options of --scheme channel")
    layers = {"include": include, "exclude": exclude or (() if everything else None)}
    if "density" not in known:
        if density is not None:
            shares.setdefault("*", density)
    elif density is not None:
        options["density"] = density
    elif speedup is not None:
        # Each layer gets another one.
        options["density"] = 1.0
    else:
        also = "" if scheme is ChannelPrune else " or --speedup"
        raise click.UsageError(f"--scheme {name} needs --density{also}")
    if scheme is ChannelPrune:
        return {"scheme": scheme(**options, **layers)}
    return {"scheme": scheme(**options), **layers, "density": shares or None, "speedup": speedup}
