"""The example of docs/fusion.md runs, and draws what it says."""

from __future__ import annotations

import pygraphviz

from tests.markdown import python_blocks


def test_the_first_layers_of_a_model():
    (example,) = (block for block in python_blocks("docs/fusion.md") if "fusion_graph" in block)
    scope = {}
    exec(compile(example, "docs/fusion.md", "exec"), scope)
    graph = pygraphviz.AGraph(string=scope["graph"].source)
    assert len(graph.subgraphs()) == 5
    assert "data_0" in [node.attr["label"] for node in graph.nodes()]
