"""An exported program as the importer wants it: few operators, nothing changed in place."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from tvm_ext.errors import ModelError

aten = torch.ops.aten
# Operators that torch would take apart and that are worth more whole: Relax has them, or the parts
# would be gathers with computed indices, or hide that a bias belongs to a matrix product.
_WHOLE = (
    aten.linear.default,
    aten.matmul.default,
    aten.scaled_dot_product_attention.default,
    aten.silu.default,
    aten.hardswish.default,
    aten.hardsigmoid.default,
    aten.mish.default,
    aten.softplus.default,
    aten.prelu.default,
    aten.roll.default,
    aten.one_hot.default,
    aten.lstm.input,
    aten.gru.input,
    aten.rnn_tanh.input,
    aten.rnn_relu.input,
    aten.upsample_nearest1d.vec,
    aten.upsample_nearest2d.vec,
    aten.upsample_nearest3d.vec,
    aten._upsample_nearest_exact1d.vec,
    aten._upsample_nearest_exact2d.vec,
    aten._upsample_nearest_exact3d.vec,
    aten.upsample_linear1d.vec,
    aten.upsample_bilinear2d.vec,
    aten.upsample_trilinear3d.vec,
    aten.upsample_bicubic2d.vec,
    aten._upsample_bilinear2d_aa.vec,
    aten._upsample_bicubic2d_aa.vec,
)
# A token orders effects; that the operator with the effect isn't supported is said elsewhere.
_HARMLESS = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT, OutputKind.TOKEN)


def prepare_program(program: ExportedProgram) -> ExportedProgram:
    """Take a program's operators apart and check that it is a function of its inputs.

    Parameters
    ----------
    program : ExportedProgram
        It isn't changed.

    Returns
    -------
    ExportedProgram
        Of ATen's core operators (and those of `_WHOLE`), without dead nodes.

    Raises
    ------
    ModelError
        The program changes a buffer, a parameter or an input.
    """
    table = torch.export.default_decompositions()
    for operator in _WHOLE:
        table.pop(operator, None)
    with warnings.catch_warnings():
        # torch copies one of its own deprecated objects here; nobody who calls us can change that.
        warnings.filterwarnings("ignore", "`isinstance.treespec, LeafSpec.`", FutureWarning)
        prepared = program.run_decompositions(table)
    for spec in prepared.graph_signature.output_specs:
        if spec.kind not in _HARMLESS:
            kind = spec.kind.name.lower().replace("_", " ")
            raise ModelError(
                f"the program has a {kind} ({spec.target!r}), but a compiled model keeps no state; "
                "if the module was exported in training mode, call its eval() before torch.export"
            )
    prepared.graph.eliminate_dead_code()
    return prepared


def known_inputs(program: ExportedProgram) -> dict[str, Any]:
    """Return the values of all placeholders that a caller doesn't feed.

    Parameters
    ----------
    program : ExportedProgram

    Returns
    -------
    dict of str to Any
        Placeholder name -> tensor (weights, buffers, constants), or the Python value (None, a
        number, a string) that an argument had at export.

    Raises
    ------
    ModelError
        An input is neither: a script object, or a number that is dynamic.
    """
    tensors = {**program.constants, **program.state_dict}
    known: dict[str, Any] = {}
    for spec in program.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind is InputKind.TOKEN:
            known[name] = None
        elif spec.kind is not InputKind.USER_INPUT:
            if spec.target not in tensors or not isinstance(tensors[spec.target], torch.Tensor):
                raise ModelError(f"input {name!r} is a {spec.kind.name.lower()}, not a tensor")
            known[name] = tensors[spec.target].detach().cpu()
        elif isinstance(spec.arg, torch.export.graph_signature.ConstantArgument):
            known[name] = spec.arg.value
        elif not isinstance(spec.arg, torch.export.graph_signature.TensorArgument):
            raise ModelError(f"input {name!r} is a dynamic number; only tensors can be inputs")
    return known


def tensor_inputs(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    """Yield the placeholders that a caller feeds, in order."""
    known = known_inputs(program)
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name not in known:
            yield node


def output_names(program: ExportedProgram) -> list[str]:
    """Return a name for every output: keys of dictionaries, or ``output`` with its position."""
    count = len(program.graph_signature.output_specs)
    tree = program.call_spec.out_spec.unflatten(list(range(count)))
    names = {leaf: name for name, leaf in _leaves("", tree)}
    if sorted(names) != list(range(count)) or len(set(names.values())) < count:
        # Outputs in an object of a class that we can't look into.
        return [f"output{i}" for i in range(count)]
    return [names[i] for i in range(count)]


def _leaves(prefix: str, tree: Any) -> Iterator[tuple[str, int]]:
    if isinstance(tree, int):
        yield prefix or "output0", tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _leaves(f"{prefix}_{key}" if prefix else str(key), value)
    elif isinstance(tree, list | tuple):
        for i, value in enumerate(tree):
            yield from _leaves(f"{prefix}_{i}" if prefix else f"output{i}", value)
