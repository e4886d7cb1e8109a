"""Pictures and tables of compiled graphs."""

from tvm_ext.viz.drawing import Drawing
from tvm_ext.viz.fusion_graph import fusion_graph
from tvm_ext.viz.fusion_table import fusion_table

__all__ = ["Drawing", "fusion_graph", "fusion_table"]
