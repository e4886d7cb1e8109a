"""The example in docs/simulator.md runs, its links lead somewhere."""

import re

from tests.markdown import ROOT, python_blocks
from tvm_ext.codegen.isa import DEFINITIONS

PAGE = "docs/simulator.md"


def test_example():
    (block,) = python_blocks(PAGE)
    exec(compile(block, PAGE, "exec"), {})


def test_links_and_instructions():
    text = (ROOT / PAGE).read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / target).exists(), target
    examples = text.split("## Worked examples")[1]
    assert all(f"`{mnemonic}`" in examples for mnemonic in DEFINITIONS)
