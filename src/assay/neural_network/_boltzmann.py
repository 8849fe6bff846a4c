"""Boltzmann machines of few units, exactly: energy, distribution, Gibbs sampling, learning; relaxation to low energy.

    E(s) = -sum_{i<j} w_ij s_i s_j - sum_i theta_i s_i,    P(s) = exp(-E(s)) / Z,    s_i in {0, 1}

Learning fits P to data: the gradient of the mean log-likelihood by w_ij is <s_i s_j> of the data minus <s_i s_j> of the
machine (Ackley, Hinton and Sejnowski 1985), with hidden units averaged over given the visible ones. Lowering the energy
of all states alike would change nothing. Sums over all states are exact, which is what limits the number of units.
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax
from sklearn.utils import check_random_state

MOST_UNITS = 16  # units whose 2^n states are listed


class Relaxed(NamedTuple):
    """Where a relaxation ended, and the energy at the start and after every flip."""

    state: np.ndarray
    energies: np.ndarray


class BoltzmannMachine:
    """A network of units that are on or off, each pulled by its neighbours.

    Parameters
    ----------
    weights : (n, n)
        Symmetric, zeros on the diagonal.
    thresholds : (n,)
        What pulls a unit when all others are off.

    Examples
    --------
    >>> pair = BoltzmannMachine([[0.0, 2.0], [2.0, 0.0]], [-1.0, -1.0])
    >>> pair.energy([[0, 0], [1, 0], [1, 1]]).tolist()
    [-0.0, 1.0, 0.0]
    >>> pair.relax([1, 1]).state.tolist()
    [1, 1]
    """

    def __init__(self, weights: Any, thresholds: Any) -> None:
        self.weights, self.thresholds = np.array(weights, dtype=np.float64), np.array(thresholds, dtype=np.float64)
        n = len(self.thresholds) if self.thresholds.ndim == 1 else -1
        W = self.weights
        if W.shape != (n, n) or not np.isfinite(W).all() or not np.isfinite(self.thresholds).all():
            raise ValueError(
                "BoltzmannMachine: weights must be (n, n) and thresholds (n,), all finite; got shapes "
                f"{W.shape} and {self.thresholds.shape}."
            )
        if not np.array_equal(W, W.T) or np.any(np.diag(W)):
            raise ValueError(
                "BoltzmannMachine: weights must be symmetric with zeros on the diagonal (a unit does not pull itself)."
            )

    @classmethod
    def storing(cls, patterns: Any) -> "BoltzmannMachine":
        """Return the Hopfield network that stores patterns of 0 and 1 by Hebb's rule: w_ij counts in how many patterns
        units i and j agree, minus in how many they differ.

        Parameters
        ----------
        patterns : array-like
            Patterns of 0 and 1, one in each row.
        """
        given = np.asarray(patterns, dtype=np.float64)
        if given.ndim != 2 or not np.isin(given, (0.0, 1.0)).all():
            raise ValueError(f"BoltzmannMachine: patterns must be a table of 0 and 1; got shape {given.shape}.")
        signs = 2.0 * given - 1.0
        W = signs.T @ signs
        np.fill_diagonal(W, 0.0)
        return cls(4 * W, -2 * W.sum(axis=1))  # the energy -1/2 p' W p of signs p = 2 s - 1, up to a constant

    def energy(self, S: Any) -> np.ndarray:
        """Return the energy of each state, the rows of S.

        Parameters
        ----------
        S : array-like
            States, one in each row.
        """
        S = np.atleast_2d(np.asarray(S, dtype=np.float64))
        if S.shape[1:] != self.thresholds.shape:
            raise ValueError(f"BoltzmannMachine: a state has {len(self.thresholds)} units; got shape {S.shape}.")
        return -0.5 * np.einsum("ij,ij->i", S @ self.weights, S) - S @ self.thresholds

    def distribution(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all 2^n states and the probability of each."""
        every = states(len(self.thresholds))
        minus = -self.energy(every)
        return every, np.exp(minus - logsumexp(minus))

    def chance(self, S: Any, unit: int) -> np.ndarray:
        """Return the probability that `unit` is on given the other units of each state.

        Parameters
        ----------
        S : array-like
            States, one in each row.
        unit : int
            Number of the unit.
        """
        S = np.atleast_2d(np.asarray(S, dtype=np.float64))
        return expit(S @ self.weights[:, unit] + self.thresholds[unit])

    def sample(self, n_samples: int, *, burn_in: int = 100, thin: int = 5, random_state: Any = None) -> np.ndarray:
        """Return states drawn by Gibbs sampling: every unit in turn is set by its chance given the others.

        `burn_in` sweeps are thrown away first, then every `thin`-th is kept; neighbours in the sample are dependent.

        Parameters
        ----------
        burn_in : int, default=100
            Rounds before the first one.
        thin : int, default=5
            Rounds between two states that are kept.
        """
        random = check_random_state(random_state)
        state = random.randint(0, 2, len(self.thresholds)).astype(np.float64)
        kept = []
        for sweep in range(burn_in + thin * n_samples):
            draws = random.uniform(size=len(state))
            for i, draw in enumerate(draws):
                state[i] = draw < expit(self.weights[i] @ state + self.thresholds[i])
            if sweep >= burn_in and (sweep - burn_in) % thin == thin - 1:
                kept.append(state.astype(np.int64))
        return np.array(kept)

    def relax(self, state: Any) -> Relaxed:
        """Flip units, in turn, while that lowers the energy: sampling at temperature zero.

        Each flip lowers the energy, by more than rounding can feign, and there are finitely many states, so it ends, at
        a state from which no single flip leads lower.
        """
        s = np.array(state, dtype=np.float64)
        energies, still = [float(self.energy(s)[0])], 0
        i = 0
        while still < len(s):
            net_input = float(self.weights[i] @ s + self.thresholds[i])
            unsure = 1e-12 * float(np.abs(self.weights[i]) @ s + abs(self.thresholds[i]))
            wanted = s[i] if abs(net_input) <= unsure else float(net_input > 0)
            if wanted != s[i]:
                s[i], still = wanted, 0
                energies.append(float(self.energy(s)[0]))
            else:
                still += 1
            i = (i + 1) % len(s)
        return Relaxed(s.astype(np.int64), np.array(energies))

    def log_likelihood(self, V: Any) -> float:
        """Return the mean of ln P(v) over rows of the first units; the others are hidden and summed over.

        Parameters
        ----------
        V : array-like
            States of the visible units, one in each row.
        """
        V = np.atleast_2d(np.asarray(V, dtype=np.float64))
        every = logsumexp(-self.energy(states(len(self.thresholds))))
        return float(np.mean(logsumexp(-self._with_hidden(V), axis=1)) - every)

    def gradient(self, V: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient of `log_likelihood` by weights (w_ij and w_ji are one number) and thresholds.

        Parameters
        ----------
        V : array-like
            States of the visible units, one in each row.
        """
        V = np.atleast_2d(np.asarray(V, dtype=np.float64))
        every, p = self.distribution()
        free, free_mean = (every * p[:, None]).T @ every, p @ every
        hidden = states(len(self.thresholds) - V.shape[1])
        q = softmax(-self._with_hidden(V), axis=1)
        pairs, mean = np.zeros_like(free), np.zeros(len(free))
        for h, share in zip(hidden, q.T, strict=True):
            S = np.hstack([V, np.tile(h, (len(V), 1))])
            pairs += (S * share[:, None]).T @ S / len(V)
            mean += share @ S / len(V)
        slope = pairs - free
        np.fill_diagonal(slope, 0.0)
        return slope, mean - free_mean

    def _with_hidden(self, V: np.ndarray) -> np.ndarray:
        """Return the energy of each row with each state of the hidden units, (rows, states)."""
        hidden = states(len(self.thresholds) - V.shape[1])
        return np.stack([self.energy(np.hstack([V, np.tile(h, (len(V), 1))])) for h in hidden], axis=1)


class Learnt(NamedTuple):
    """A fitted machine, and the mean log-likelihood at the start and after every step."""

    machine: BoltzmannMachine
    likelihoods: np.ndarray


def learn_boltzmann(
    V: Any, *, n_hidden: int = 0, steps: int = 500, tol: float = 1e-9, random_state: Any = None
) -> Learnt:
    """Fit a machine to rows of 0 and 1 by gradient ascent of the exact likelihood; the step is halved until it rises.

    Without hidden units the likelihood is concave, and its maximum has the means and pair frequencies of the data.

    Parameters
    ----------
    V : array-like
        Rows of 0 and 1.
    n_hidden : int, default=0
        Number of hidden units.
    steps : int, default=500
        Largest number of steps.
    tol : float, default=1e-09
        Gain of the likelihood that ends the ascent.
    random_state : int, RandomState or None
        Seed of what is drawn.

    Returns
    -------
    Learnt
        The machine and its likelihood.

    Examples
    --------
    >>> rows = [[0, 0], [1, 1], [1, 1], [0, 0], [0, 1], [1, 0]]
    >>> found = learn_boltzmann(rows)
    >>> (found.machine.distribution()[1] * 6).round(3).tolist()  # states 00, 01, 10, 11
    [2.0, 1.0, 1.0, 2.0]
    """
    V = np.asarray(V, dtype=np.float64)
    if V.ndim != 2 or not np.isin(V, (0.0, 1.0)).all():
        raise ValueError(f"learn_boltzmann: V must be a table of 0 and 1; got shape {V.shape}.")
    random, n = check_random_state(random_state), V.shape[1] + n_hidden
    W = np.zeros((n, n))
    if n_hidden:  # all zeros would be a saddle: hidden units that are alike stay alike
        W = np.triu(random.normal(scale=0.5, size=(n, n)), 1)
        W = W + W.T
    machine, rate = BoltzmannMachine(W, np.zeros(n)), 1.0
    curve = [machine.log_likelihood(V)]
    for _ in range(steps):
        by_weight, by_threshold = machine.gradient(V)
        while rate > 1e-12:
            trial = BoltzmannMachine(machine.weights + rate * by_weight, machine.thresholds + rate * by_threshold)
            value = trial.log_likelihood(V)
            if value > curve[-1]:
                break
            rate /= 2
        else:
            break
        machine, rate = trial, rate * 1.5
        curve.append(value)
        if curve[-1] - curve[-2] < tol:
            break
    return Learnt(machine, np.array(curve))


def states(n: int) -> np.ndarray:
    """Return all states of n units, (2^n, n), the last unit changing fastest."""
    if n > MOST_UNITS:
        raise ValueError(
            f"BoltzmannMachine: 2^{n} states cannot be listed; at most {MOST_UNITS} units, or use `sample`."
        )
    return np.array(list(product((0.0, 1.0), repeat=n))).reshape(2**n, n)
