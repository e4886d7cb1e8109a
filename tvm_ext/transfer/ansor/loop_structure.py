"""Loop structures in one form, from TensorIR and from what Ansor prints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tvm import tirx
from tvm.s_tir import SBlockRealize

from tvm_ext.transfer.ansor.errors import DagError

_KINDS = ("for", "parallel", "vectorize", "unroll")
_LOOP = re.compile(r"(?P<kind>[\w.]+) \S+ \(.*,(?P<extent>\d+)\)")
_UNROLL = re.compile(r"\S+ auto_unroll: (?P<steps>\d+)")
_STAGE = re.compile(r"(?P<label>\S+) = \.\.\.")
_UNROLL_KEY = "pragma_auto_unroll_max_step"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a loop structure; loops of extent 1 have none.

    Attributes
    ----------
    depth : int
        How many loops are around it.
    kind : str
        ``for``, ``parallel``, ``vectorize``, ``unroll`` or a thread's tag such as ``blockIdx.x``,
        for a loop; ``auto_unroll`` for a limit on what follows; ``stage``.
    value : int or str
        The loop's extent, the limit, or the stage's label.
    """

    depth: int
    kind: str
    value: int | str

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.kind} {self.value}"


def loop_structure(function: tirx.PrimFunc, labels: Mapping[str, str]) -> tuple[Line, ...]:
    """The loops of a function, blocks named by `labels`."""
    return tuple(_lines(function.body, 0, labels))


def _lines(node: object, depth: int, labels: Mapping[str, str]) -> Iterator[Line]:
    match node:
        case tirx.For():
            limit = node.annotations.get(_UNROLL_KEY) if node.annotations else None
            if limit is not None:
                yield Line(depth, "auto_unroll", int(limit))
            extent = int(node.extent)
            if extent != 1:
                yield Line(depth, _kind(node), extent)
            yield from _lines(node.body, depth + (extent != 1), labels)
        case tirx.SeqStmt():
            for part in node.seq:
                yield from _lines(part, depth, labels)
        case SBlockRealize():
            name = str(node.block.name_hint)
            if name == "root":
                yield from _lines(node.block.body, depth, labels)
            else:
                yield Line(depth, "stage", labels[name])


def _kind(loop: tirx.For) -> str:
    if loop.thread_binding is not None:
        return str(loop.thread_binding.thread_tag)
    return {
        tirx.ForKind.PARALLEL: "parallel",
        tirx.ForKind.VECTORIZED: "vectorize",
        tirx.ForKind.UNROLLED: "unroll",
    }.get(loop.kind, "for")


def parse_state(text: str) -> tuple[Line, ...]:
    """The loop structure that Ansor prints of a state (``print(state)``).

    Raises
    ------
    DagError
        A line that is no loop, stage, limit or list of placeholders, with its number.
    """
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        depth = (len(line) - len(line.lstrip())) // 2
        if not words or words.startswith("Placeholder: "):
            continue
        if match := _LOOP.fullmatch(words):
            lines.append(Line(depth, match["kind"], int(match["extent"])))
        elif match := _UNROLL.fullmatch(words):
            lines.append(Line(depth, "auto_unroll", int(match["steps"])))
        elif match := _STAGE.fullmatch(words):
            lines.append(Line(depth, "stage", match["label"]))
        else:
            raise DagError(f"no line of a state: {words!r}", number, 1)
    return tuple(lines)
