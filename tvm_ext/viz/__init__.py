"""Pictures of compiled graphs."""

from tvm_ext.viz.drawing import Drawing
from tvm_ext.viz.fusion_graph import fusion_graph

__all__ = ["Drawing", "fusion_graph"]
