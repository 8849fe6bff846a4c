"""What a query of a network returns."""

from dataclasses import dataclass
from typing import Any

import numpy as np


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

    `answer["yes"]` is the probability of a state; of several nodes, `answer["yes", "no"]`.
    """

    names: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    table: np.ndarray
    standard_error: np.ndarray | None = None
    cells: int = 0

    def __getitem__(self, state: Any) -> float:
        wanted = state if isinstance(state, tuple) else (state,)
        if len(wanted) != len(self.names) or any(str(one) not in own for one, own in zip(wanted, self.states)):
            raise KeyError(f"{state!r} is no state of {', '.join(self.names)}")
        return float(self.table[tuple(own.index(str(one)) for one, own in zip(wanted, self.states))])

    def to_dict(self) -> dict[Any, float]:
        """Return the probabilities by state, of several nodes by tuples of states."""
        if len(self.names) == 1:
            return dict(zip(self.states[0], self.table.tolist()))
        cells = (tuple(own[i] for own, i in zip(self.states, at)) for at in np.ndindex(*self.table.shape))
        return dict(zip(cells, self.table.ravel().tolist()))

    def __repr__(self) -> str:
        told = ", ".join(f"{state}: {p:.6g}" for state, p in list(self.to_dict().items())[:8])
        return f"P({', '.join(self.names)}): {told}{', ...' if self.table.size > 8 else ''}"
