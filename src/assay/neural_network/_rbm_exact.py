"""Restricted Boltzmann machines of few units, exactly: sums over all states of the smaller layer.

    E(v, h) = -v'a - h'b - h'W v,    ln P(v) = v'a + sum_k ln(1 + exp(b_k + W_k v)) - ln Z

Given one layer the units of the other are independent, so that 2^min(d, h) terms are enough where a general machine
(`BoltzmannMachine`) needs 2^(d + h).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from assay.neural_network._boltzmann import MOST_UNITS, states


class Machine(NamedTuple):
    """Weights (h, d), intercepts of the visible units (d,) and of the hidden units (h,)."""

    W: np.ndarray
    visible: np.ndarray
    hidden: np.ndarray

    @property
    def is_small(self) -> bool:
        """Whether the states of the smaller layer can be listed."""
        return min(self.W.shape) <= MOST_UNITS

    def minus_free_energy(self, V: np.ndarray) -> np.ndarray:
        """Return v'a + sum_k ln(1 + exp(b_k + W_k v)) of each row."""
        return V @ self.visible + np.logaddexp(0, V @ self.W.T + self.hidden).sum(axis=1)

    def _listed(self) -> tuple[np.ndarray, np.ndarray, "Machine", bool]:
        """Return all states of the smaller layer, ln of the weight of each, the machine with that layer as the visible
        one, and whether it is the hidden layer."""
        turned = self.W.shape[0] < self.W.shape[1]
        machine = Machine(self.W.T, self.hidden, self.visible) if turned else self
        S = states(machine.W.shape[1])
        return S, machine.minus_free_energy(S), machine, turned

    def log_partition(self) -> float:
        """Return ln Z."""
        return float(logsumexp(self._listed()[1]))

    def log_likelihood(self, V: np.ndarray) -> np.ndarray:
        """Return ln P(v) of each row of 0 and 1."""
        return self.minus_free_energy(V) - self.log_partition()

    def gradient(self, V: np.ndarray) -> "Machine":
        """Return the gradient of the mean of ln P(v) over rows: what the data show less what the machine expects."""
        H = expit(V @ self.W.T + self.hidden)
        S, weights, machine, turned = self._listed()
        p = np.exp(weights - logsumexp(weights))
        other = expit(S @ machine.W.T + machine.hidden)
        pairs, own, means = (other * p[:, None]).T @ S, p @ S, p @ other
        expected = Machine(pairs.T, means, own) if turned else Machine(pairs, own, means)
        n = len(V)
        seen = Machine(H.T @ V / n, V.mean(axis=0), H.mean(axis=0))
        return Machine(*(data - model for data, model in zip(seen, expected, strict=True)))
