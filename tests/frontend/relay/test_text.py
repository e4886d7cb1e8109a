"""Modules in the form that Relay prints."""

from pathlib import Path

import numpy as np
import pytest

from tvm_ext.frontend.relay.ast import (
    Call,
    Function,
    If,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm_ext.frontend.relay.json_graph import read_json_module
from tvm_ext.frontend.relay.structural_equal import structural_difference
from tvm_ext.frontend.relay.text_module import read_text_module

from .block import SHIFT, block_json, block_module

DATA = Path(__file__).parent / "data"
HEADER = '#[version = "0.0.5"]\n'


def main_of(text):
    return read_text_module(text).functions["main"]


def body_of(body, params=""):
    """The result of a main with this body."""
    return main_of(f"{HEADER}def @main({params}) {{\n{body}\n}}\n").body


@pytest.mark.parametrize("form", ["0.0.4", "0.0.5"])
def test_a_file_of_each_form_reads_the_same(form):
    path = DATA / f"block_{form.replace('.', '_')}.relay.txt"
    module = read_text_module(path.read_text())
    assert structural_difference(module, block_module()) == ""
    assert module.version == form


def test_names_types_and_constants():
    main = main_of((DATA / "block_0_0_5.relay.txt").read_text())
    names = [p.name for p in main.params]
    assert names == ["data", "conv.weight", "gamma", "beta", "mean", "var"]
    assert main.params[1].type == TensorType((4, 1, 3, 3), "float32")
    assert main.ret_type == TensorType((1, 4, 2, 2), "float32")
    total = main.body.args[0].args[0]
    assert total.type == TensorType((1, 4, 4, 4), "float32")
    normed, shifted = total.args
    np.testing.assert_array_equal(shifted.args[1].data, SHIFT)
    first, second = shifted.args[0].args[0].fields
    assert first.value is second.value
    assert first.value.args[0] is normed


def test_windows_line_ends_and_comments_change_nothing():
    text = (DATA / "block_0_0_5.relay.txt").read_text()
    changed = "// saved by hand\n/* of\n one model */\n" + text.replace("\n", "\r\n")
    module = read_text_module(changed.replace("  %1 =", "  // normed\n  %1 ="))
    assert structural_difference(module, block_module()) == ""


def test_a_module_without_its_version_and_metadata_is_read():
    module = read_text_module("def @main(%x: int8) { exp(%x) }")
    assert module.version == ""
    assert module.functions["main"].params[0].type == TensorType((), "int8")


def test_omitted_metadata_of_unused_objects_is_a_comment():
    text = "def @main(%x) {\n  %x\n}\n"
    note = "/* For debugging purposes the metadata section has been omitted.\n */"
    assert isinstance(main_of(HEADER + text + note).body, Var)


def test_a_chain_of_thousands_of_values_is_read():
    lines = ["  %0 = nn.relu(%x);"]
    lines += [f"  %{i} = nn.relu(%{i - 1});" for i in range(1, 5000)]
    call = body_of("\n".join(lines) + "\n%4999", "%x")
    depth = 0
    while isinstance(call, Call):
        call, depth = call.args[0], depth + 1
    assert depth == 5000


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("exp(", ")"), ("(", ",)"), ("if (%c) {", "} else { %x }"), ("fn () {", "}"), ("{", "}")],
)
def test_thousands_of_nested_expressions_are_read(opening, closing):
    assert body_of(opening * 2000 + "%x" + closing * 2000, "%x, %c") is not None


def test_let_binds_for_what_follows_and_in_a_function_for_itself():
    text = """
      let %a = exp(%x) /* ty=float32 */;
      let %loop: fn (float32) -> float32 = fn (%i: float32) -> float32 { %loop(%i) };
      %loop(%a)
    """
    outer = body_of(text, "%x: float32")
    assert isinstance(outer, Let)
    inner = outer.body
    assert inner.var.type is None
    loop = inner.value
    assert isinstance(loop, Function)
    assert loop.body.callee is inner.var
    assert loop.body.args == loop.params
    assert loop.ret_type == TensorType((), "float32")
    assert inner.body.callee is inner.var
    assert inner.body.args == (outer.var,)


def test_an_inner_variable_hides_an_outer_one():
    call = body_of("%0 = fn (%x) { %x };\n%0(%x)", "%x")
    assert call.callee.body is call.callee.params[0]
    assert call.args[0] is not call.callee.params[0]


def test_if_and_a_let_in_parentheses():
    choice = body_of("if (%c) {\n (\n let %y = exp(%x);\n %y\n )\n} else { %x }", "%c: bool, %x")
    assert isinstance(choice, If)
    assert isinstance(choice.true, Let)
    assert choice.true.body is choice.true.var
    assert isinstance(choice.false, Var)


def test_primitive_functions_and_calls_of_them():
    text = """
      %1 = fn (%p0: Tensor[(2), float32], Primitive=1, hash="a\\"b", T_s=[1, [2]],
               k={"x"=1}) -> Tensor[(2), float32] {
        %0 = exp(%p0);
        tanh(%0)
      } /* ty=fn (Tensor[(2), float32]) -> Tensor[(2), float32] */;
      %1(%x) /* ty=Tensor[(2), float32] */
    """
    call = body_of(text, "%x: Tensor[(2), float32]")
    function = call.callee
    assert isinstance(function, Function)
    assert function.attrs == {"Primitive": 1, "hash": 'a"b', "T_s": [1, [2]], "k": {"x": 1}}
    assert function.body.callee.name == "tanh"
    assert call.type == TensorType((2,), "float32")


def test_only_functions_that_main_reaches_are_read():
    text = """
type List[A] {
  Cons(A, List[A]),
  Nil,
}

def @length[A](%xs: List[A]) -> int32 {
  match (%xs) { Cons(_, %t) => { @length(%t) }, Nil => { 0 }, }
}

def @external = meta[relay.ExternalFunction][0]

@kernel = primfn(a: handle) -> () { for (i: int32, 0, 3) { } }

def @half(%x: float32) -> float32 { multiply(%x, 0.5f) }

def @main(%x: float32) -> float32 { @half(%x) }
"""
    assert set(read_text_module(HEADER + text).functions) == {"main", "half"}


def test_a_single_function_and_a_single_expression_are_main():
    main = main_of(HEADER + "fn (%x: float32) -> float32 {\n  exp(%x)\n}")
    assert main.body.args == main.params
    main = main_of(
        HEADER + "free_var %x: Tensor[(2), float32];\n%0 = exp(%x);\nfree_var %y;\nadd(%0, %y)"
    )
    assert [p.name for p in main.params] == ["x", "y"]
    assert main.params[0].type == TensorType((2,), "float32")
    assert main.body.args == (main.body.args[0], main.params[1])


def test_names_of_frameworks():
    params = "%input.1: float32, %conv/kernel:0: float32, %a-b: float32, %x.0: float32, %x: (int8,)"
    main = main_of(
        f"{HEADER}def @main({params}) {{ (%input.1, %conv/kernel:0, %a-b, %x.0, %x.0.0) }}"
    )
    assert [p.name for p in main.params] == ["input.1", "conv/kernel:0", "a-b", "x.0", "x"]
    *named, item = main.body.fields
    assert tuple(named) == main.params[:4]
    # A variable x.0 is there, so its field 0 is meant.
    assert isinstance(item, TupleGetItem)
    assert item.value is main.params[3]


def test_fields_of_values_and_variables():
    item = body_of("%0 = split(%x, indices_or_sections=2);\n%0.1.2", "%x")
    assert (item.index, item.value.index) == (2, 1)
    item = body_of("%x.0.3", "%x")
    assert (item.index, item.value.index) == (3, 0)
    assert body_of("(%x, %x).1", "%x").index == 1
    assert body_of("(%x, %x).1.0", "%x").value.index == 1


def test_tuples():
    assert body_of("()").fields == ()
    one = body_of("(%x,)", "%x")
    assert isinstance(one, Tuple)
    assert len(one.fields) == 1
    assert isinstance(body_of("(%x)", "%x"), Var)


def test_json_and_text_are_the_same_network():
    text = read_text_module((DATA / "block_0_0_5.relay.txt").read_text())
    assert structural_difference(read_json_module(block_json("0.19.0")), text) == ""
