"""The report: text with every part, and a page that needs no other file."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tvm_ext
from tvm_ext import plots
from tvm_ext.errors import ArtifactError
from tvm_ext.profiler import LayerTime, Profile
from tvm_ext.viz import Drawing


class _Page(HTMLParser):
    """Counts tags and checks that they nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[str] = []
        self.rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.images.append(str(dict(attrs)["src"]))
        elif tag != "meta":
            self.open.append(tag)
        self.rows += tag == "tr"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_text_and_page(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    text = convnet.report(tmp_path / "report.html")
    assert re.search(r"^inputs: x float32 \[1, 3, 12, 12\]$", text, re.M)
    assert re.search(r"^latency: \d+\.\d+ ms .*GFLOP/s", text, re.M)
    assert str(convnet.plan) in text
    assert all(name in text for name in ("profile", "conv2d_0", "total"))

    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(source)
    assert page.open == []
    assert len(page.images) == 3
    for image in page.images:
        head, data = image.split(",")
        assert head == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert page.rows >= 2 * len(convnet.plan)
    assert not re.search(r'(src|href)="(?!data:)', source)
    assert "http" not in source
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_page_with_a_graph(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    graph = Drawing()
    graph.edge("left", "right")
    convnet.report(tmp_path / "report.html", graph=graph)
    page = _Page()
    page.feed((tmp_path / "report.html").read_text(encoding="utf-8"))
    head, data = page.images[-1].split(",")
    assert head == "data:image/svg+xml;base64"
    assert all(f">{name}</text>" in base64.b64decode(data).decode() for name in ("left", "right"))


def test_unwritable(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"can't write .*report\.html"):
        convnet.report(tmp_path / "missing" / "report.html")


def test_many_layers_show_the_longest() -> None:
    rows = tuple(LayerTime(f"layer{i}", f"a{i % 12}", i + 1.0, 1.0, 0.1, 1.0) for i in range(60))
    axes = plots.layer_times(Profile(rows)).axes[0]
    assert axes.get_title("left") == "time by layer, the 40 longest"
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["layer20", "layer21"]
    assert len(set(plots.colours([row.algorithm for row in rows]).values())) == 12
