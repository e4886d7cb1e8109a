"""A graph that draws itself with the Graphviz inside a Python package: no `dot` has to be there."""

from __future__ import annotations

import base64
from typing import Any

import graphviz
import pygraphviz


class Drawing(graphviz.Digraph):  # type: ignore[misc]  # has no types
    """A `graphviz.Digraph` that is shown in notebooks on any machine.

    What it inherits for rendering (`render`, `view`, `pipe`) calls the program `dot`; `svg`, `png`
    and notebooks don't.
    """

    def svg(self) -> str:
        """The picture as an SVG document."""
        return self._draw("svg").decode()

    def png(self) -> bytes:
        """The picture as a PNG file's contents."""
        return self._draw("png")

    def uri(self) -> str:
        """The SVG document as a ``data:`` URI, for a page that needs no other file."""
        return "data:image/svg+xml;base64," + base64.b64encode(self._draw("svg")).decode()

    def _draw(self, kind: str) -> bytes:
        drawn: bytes = pygraphviz.AGraph(string=self.source).draw(format=kind, prog="dot")
        return drawn

    # The names by which the base class makes what a notebook shows.
    def _repr_image_svg_xml(self, *_: Any) -> str:
        return self.svg()

    def _repr_image_png(self, *_: Any) -> bytes:
        return self.png()
