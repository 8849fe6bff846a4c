"""Restricted Boltzmann machines, alone or stacked: chances of hidden units; likelihood and gradient by enumeration.

Arrays: `components_` W (h, d), `intercept_hidden_` b (h,), `intercept_visible_` a (d,). E(v, h) = -v'a - h'b - h'W v;
scores are the chances 1 / (1 + exp(-(b + W v))) of the hidden units. A stack has machines as members, each reading
the chances of the one before.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from assay.checker.family import SINGLE, Family, Variant
from assay.checker.numerics import UNDERFLOW, Sums, U, above, gamma, norm_above
from assay.checker.predictors import Predictor
from assay.checker.record import Refused, Rejected, signed
from assay.checker.rule import Rule, View
from assay.checker.rules.losses import sigmoid
from assay.claims.definitions import Definition
from assay.claims.sentences import Sentence, with_digits

_MOST_UNITS = 16  # whose states are listed
_ROUNDING_ERROR = 16 * U
_BITS = 12  # states are listed 2^12 at a time


@dataclass(frozen=True)
class Machine(Predictor):
    """Two layers of binary units."""

    W: np.ndarray
    hidden: np.ndarray
    visible: np.ndarray

    @property
    def columns(self) -> int:
        return self.W.shape[1]

    @property
    def width(self) -> int:  # type: ignore[override]
        return sum(self.W.shape)

    def chances(self, V: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the chances of the hidden units given values that are off by at most `error`, and their errors."""
        size = np.abs(self.W).T
        off = gamma(2 * self.columns + 8) * (np.abs(V) @ size + np.abs(self.hidden)) + error @ size
        return sigmoid(V @ self.W.T + self.hidden)[0], np.minimum(above(off, self.columns) / 4, 1.0) + _ROUNDING_ERROR

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, error = self.chances(X, np.zeros_like(X))
        return values, error.max(axis=0, initial=0.0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self.chances(X, np.zeros_like(X))[1]

    @property
    def turned(self) -> "Machine":
        """The machine with its layers exchanged."""
        return Machine(self.W.T, self.visible, self.hidden)

    def log_weights(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return v'a + sum_k ln(1 + exp(b_k + W_k v)) of rows of 0 and 1, and bounds of the errors."""
        inner = V @ self.W.T + self.hidden
        size = V @ np.abs(self.visible) + (V @ np.abs(self.W).T + np.abs(self.hidden) + 1).sum(axis=1)
        error = above(gamma(2 * sum(self.W.shape) + 64) * size, 8)
        return V @ self.visible + np.logaddexp(0, inner).sum(axis=1), error

    def listed(self) -> Iterator[np.ndarray]:
        """Yield all states of the visible layer, some at a time."""
        m = self.columns
        low = (np.arange(2 ** min(m, _BITS))[:, None] >> np.arange(min(m, _BITS))) & 1
        for high in range(2 ** max(m - _BITS, 0)):
            rest = (high >> np.arange(max(m - _BITS, 0))) & 1
            yield np.hstack([low, np.broadcast_to(rest, (len(low), len(rest)))]).astype(np.float64)

    def log_partition(self) -> tuple[float, float]:
        """Return ln Z, summed over the states of the visible layer, and a bound of its error."""
        parts = [self.log_weights(S) for S in self.listed()]
        top = max(float(values.max()) for values, _ in parts)
        total = math.fsum(float(np.exp(values - top).sum()) for values, _ in parts)
        worst = max(float(error.max()) for _, error in parts)
        return top + math.log(total), above(worst + gamma(2**_BITS + 64) + 8 * U * (abs(top) + self.columns))


@dataclass(frozen=True)
class Stack(Predictor):
    """Machines, each of which reads the chances of the one before."""

    machines: tuple[Machine, ...]

    @property
    def columns(self) -> int:
        return self.machines[0].columns

    @property
    def width(self) -> int:  # type: ignore[override]
        return sum(machine.width for machine in self.machines)

    def scores(self, X: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, error = self._through(X)
        return values, error.max(axis=0, initial=0.0)

    def row_errors(self, X: np.ndarray) -> np.ndarray:
        return self._through(X)[1]

    def _through(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, error = X, np.zeros_like(X)
        for machine in self.machines:
            values, error = machine.chances(values, error)
        return values, error


def read_machine(W: np.ndarray, hidden: np.ndarray, visible: np.ndarray, classes: Any) -> Machine:
    """Return the machine that the arrays describe."""
    if W.ndim != 2 or not W.size or hidden.shape != W.shape[:1] or visible.shape != W.shape[1:]:
        raise Rejected(f"components_ has shape {W.shape}; intercepts must be of its rows and of its columns")
    return Machine(W, hidden, visible)


def read_stack(members: list[Any], classes: Any) -> Stack:
    """Return the stack of its members."""
    if not all(isinstance(member, Machine) for member in members):
        raise Rejected("a stack is made of restricted Boltzmann machines")
    for below, machine in pairwise(members):
        if len(below.W) != machine.columns:
            raise Rejected(f"a machine of {machine.columns} visible units stands on {len(below.W)} hidden ones")
    return Stack(tuple(members))


class ExactRule(Rule):
    """What rules about the likelihood share: few units, rows of 0 and 1."""

    def prepare(self) -> None:
        if not isinstance(self.model, Machine):
            raise Rejected("it needs a restricted Boltzmann machine")
        if min(self.model.W.shape) > _MOST_UNITS:
            raise Refused(f"the states of more than {_MOST_UNITS} units are not listed")
        self.check_rows()

    def checked(self, view: View) -> np.ndarray:
        """Return the rows, which must hold 0 and 1 and have equal weights."""
        if np.any((view.X != 0) & (view.X != 1)) or not np.all(view.weight == 1):
            raise Rejected("the likelihood is that of rows of 0 and 1 without weights")
        return view.X

    @property
    def smaller(self) -> Machine:
        """The machine whose visible layer is the smaller one."""
        return self.model if self.model.columns <= len(self.model.W) else self.model.turned


class LogLikelihood(ExactRule):
    """rbm.log-likelihood: the mean of ln P(v) over the rows is within `value` of `center`."""

    def prepare(self) -> None:
        super().prepare()
        self.center = signed(self.param("center"), "center")
        self.sums = Sums(2)

    def block(self, view: View) -> None:
        self.sums.add(np.column_stack(self.model.log_weights(self.checked(view))))

    def measure(self) -> float:
        log_z, off = self.smaller.log_partition()
        (total, error), slip = self.sums.value, self.sums.error
        mean = total / self.rows - log_z
        loose = (error + slip.sum()) / self.rows + off
        loose += 8 * U * (abs(total / self.rows) + abs(log_z) + abs(self.center))
        return float(abs(mean - self.center) + above(loose))


class LikelihoodGradient(ExactRule):
    """rbm.gradient: the gradient of the mean of ln P(v) over the rows, by W, a and b together, has at most this
    length."""

    def prepare(self) -> None:
        super().prepare()
        h, d = self.model.W.shape
        self.seen = [np.zeros((h, d)), np.zeros(d), np.zeros(h)]
        self.rounding_error, self.blocks = 0.0, 0

    def block(self, view: View) -> None:
        V = self.checked(view)
        H, error = self.model.chances(V, np.zeros_like(V))
        self.rounding_error = max(self.rounding_error, float(error.max()))
        for total, part in zip(self.seen, (H.T @ V, V.sum(axis=0), H.sum(axis=0)), strict=True):
            total += part

    def _expected(self) -> tuple[list[np.ndarray], float]:
        """Return the means of h v', v and h under the machine, and a bound of the error of any of them."""
        machine = self.smaller
        log_z, off = machine.log_partition()
        pairs, own, other = np.zeros(machine.W.shape), np.zeros(machine.columns), np.zeros(len(machine.W))
        worst, slack = 0.0, 0.0
        for S in machine.listed():
            values, error = machine.log_weights(S)
            p, (chances, wrong) = np.exp(values - log_z), machine.chances(S, np.zeros_like(S))
            worst, slack = max(worst, float(error.max())), max(slack, float(wrong.max()))
            pairs += (chances * p[:, None]).T @ S
            own += p @ S
            other += p @ chances
        loose = above(math.expm1(above(worst + off + 64 * U)) + slack + gamma(2**machine.columns + 64))
        result = [pairs, own, other] if machine is self.model else [pairs.T, other, own]
        return result, loose

    def measure(self) -> float:
        expected, loose = self._expected()
        off = above(loose + self.rounding_error + gamma(2 * self.rows + 64)) + UNDERFLOW
        parts = [np.abs(seen / self.rows - mean) + off for seen, mean in zip(self.seen, expected, strict=True)]
        return norm_above(np.concatenate([part.ravel() for part in parts]))


_LIKELIHOOD = Sentence(
    {"": "The mean log-likelihood of the {rows} training rows is {shown} nats, to within {within:up1}."}, with_digits
)


_GRADIENT = Sentence.plain(
    "The gradient of the mean log-likelihood of the {rows} training rows by all weights has at most the length "
    "{value:up}; where it is zero the likelihood is level, which need not be its maximum."
)


CLAIMS = {
    "D34/6": Definition("rbm.log-likelihood", LogLikelihood, _LIKELIHOOD),
    "D34/7": Definition("rbm.gradient", LikelihoodGradient, _GRADIENT),
}
_ARRAYS = {"components_": SINGLE, "intercept_hidden_": SINGLE, "intercept_visible_": SINGLE}
FAMILY = Family(
    "rbm",
    {
        "machine": Variant(_ARRAYS, read_machine, target=False),
        "stack": Variant({}, read_stack, target=False, members=True),
    },
    CLAIMS,
)
