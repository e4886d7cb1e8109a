"""Distillation and attention losses against their definitions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.training.networks import normal, torch
from tvm_ext.training.losses import attention_loss, attention_map, distillation_loss


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3)])
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_distillation(shape: tuple[int, ...], temperature: float) -> None:
    student, teacher = normal(*shape).double(), normal(*shape, seed=1).double()
    p, q = softmax(teacher.numpy() / temperature), softmax(student.numpy() / temperature)
    wanted = temperature**2 * (p * np.log(p / q)).sum() / shape[0]
    assert distillation_loss(student, teacher, temperature).item() == pytest.approx(wanted)


def test_distillation_by_hand() -> None:
    # The teacher says 3/4 and 1/4, the student 1/2 and 1/2.
    teacher = torch.log(torch.tensor([[3.0, 1.0]]))
    wanted = 0.75 * np.log(1.5) + 0.25 * np.log(0.5)
    assert distillation_loss(torch.zeros(1, 2), teacher, 1.0).item() == pytest.approx(wanted)
    assert distillation_loss(teacher, teacher, 3.0).item() == pytest.approx(0, abs=1e-7)


def test_attention_map_by_hand() -> None:
    # Two channels at two positions: 1 + 4 = 5 and 9 + 3 = 12, and 5, 12, 13 is a right triangle.
    features = torch.tensor([[[1.0, 3.0], [-2.0, 3.0**0.5]]])
    np.testing.assert_allclose(attention_map(features, 2.0), [[5 / 13, 12 / 13]], rtol=1e-6)
    np.testing.assert_array_equal(attention_map(torch.zeros(1, 2, 3), 2.0), [[0, 0, 0]])


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_attention(power: float) -> None:
    student, teacher = normal(4, 3, 5, 2).double(), normal(4, 6, 5, 2, seed=1).double()
    maps = []
    for features in (student.numpy(), teacher.numpy()):
        q = (np.abs(features) ** power).sum(1).reshape(4, -1)
        maps.append(q / np.linalg.norm(q, axis=1, keepdims=True))
    wanted = ((maps[0] - maps[1]) ** 2).sum(1).mean()
    assert attention_loss(student, teacher, power).item() == pytest.approx(wanted)


def test_a_student_that_is_its_teacher_has_a_gradient() -> None:
    student = normal(2, 3, 4, 4).requires_grad_()
    attention_loss(student, student.detach(), 2.0).backward()
    assert student.grad is not None
    assert student.grad.abs().max() == 0
