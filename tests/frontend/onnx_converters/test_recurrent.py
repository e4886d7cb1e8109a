"""LSTM, GRU and RNN against ONNX Runtime: directions, states, layouts, activations."""

import numpy as np
import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, call, calls, compile_functions, normal

T, B, I, H = 4, 3, 5, 6  # noqa: E741
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = {"RNN": 2, "GRU": 2, "LSTM": 3}


def recurrent(name, op, *, bias=True, initial=False, lengths=None, runtime=(0,), **attrs):
    """Return a case; all weights are small so that no gate saturates."""
    d = 2 if attrs.get("direction") == "bidirectional" else 1
    rows = GATES[op] * H
    state = [normal(d, B, H, seed=4), normal(d, B, H, seed=5)][: OUTPUTS[op] - 1]
    inputs = [
        normal(T, B, I),
        normal(d, rows, I, seed=1) * 0.5,
        normal(d, rows, H, seed=2) * 0.5,
        normal(d, 2 * rows, seed=3) if bias else None,
        None if lengths is None else np.array(lengths, "int32"),
        *(state if initial else []),
    ]
    attrs = {"hidden_size": H, **attrs}
    return Case(name, op, inputs, attrs, outputs=OUTPUTS[op], runtime=runtime, rtol=2e-5)


DIRECTIONS = ("forward", "reverse", "bidirectional")
CASES = Cases(
    [
        *[
            recurrent(f"{op}_{direction}", op, direction=direction, initial=True)
            for op in GATES
            for direction in DIRECTIONS
        ],
        *[recurrent(f"{op}_no_bias", op, bias=False) for op in GATES],
        *[
            recurrent(
                f"GRU_late_reset_{d}", "GRU", direction=d, linear_before_reset=1, initial=True
            )
            for d in DIRECTIONS
        ],
        recurrent("GRU_late_reset_no_bias", "GRU", linear_before_reset=1, bias=False),
        recurrent("LSTM_full_lengths", "LSTM", lengths=[T] * B),
        recurrent("LSTM_clip", "LSTM", clip=0.4),
        recurrent("LSTM_activations", "LSTM", activations=["Sigmoid", "Relu", "Tanh"]),
        recurrent(
            "RNN_activations", "RNN", direction="bidirectional", activations=["Relu", "Tanh"]
        ),
        recurrent("GRU_weights_at_run_time", "GRU", initial=True, runtime=(0, 1, 2, 3, 5)),
        recurrent("LSTM_all_at_run_time", "LSTM", initial=True, runtime=(0, 1, 2, 3, 5, 6)),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


def test_the_inputs_product_is_taken_once():
    # One product over all time steps, then one a step.
    module = load_model(CASES.cases["LSTM_forward"].model())
    assert calls(module).count("relax.matmul") == 1 + T


def test_batch_first_layout_is_the_transposed_result():
    # ONNX Runtime doesn't take layout=1, so compare with our own layout=0 transposed.
    case = recurrent("time_first", "LSTM", direction="bidirectional", initial=True)
    swapped = Case(
        "batch_first",
        "LSTM",
        [
            x if k not in (0, 5, 6) or x is None else x.swapaxes(0, 1)
            for k, x in enumerate(case.inputs)
        ],
        {**case.attrs, "layout": 1},
        outputs=3,
    )
    functions = {"a": load_model(case.model())["main"], "b": load_model(swapped.model())["main"]}
    vm = compile_functions(functions)
    y, h, c = call(vm, "a", case.inputs[0])
    y_swapped, h_swapped, c_swapped = call(vm, "b", np.ascontiguousarray(swapped.inputs[0]))
    np.testing.assert_array_equal(y_swapped, y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(h_swapped, h.swapaxes(0, 1))
    np.testing.assert_array_equal(c_swapped, c.swapaxes(0, 1))


def test_peepholes_are_refused_by_name():
    case = recurrent("peepholes", "LSTM", initial=True)
    case.inputs.append(normal(1, 3 * H))
    with pytest.raises(ModelError, match=r"node 'node' \(LSTM\).*'P' \(peepholes\)"):
        load_model(case.model())


def test_short_sequences_are_refused():
    case = recurrent("short", "GRU", lengths=[T, 1, T])
    with pytest.raises(
        ModelError, match=r"sequence_lens is \[4, 1, 4\]; only full sequences \(4\)"
    ):
        load_model(case.model())


def test_other_activations_are_refused_by_name():
    case = recurrent("softsign", "RNN", activations=["Softsign"])
    with pytest.raises(ModelError, match=r"'Softsign'.*only Sigmoid, Tanh and Relu"):
        load_model(case.model())
