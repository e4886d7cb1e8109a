"""The alternating direction method of multipliers, with a scheme as the constraint."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from tvm_ext.training.assignment import Assignment
from tvm_ext.training.history import Metrics
from tvm_ext.training.options import ADMM
from tvm_ext.training.stage import Stage

Tensors = dict[str, torch.Tensor]


class AdmmStage(Stage):
    """Epochs that pull the weights W towards a projection Z, by a scaled dual variable U.

    Zhang et al. 2018, section 3: the W-step is the optimizer's, on the loss plus
    rho/2 |W - Z + U|^2; then Z = projection of W + U, and U += W - Z.

    Parameters
    ----------
    number : int
    options : ADMM
    assignment : Assignment
        Its masks make the projection: a tensor times its own mask.
    """

    kind = "admm"

    def __init__(self, number: int, options: ADMM, assignment: Assignment) -> None:
        super().__init__(number, options)
        self._options, self._assignment = options, assignment
        self._z: Tensors = {}
        self._u: Tensors = {}
        self._rho = options.rho[0]
        self._targets: Tensors = {}

    def start(self) -> None:
        """Z is the projection of W, U is zero."""
        weights = self._weights()
        self._z = self._project(weights)
        self._u = {name: torch.zeros_like(w) for name, w in weights.items()}
        self._aim()

    def penalty(self) -> torch.Tensor:
        """rho/2 |W - Z + U|^2 over all layers."""
        parts = [
            (weight.parameter - self._targets[weight.name]).square().sum()
            for weight in self._assignment.weights
        ]
        return 0.5 * self._rho * torch.stack(parts).sum()

    def after_epoch(self, epoch: int, validation: float | None) -> Metrics:
        """Update Z and U, and let rho grow."""
        weights, before, rho = self._weights(), self._z, self._rho
        self._z = self._project({name: w + self._u[name] for name, w in weights.items()})
        for name, w in weights.items():
            self._u[name] = self._u[name] + w - self._z[name]
        self._rho = self._rho_of(epoch + 1)
        # U is scaled by 1 / rho; what it stands for mustn't change with rho.
        self._u = {name: u * (rho / self._rho) for name, u in self._u.items()}
        self._aim()
        size = _norm(weights)
        return Metrics(
            rho=rho,
            primal_residual=_distance(weights, self._z) / size,
            dual_residual=_distance(self._z, before) / size,
        )

    def state_dict(self) -> dict[str, Any]:
        """Z, U and rho."""
        return {"z": self._z, "u": self._u, "rho": self._rho}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with Z, U and rho."""
        devices = {w.name: w.parameter.device for w in self._assignment.weights}
        self._z = {name: z.to(devices[name]) for name, z in state["z"].items()}
        self._u = {name: u.to(devices[name]) for name, u in state["u"].items()}
        self._rho = state["rho"]
        self._aim()

    def _weights(self) -> Tensors:
        return {w.name: w.parameter.detach() for w in self._assignment.weights}

    def _project(self, values: Tensors) -> Tensors:
        masks = self._assignment.masks(values)
        return {name: value.masked_fill(~masks[name], 0) for name, value in values.items()}

    def _aim(self) -> None:
        """Z - U, which W is pulled to, computed once an epoch."""
        self._targets = {name: z - self._u[name] for name, z in self._z.items()}

    def _rho_of(self, epoch: int) -> float:
        first, last = self._options.rho
        share = min(epoch, self.epochs - 1) / max(self.epochs - 1, 1)
        return first * math.pow(last / first, share)


def _norm(values: Mapping[str, torch.Tensor]) -> float:
    """The norm of all values together; 1 if they are all zero."""
    return math.sqrt(sum(float(v.double().square().sum()) for v in values.values())) or 1.0


def _distance(left: Tensors, right: Tensors) -> float:
    return math.sqrt(sum(float((v - right[n]).double().square().sum()) for n, v in left.items()))
