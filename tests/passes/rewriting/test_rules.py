"""Every rule fires, refuses with its reason, and keeps the numbers that NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest
from relax_models import module, ops, run

from tests.passes.rewriting.case import Case
from tests.passes.rewriting.cases import CASES as ARITHMETIC
from tests.passes.rewriting.merges import MERGES
from tests.passes.rewriting.moves import MOVES
from tests.passes.rewriting.variants import VARIANTS
from tvm_ext.passes.rewriting import RewriteGraph
from tvm_ext.passes.rewriting.rule import rules

CASES = (*ARITHMETIC, *MOVES, *MERGES)
_OPTIONAL = [name for name, rule in rules().items() if rule.optional]
_OTHER_FUNCTIONS = [name for name, rule in rules().items() if rule.tolerance > 1e-3]
_ALONE = {case.rule: [name for name in rules() if name != case.rule] for case in CASES}


def _pass(case: Case) -> RewriteGraph:
    return RewriteGraph(True, without=_ALONE[case.rule], also=_OPTIONAL)


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(rules())


@pytest.mark.parametrize("case", (*CASES, *VARIANTS), ids=lambda c: c.rule)
def test_rule_fires_and_keeps_the_numbers(case: Case) -> None:
    rewrite = _pass(case)
    new = rewrite(module(case.inputs, case.body, case.dtype))
    assert ops(new) == case.ops
    (application,) = rewrite.applications
    assert application.rule == case.rule
    assert application.after.less_than(application.before)
    assert application.after.weight <= application.before.weight

    rng = np.random.default_rng(0)
    draw = rng.integers if case.dtype == "int32" else rng.uniform
    inputs = [draw(case.low, case.high, s).astype(case.dtype) for s in case.inputs.values()]
    expected = case.numpy(*(x.astype("float64") for x in inputs))
    # A rounding of each operation comes on top of what the rule itself changes.
    tolerance = 1e-5 if case.dtype == "float32" else 0
    np.testing.assert_allclose(run(new, *inputs), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("case", "reason"),
    [(case, reason) for case in CASES for reason in case.refused],
    ids=lambda x: x.rule if isinstance(x, Case) else x,
)
def test_rule_refuses_with_its_reason(case: Case, reason: str) -> None:
    inputs, body = case.refused[reason]
    mod = module(inputs, body, case.dtype)
    rewrite = _pass(case)
    assert ops(rewrite(mod)) == ops(mod)
    assert not rewrite.applications
    # Without a reason the pattern isn't even found.
    assert [reason in r.reason for r in rewrite.refusals] == ([True] if reason else [])


@pytest.mark.parametrize(
    "case", [c for c in CASES if rules()[c.rule].on != "always"], ids=lambda c: c.rule
)
def test_unsafe_rules_are_off_unless_asked_for(case: Case) -> None:
    mod = module(case.inputs, case.body, case.dtype)
    assert ops(RewriteGraph()(mod)) == ops(mod)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.rule in _OTHER_FUNCTIONS], ids=lambda c: c.rule
)
def test_approximations_are_as_close_as_they_say(case: Case) -> None:
    """And no closer: the stated tolerance is the largest difference."""
    tolerance = rules()[case.rule].tolerance
    ((name, _),) = case.inputs.items()
    mod = module({name: (10001,)}, case.body)
    x = np.linspace(case.low, case.high, 10001, dtype="float32")
    worst = np.abs(run(_pass(case)(mod), x) - run(mod, x)).max()
    assert 0.99 * tolerance < worst <= tolerance
