"""Differences between modules, each in one place."""

import re

import pytest

from tvm_ext.frontend.relay.structural_equal import structural_difference, structurally_equal
from tvm_ext.frontend.relay.text_module import read_text_module

BASE = """
def @f(%x: float32) -> float32 { exp(%x) }
def @main(%x: Tensor[(2, n), float32], %y: (int8, int8), Inline=1) -> Tensor[(2, n), float32] {
  %0 = nn.softmax(%x, axis=1) /* ty=Tensor[(2, n), float32] */;
  %1 = (%0, %0);
  let %a = clip(%1.0, a_min=0.25f, a_max=6f);
  if (True) { add(%a, 2f) } else { my.op(@f(1f), sizes=[1, [2]], name="s") }
}
"""


def difference(text, rtol=1e-5):
    return structural_difference(read_text_module(BASE), read_text_module(text), rtol)


def test_a_module_is_itself():
    assert difference(BASE) == ""
    module = read_text_module(BASE)
    assert structurally_equal(module, module)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%x", "%data"),
        ("%a ", "%b "),
        ("(2, n)", "(2, batch)"),
        ("0.25f", "0.250001f"),
        ("add(%a, 2f)", "add(%a, 2.00001f)"),
        (" -> Tensor[(2, n), float32] {", " {"),
        (" /* ty=Tensor[(2, n), float32] */", ""),
    ],
)
def test_names_six_digits_and_missing_types_dont_matter(old, new):
    changed = BASE.replace(old, new).replace("(%a,", "(%b," if new == "%b " else "(%a,")
    assert changed != BASE
    assert difference(changed) == ""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("axis=1", "axis=0", "main, body, value, argument 0, tuple, field 0: attributes axis: 1 a"),
        ("0.25f", "0.2501f", "attributes a_min: 0.25 against 0.2501"),
        ("(%0, %0)", "(%0, nn.softmax(%x, axis=1))", "shared with another place"),
        ("(%0, %0)", "(%0, %0, %0)", "tuple: 2 fields against 3"),
        ("%1.0", "%1.1", "field 0 against 1"),
        ("add(", "subtract(", "true branch, callee: add against subtract"),
        ("add(%a, 2f)", "add(2f, %a)", "Var against Constant"),
        ("add(%a, 2f)", "add(%a, 2f64)", r"constant float32\(\) against float64\(\)"),
        ("add(%a, 2f)", "add(%a, 2.1f)", "argument 1: constant: 2.0 against 2.09"),
        ("add(%a, 2f)", "add(%x, 2f)", "shared with another place"),
        ("add(%a, 2f)", "negative(%a)", "2 arguments against 1"),
        ("if (True)", "if (False)", "condition: constants of other values"),
        ("sizes=[1, [2]]", "sizes=[1, [3]]", "attributes sizes: 2 against 3"),
        ("sizes=[1, [2]]", "sizes=[1]", r"attributes sizes: \[1, \[2\]\] against \[1\]"),
        ('name="s"', "name=None", "attributes name: 's' against None"),
        ('name="s"', "label=1", r"\['name', 'sizes'\] against \['label', 'sizes'\]"),
        ("if (True) {", "if (@f(1f)) {", "condition: Constant against Call"),
        ("exp(%x)", "tanh(%x)", "f, body, callee: exp against tanh"),
        ("@f", "@g", r"functions: \['f', 'main'\] against \['g', 'main'\]"),
        ("Inline=1", "Inline=0", "main: attributes Inline: 1 against 0"),
        (", %y: (int8, int8)", "", "main: 2 parameters against 1"),
        ("(int8, int8)", "(int8, int16)", "main, parameter 1: type Tuple"),
        ("(int8, int8)", "(int8,)", "main, parameter 1: type Tuple"),
        ("(int8, int8)", "int8", "main, parameter 1: type Tuple"),
        ("(2, n), float32], %y", "(2, ?), float32], %y", "main, parameter 0: type"),
        ("(2, n), float32], %y", "(2, n), int8], %y", "main, parameter 0: type"),
        ("(2, n), float32] */", "(n, n), float32] */", "type .* against"),
    ],
)
def test_a_difference_is_named_with_its_place(old, new, reason):
    changed = BASE.replace(old, new)
    assert changed != BASE
    assert re.search(reason, difference(changed))
    assert not structurally_equal(read_text_module(changed), read_text_module(BASE))


def test_two_names_of_dimensions_arent_one():
    one = read_text_module("def @main(%x: Tensor[(n, n), int8]) { %x }")
    two = read_text_module("def @main(%x: Tensor[(n, m), int8]) { %x }")
    assert not structurally_equal(one, two)
    assert not structurally_equal(two, one)


def test_the_tolerance_is_the_callers():
    changed = BASE.replace("0.25f", "0.25001f")
    assert difference(changed, rtol=1e-3) == ""
    assert difference(changed, rtol=0) != ""


def test_deep_modules_are_compared_and_their_places_shortened():
    def chain(last):
        lines = "".join(f"%{i} = nn.relu(%{i - 1});\n" for i in range(1, 4000))
        return read_text_module(f"def @main(%x) {{\n%0 = {last}(%x);\n{lines}%3999\n}}")

    assert structural_difference(chain("exp"), chain("exp")) == ""
    reason = structural_difference(chain("exp"), chain("tanh"))
    assert reason.startswith("main, ..., argument 0, argument 0")
    assert reason.endswith("callee: exp against tanh")
    assert len(reason) < 200
