"""The loss of a batch with a teacher, put together by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.networks import convnet, cross_entropy, nn, normal, torch
from tvm_ext.errors import OptionError
from tvm_ext.training import AttentionTransfer, Distillation
from tvm_ext.training.losses import attention_loss, distillation_loss
from tvm_ext.training.objective import Objective

X, Y = normal(5, 1, 6, 6), torch.tensor([0, 1, 2, 0, 1])


def test_without_a_teacher_it_is_the_loss_and_the_teacher_isnt_run() -> None:
    def fail(*args: Any) -> None:
        raise AssertionError("the teacher ran")

    student, teacher = convnet().eval(), convnet(1).eval()
    teacher.register_forward_hook(fail)
    with Objective(student, cross_entropy, teacher) as objective:
        assert torch.equal(objective(X, Y), cross_entropy(student(X), Y))


def test_distillation_mixes_the_losses() -> None:
    student, teacher = convnet().eval(), convnet(1).eval()
    with Objective(student, cross_entropy, teacher, Distillation(3.0, 0.25)) as objective:
        got = objective(X, Y)
    wanted = 0.75 * cross_entropy(student(X), Y)
    wanted = wanted + 0.25 * distillation_loss(student(X), teacher(X), 3.0)
    torch.testing.assert_close(got, wanted)
    got.backward()
    assert all(p.grad is None for p in teacher.parameters())
    assert all(p.grad is not None for p in student.parameters())


def test_attention_transfer_adds_half_beta_a_layer() -> None:
    student, teacher = convnet().eval(), convnet(1).eval()
    attention = AttentionTransfer(("[35]",), beta=7.0)
    with Objective(student, cross_entropy, teacher, attention=attention) as objective:
        got = objective(X, Y)
    wanted = cross_entropy(student(X), Y)
    for end in (4, 6):
        wanted = wanted + 3.5 * attention_loss(student[:end](X), teacher[:end](X), 2.0)
    torch.testing.assert_close(got, wanted)


def test_modules_are_watched_only_inside_the_context() -> None:
    student, teacher = convnet(), convnet(1)
    objective = Objective(student, cross_entropy, teacher, attention=AttentionTransfer(("3",)))
    with objective:
        assert len(student[3]._forward_hooks) == len(teacher[3]._forward_hooks) == 1
    assert not student[3]._forward_hooks
    assert not teacher[3]._forward_hooks


@pytest.mark.parametrize(
    ("patterns", "teacher", "message"),
    [
        (("3", "conv*"), convnet(), "layers: 'conv\\*' matches no module of 0, 1, 2"),
        (("3", "9"), convnet()[:5], "the teacher has no 9"),
    ],
)
def test_layers_that_arent_there(patterns: tuple[str, ...], teacher: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Objective(convnet(), cross_entropy, teacher, attention=AttentionTransfer(patterns))


class Pair(nn.Module):
    def forward(self, x: Any) -> tuple[Any, Any]:
        return x, x


def test_outputs_that_a_teacher_cant_be_followed_in() -> None:
    pair, flat = Pair(), nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    with (
        Objective(pair, lambda y, t: y[0].sum(), pair, Distillation()) as objective,
        pytest.raises(OptionError, match="the model's output is a tuple, not a tensor"),
    ):
        objective(X, Y)
    attention = AttentionTransfer(("1",))
    with (
        Objective(flat, cross_entropy, flat, attention=attention) as objective,
        pytest.raises(OptionError, match="output of '1' has 2 dimensions; it needs at least 3"),
    ):
        objective(X, Y)
