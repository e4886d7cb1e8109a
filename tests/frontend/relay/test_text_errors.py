"""What of a text isn't read: each is an error that names the file, the line and the column."""

from pathlib import Path

import numpy as np
import pytest

from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.text_module import read_text_module

from .block import SHIFT
from .graphs import metadata

DATA = Path(__file__).parent / "data"
HEADER = '#[version = "0.0.5"]\n'


BROKEN = {
    "empty": ("", r"no function main; it has \[\]"),
    "version": ('#[version = "0.0.6"]\ndef @main() { 1 }', r"text form '0.0.6': allowed are"),
    "not Relay": ("import tvm\n", r"line 1, column 1: expected 'def @name', found 'import'"),
    "no main": ("def @f() { 1 }", r"no function main; it has \['f'\]"),
    "twice": ("def @main() { 1 }\ndef @main() { 1 }", "line 2, column 5: .* defined twice"),
    "no body": ("def @main()", "has no body"),
    "unclosed": ("def @main() {\n (1\n", r"line 1, column 13: '\{' isn't closed"),
    "unclosed comment": ("def @main() { 1 /* }", r"expected '\}' behind a result, found '/'"),
    "unclosed string": (
        'def @main() { f(a="b) }',
        "expected the value of an attribute, found '\"'",
    ),
    "no semicolon": ("def @main(%x) {\n  %0 = exp(%x)\n  %0\n}", "line 3, column 3: expected ';'"),
    "no value": ("def @main() {\n}", r"line 2, column 1: expected an expression, found '\}'"),
    "unknown value": ("def @main() {\n  %3\n}", "line 2, column 3: %3 is used before it is"),
    "unknown variable": ("def @main() {\n  exp(%y.0)\n}", "the variable %y.0 isn't declared"),
    "field assigned": ("def @main(%x) { %0.1 = exp(%x); %x }", "can't be assigned"),
    "unknown function": (
        "def @main() { @f() }",
        r"@f is used, and not there; there are \['main'\]",
    ),
    "external": ("def @main = meta[F][0]", "@main isn't written in Relay"),
    "TIR": ("@main = primfn(a: handle) -> () { }", "@main isn't written in Relay"),
    "match": ("def @main(%x) { match (%x) { } }", "pattern matching on algebraic types"),
    "reference": ("def @main(%x) { ref_read(%x) }", "'ref_read': references aren't read"),
    "algebraic": ("def @main(%x: List[int8]) { %x }", "expected a type, found 'List'"),
    "generic": ("def @main[A](%x: A) { %x }", "'A' is no dtype"),
    "shape": ('def @main(%x: Tensor[("a" , 2.5), int8]) { %x }', "expected a dimension"),
    "bits": ("def @main(%x: float320) { %x }", "'float320' is no dtype"),
    "no dtype": ("def @main(%x: Tensor[(1)]) { %x }", r"expected ',' before the dtype, found '\]'"),
    "missing attribute": ("def @main(%x) { nn.dense(%x, %x) }", r"the attributes \['units'\]"),
    "attribute twice": ("def @main(%x) { sum(%x, axis=1, axis=2) }", "'axis' stands twice"),
    "attribute value": ("def @main(%x) { sum(%x, axis=;) }", "expected the value of an attribute"),
    "number": ("def @main() { 1.2.3 }", "'1.2.3' is no number"),
    "whole number": ("def @main() { 1.5i32 }", "is no whole number"),
    "width": ("def @main() { 1f24 }", "'1f24' is no number"),
    "too large": ("def @main() { 70000i16 }", "'70000i16' is no int16"),
    "field": ("def @main(%x) { (%x,).a }", "expected a field's number"),
    "separator": ("def @main(%x) { exp(%x %x) }", r"expected ',' or '\)', found '%x'"),
    "no metadata": (
        "def @main() {\n  meta[relay.Constant][0]\n}",
        r"line 2, column 3: meta\[relay.Constant\]\[0\] is in the metadata section, and the text",
    ),
    "no boxed number": (
        "def @main(%x) { split(%x, indices_or_sections=meta[runtime.BoxInt][0]) }",
        "show_meta_data=True",
    ),
    "beyond metadata": (
        "def @main() { meta[relay.Constant][3] }"
        + metadata({"relay.Constant": lambda g: [g.constant(SHIFT)]}),
        r"the metadata section has 1 of 'relay.Constant'",
    ),
    "no such metadata": (
        "def @main() { meta[relay.Constant][0] }" + metadata({}),
        r"the metadata section has 0 of 'relay.Constant'",
    ),
    "damaged metadata": ("def @main() { 1 }\n#[metadata]\n{", r"\(metadata\).*isn't whole JSON"),
    "no attributes": (
        "def @main(%x) { f(%x, meta[DictAttrs][0]) }"
        + metadata({"DictAttrs": lambda g: [g.add("")]}),
        "holds no attributes",
    ),
    "deep type": (f"def @main(%x: {'(' * 200}) {{ 1 }}", "isn't closed|nest deeper"),
    "deep closed type": (
        f"def @main(%x: {'(' * 200}{')' * 200}) {{ 1 }}",
        "types nest deeper than 64",
    ),
    "deep value": (f"def @main() {{ f(a={'[' * 200}{']' * 200}) }}", "values nest deeper than 64"),
    "behind": ("fn () { 1 } fn () { 2 }", "expected the end of the text"),
    "free function": ("fn () { @f() }", "@f is used, and not there"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_isnt_read_is_an_error_with_its_place(case):
    text, match = BROKEN[case]
    with pytest.raises(RelayError, match=match) as error:
        read_text_module(text, "old.relay.txt")
    assert str(error.value).startswith("old.relay.txt")


def test_lines_and_columns_count_from_the_top_of_the_file():
    with pytest.raises(RelayError, match=r"line 4, column 7: %9 is used"):
        read_text_module("\n" + HEADER + "def @main(%x) {\n  exp(%9)\n}")
    with pytest.raises(RelayError, match=r"line 1, column 37: %9 is used"):
        read_text_module('#[version = "0.0.5"] def @main() { (%9) }')


def test_a_text_cut_anywhere_is_an_error():
    text = (DATA / "block_0_0_5.relay.txt").read_text()
    end_of_main = text.index("#[metadata]")
    for end in range(0, end_of_main - 2, 13):
        with pytest.raises(RelayError):
            read_text_module(text[:end])


def test_characters_exchanged_at_random_are_errors_or_modules():
    rng = np.random.default_rng(7)
    text = (DATA / "block_0_0_4.relay.txt").read_text()
    signs = "(){}[],;:=%@.\"'-/*#x9 \n"
    for _ in range(400):
        at = int(rng.integers(len(text)))
        sign = signs[rng.integers(len(signs))]
        try:
            read_text_module(text[:at] + sign + text[at + int(rng.integers(2)) :])
        except RelayError:
            continue
