"""What a query of a network returns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np


def place_of(value: Any, states: Sequence[str]) -> int | None:
    """Return the position of a state; numbers are equal to states that write the same number, 1.0 to "1"."""
    if str(value) in states:
        return states.index(str(value))
    if isinstance(value, Real):
        number = float(value)
        text = repr(int(number)) if number % 1 == 0 else repr(number)
        return states.index(text) if text in states else None
    return None


def labels(codes: np.ndarray, states: Sequence[Any]) -> list[Any]:
    """Return the states at these positions."""
    return [states[int(code)] for code in codes]


def as_frame(names: Sequence[str], columns: Iterable[Any], backend: Any) -> Any:
    """Return a frame of pandas, polars or pyarrow."""
    if backend not in ("pandas", "polars", "pyarrow"):
        raise ValueError(f"sample: frame must be None, 'pandas', 'polars' or 'pyarrow'; got {backend!r}.")
    return nw.from_dict(dict(zip(names, columns)), backend=backend).to_native()


@dataclass(frozen=True, eq=False)
class Answer:
    """P(query | evidence).

    Attributes
    ----------
    names : tuple of str
        The nodes asked about.
    states : tuple of tuples of str
    table : array, one axis for each node
    standard_error : array like `table`, or None if the answer is exact
    cells : int
        Entries of the largest table that was held on the way (of all tables of a junction tree); 0 for samples.
    effective_samples : float or None
        How many independent draws the samples are worth: of weighted rows (sum w)^2 / sum w^2, of Gibbs' method
        p (1 - p) / standard_error^2, the least over the entries of the table.
    r_hat : float or None
        Of Gibbs' method: spread over all chains beside that within halves of chains, the largest over the entries; 1
        once the chains have mixed.

    `answer["yes"]` is the probability of a state; of several nodes, `answer["yes", "no"]`.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    table: np.ndarray
    standard_error: np.ndarray | None = None
    cells: int = 0
    effective_samples: float | None = None
    r_hat: float | None = None

    def __getitem__(self, state: Any) -> float:
        wanted = state if isinstance(state, tuple) else (state,)
        places = [place_of(node, own) for node, own in zip(wanted, self.states)]
        if len(wanted) != len(self.names) or None in places:
            raise KeyError(f"{state!r} is not a state of {', '.join(self.names)}")
        return float(self.table[tuple(places)])

    def to_dict(self) -> dict[Any, float]:
        """Return the probabilities by state, of several nodes by tuples of states."""
        if len(self.names) == 1:
            return dict(zip(self.states[0], self.table.tolist()))
        cells = (tuple(own[i] for own, i in zip(self.states, at)) for at in np.ndindex(*self.table.shape))
        return dict(zip(cells, self.table.ravel().tolist()))

    def __repr__(self) -> str:
        text = ", ".join(f"{state}: {p:.6g}" for state, p in list(self.to_dict().items())[:8])
        return f"P({', '.join(self.names)}): {text}{', ...' if self.table.size > 8 else ''}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """The most probable states of some nodes given evidence.

    Attributes
    ----------
    states : dict
        State by name.
    log_probability : float
        ln P(states | evidence).
    log_joint : float
        ln P(states, evidence), the density of it if there are numbers in the evidence.
    cells : int
        Entries of the largest table that was held on the way.
    """

    states: dict[str, str]
    log_probability: float
    log_joint: float
    cells: int = 0

    def __getitem__(self, name: str) -> str:
        return self.states[name]
