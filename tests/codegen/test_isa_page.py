"""The generated page is the one in docs/, and has what a reader looks for."""

from pathlib import Path

import pytest

from tvm_ext.codegen.isa import DEFINITIONS, Unit, registers_of
from tvm_ext.codegen.isa_page import isa_page, main

PAGE = Path(__file__).parents[2] / "docs" / "isa.md"


def test_the_page_in_docs_is_up_to_date():
    assert PAGE.read_text() == isa_page(), "run python -m tvm_ext.codegen.isa_page"
    assert main([str(PAGE), "--check"]) == 0


@pytest.mark.parametrize("mnemonic", DEFINITIONS)
def test_every_instruction_has_a_section(mnemonic):
    text = PAGE.read_text()
    assert f"\n## {mnemonic}\n" in text
    section = text.split(f"\n## {mnemonic}\n")[1].split("\n## ")[0]
    assert all(f"| `{field.name}` |" in section for field in DEFINITIONS[mnemonic].fields)


@pytest.mark.parametrize("unit", Unit)
def test_every_register_has_a_row(unit):
    assert all(f"| `{name}` |" in PAGE.read_text() for name in registers_of(unit))


def test_bit_positions_by_hand():
    section = PAGE.read_text().split("\n## OP_POOL\n")[1].split("\n## ")[0]
    assert "| `input` | 16-47 |" in section
    assert "| `output` | 48-79 |" in section
    assert "| `kind` | 80-81 |" in section


def test_writing_and_comparing(tmp_path):
    path = tmp_path / "isa.md"
    assert main([str(path), "--check"]) == 1
    assert main([str(path)]) == 0
    assert main([str(path), "--check"]) == 0
    path.write_text(path.read_text() + "\n")
    assert main([str(path), "--check"]) == 1
