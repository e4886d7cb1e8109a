"""`build` with a bank: what is taken, what isn't and why, and that the result is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests.passes.relax_models import array, run
from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, record
from tests.transfer.tuning import network
from tvm_ext import planner
from tvm_ext.errors import TuningError
from tvm_ext.grouped_model import grouped
from tvm_ext.plan import Plan
from tvm_ext.plan_check import check_plan
from tvm_ext.transfer import bank_offers
from tvm_ext.transfer.bank import BANK_VARIABLE, Bank, Provenance
from tvm_ext.transfer.bank_offers import BankOffers
from tvm_ext.transfer.tuned_record import TunedRecord

MODEL = network(6, 4)
pytestmark = pytest.mark.usefixtures("steady")
CONVS = ["conv2d_0", "conv2d_1"]
CONV = conv(4, 4, 6, 3, 1, ("relu",))
OWN = record(CONV, 1e-9)
MCPU = str(HOST.llvm["mcpu"])


def bank_of(*records: TunedRecord, threads: int = 1, mcpu: str = MCPU) -> Bank:
    bank = Bank(mcpu)
    bank.add(records, Provenance("a model, search", threads))
    return bank


@pytest.fixture
def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a bank the user's."""

    def set_bank(bank: Bank) -> None:
        bank.save(tmp_path / "bank.jsonl.gz")
        monkeypatch.setenv(BANK_VARIABLE, str(tmp_path / "bank.jsonl.gz"))

    return set_bank


def taken(plan: Plan) -> list[str]:
    return [entry.name for entry in plan if entry.source == "bank"]


def is_right(plan: Plan, size: int, filters: int) -> bool:
    """Whether the built model computes what TVM's own pipeline does."""
    mod, x = network(size, filters), array(9, 1, filters, size, size)
    expected = run(mod, x)
    got = tvm_ext.build(mod, plan=plan)(x)
    return bool(np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max())


def test_an_exact_record_is_used_where_it_is_faster(use: Any) -> None:
    use(bank_of(OWN))
    plan = tvm_ext.plan(MODEL)
    assert taken(plan) == CONVS
    entry, default = plan["conv2d_0"], tvm_ext.plan(MODEL, tuning="none")["conv2d_0"]
    assert (entry.algorithm, entry.layout) == ("tuned", ["NCHW", "NCHW"])
    assert entry.params == {"record": OWN.name, "trace": OWN.trace}
    assert entry.estimate_us == pytest.approx(1e-3)
    assert default.algorithm in entry.rejected
    assert tvm_ext.build(MODEL).plan == plan
    assert is_right(plan, 6, 4)
    check_plan(plan, grouped(MODEL, HOST).layers, HOST)


def test_a_slower_record_is_refused_with_both_times(use: Any) -> None:
    use(bank_of(replace(OWN, seconds=1e-3)))
    plan, default = tvm_ext.plan(MODEL), tvm_ext.plan(MODEL, tuning="none")
    assert taken(plan) == []
    assert plan["conv2d_0"].rejected["tuned"].startswith(f"record {OWN.name}: 1000 us against ")
    for entry in plan:
        entry.rejected.pop("tuned", None)
    assert plan == default


def test_class_matches_are_scaled_by_the_work(use: Any) -> None:
    use(bank_of(OWN))
    mod = network(8, 6)
    plan = tvm_ext.plan(mod)
    assert taken(plan) == CONVS
    # 64 against 36 pixels, 6 * 6 against 4 * 4 pairs of channels; both layers have one trace.
    assert plan["conv2d_0"].estimate_us == pytest.approx(1e-3 * (64 * 36) / (36 * 16))
    assert plan["conv2d_0"].params == plan["conv2d_1"].params
    assert is_right(plan, 8, 6)
    use(bank_of(replace(OWN, seconds=1e-3)))
    slow = tvm_ext.plan(mod)
    assert taken(slow) == []
    assert "record " + OWN.name + ": 4000 us against" in slow["conv2d_0"].rejected["tuned"]


def test_layers_of_other_classes_get_no_tensor_program(
    use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = bank_offers.tensor_program

    def counted(layer: Any) -> Any:
        made.append(layer.name)
        return original(layer)

    monkeypatch.setattr(bank_offers, "tensor_program", counted)
    tvm_ext.plan(MODEL)
    use(Bank(MCPU))
    tvm_ext.plan(MODEL)
    use(bank_of(record(conv(4, 4, 6, 3, 1, ("sigmoid",)), 1e-9)))
    assert taken(tvm_ext.plan(MODEL)) == []
    assert made == []
    # Both layers of a kernel share one.
    use(bank_of(OWN))
    tvm_ext.plan(MODEL)
    assert made == CONVS[:1]


def test_a_trace_that_does_not_fit_is_passed_over_with_its_reason(use: Any) -> None:
    product = record(program(matmul_layer()), 1e-9)
    broken = replace(OWN, trace=product.trace, seconds=1e-10)
    use(bank_of(broken))
    plan = tvm_ext.plan(MODEL)
    assert taken(plan) == []
    assert "tuned.trace doesn't fit: Cannot find a block" in plan["conv2d_0"].rejected["tuned"]
    # The next fastest takes its place.
    use(bank_of(broken, OWN))
    assert tvm_ext.plan(MODEL)["conv2d_0"].params["record"] == OWN.name
    # To a kernel of its class, it can't be fitted either.
    use(bank_of(broken))
    larger = tvm_ext.plan(network(8, 6))
    assert larger["conv2d_0"].rejected["tuned"] == "none of 1 records of its class fits"


def test_records_of_more_threads_count_for_less() -> None:
    layers = grouped(MODEL, HOST).layers
    one = replace(HOST, cores=1)
    fast = replace(OWN, seconds=1e-6)
    assert not isinstance(BankOffers(bank_of(fast, threads=4), layers, one)(layers[0], 5e-6), str)
    reason = BankOffers(bank_of(fast, threads=4), layers, one)(layers[0], 3e-6)
    assert reason == f"record {OWN.name}: 4 us against 3 us"
    # Fewer aren't taken to be slower than they were.
    many = replace(HOST, cores=8)
    offer = BankOffers(bank_of(fast), layers, many)(layers[0], 3e-6)
    assert not isinstance(offer, str)
    assert offer.seconds == 1e-6


def test_conversions_around_a_layer_count() -> None:
    """A schedule in the model's own layout must save the conversions that it costs, too."""
    found = grouped(network(32, 32), HOST).layers
    default = planner.choose(found, HOST)
    first, second = (default[name] for name in CONVS)
    assert "NCHW" not in (*first.layout, second.layout[0])
    limits: dict[str, float] = {}

    def nothing(layer: Any, limit_s: float) -> str:
        limits[layer.name] = limit_s
        return ""

    assert planner.choose(found, HOST, nothing) == default
    # The first saves one of the input and needs one of the output, which is as large.
    assert limits["conv2d_0"] == pytest.approx(first.estimate_us * 1e-6)
    # The second needs one of its input: 32 * 32 * 32 values, read and written.
    moved = 2 * 4 * 32**3 / HOST.memory_bandwidth
    assert limits["conv2d_1"] < second.estimate_us * 1e-6 - moved


def test_a_given_plan_is_followed_and_none_is_none(use: Any) -> None:
    use(bank_of(OWN))
    default = tvm_ext.plan(MODEL, tuning="none")
    assert {entry.source for entry in default} == {"default"}
    assert tvm_ext.build(MODEL, plan=default).plan == default
    assert tvm_ext.build(MODEL, tuning="none").plan == default


@pytest.mark.parametrize("function", [tvm_ext.build, tvm_ext.plan])
def test_other_values_are_refused(function: Any) -> None:
    with pytest.raises(TuningError, match="tuning='log'; allowed: bank, none"):
        function(MODEL, tuning="log")


def test_a_bank_that_cannot_be_used_is_refused(
    use: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(bank_of(OWN, mcpu="another"))
    with pytest.raises(TuningError, match=r"bank\.jsonl\.gz is a bank of another; .*: " + MCPU):
        tvm_ext.plan(MODEL)
    monkeypatch.setenv(BANK_VARIABLE, str(tmp_path / "none.gz"))
    with pytest.raises(TuningError, match=r"can't read the bank .*none\.gz"):
        tvm_ext.build(MODEL)
    tvm_ext.plan(MODEL, tuning="none")
