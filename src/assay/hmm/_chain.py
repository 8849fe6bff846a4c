"""The hidden chain: probabilities of states given the rows, and what EM sums of them.

Work is cut in pieces that do not depend on the number of threads, and their sums are added in order. Forward and
backward passes need only the emissions, so that even a single long sequence keeps two threads busy; what follows
(shares of states and of neighbouring pairs) is cut into stretches of steps.

Sequences are given as one array with `lengths`, as a list of arrays, or as text symbols.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from assay.params import refuse
from assay.scan import thread_map

Arrays = tuple[np.ndarray, ...]
_STRETCH = 8192  # steps of one piece of work
_MOST_LISTED = 2**20  # symbols, or counts, that have a place of their own each
_PIECES = 32  # groups of sequences, at most; pieces that hold counts of distinct rows, at most


@dataclass(frozen=True, eq=False)
class Sequences:
    """Rows of all sequences below each other; sequence s has the rows offsets[s] to offsets[s + 1] - 1."""

    X: np.ndarray
    offsets: np.ndarray
    n_jobs: int | None = None

    @cached_property
    def _buffers(self) -> dict[str, np.ndarray]:
        return {}

    def buffer(self, name: str, *shape: int) -> np.ndarray:
        """Return an array that the next call overwrites; fresh pages at each step of EM would cost as much as it."""
        if name not in self._buffers or self._buffers[name].shape != shape:
            self._buffers[name] = np.empty(shape)
        return self._buffers[name]

    @cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct rows, of integers with -1 for a missing one, and which of them each row is."""
        codes = np.where(np.isnan(self.X), -1.0, self.X).astype(np.int64)
        if codes.shape[1] == 1 and codes.max(initial=0) < _MOST_LISTED:
            return np.arange(-1, codes.max() + 1)[:, None], (codes[:, 0] + 1).astype(np.int64)
        rows, index = np.unique(codes, axis=0, return_inverse=True)
        return rows, index.ravel().astype(np.int64)

    def stretches(self, size: int = _STRETCH) -> list[tuple[int, int]]:
        n = len(self.X)
        return [(low, min(low + size, n)) for low in range(0, n, size)]

    def groups(self) -> list[tuple[int, int]]:
        """Return ranges of sequences, of about equally many rows."""
        count = len(self.offsets) - 1
        wanted = min(count, _PIECES)
        cuts = np.searchsorted(self.offsets[1:], len(self.X) * np.arange(1, wanted) / wanted, side="left") + 1
        ends = np.unique(np.concatenate([[0], np.minimum(cuts, count), [count]]))
        return list(zip(ends[:-1].tolist(), ends[1:].tolist()))


class Emissions(NamedTuple):
    """Densities of the rows in each state: ln b_j(x_t) = ln table[which[t], j] + shift[which[t]].

    `log_rows(rows)` returns the logarithms themselves for a slice of rows; `clamped` tells that an entry of the table
    is larger than it should be; `each` that the table has a row of its own for every row.
    """

    table: np.ndarray
    shift: np.ndarray
    which: np.ndarray
    log_rows: Callable[[slice], np.ndarray]
    clamped: bool
    each: bool


def of_distinct(logs: np.ndarray, index: np.ndarray) -> Emissions:
    """Return the emissions of rows of which each is one of few distinct ones, with these logarithms."""
    top = logs.max(axis=1)
    shift = np.where(np.isfinite(top), top, 0.0)
    table = np.exp(logs - shift[:, None])
    clamped = bool(((table == 0) & np.isfinite(logs)).any())
    return Emissions(table, shift, index, lambda here: logs[index[here]], clamped, False)


class Expected(NamedTuple):
    """ln p of each sequence; expected first states (k,), expected steps from i to j (k, k); probabilities of states,
    (T, k) or summed over the steps of each distinct row (distinct, k)."""

    logs: np.ndarray
    start: np.ndarray
    pairs: np.ndarray
    shares: np.ndarray


def log_likelihoods(sequences: Sequences, seen: Emissions, start: np.ndarray, trans: np.ndarray) -> np.ndarray:
    """Return ln p of each sequence."""
    alpha = sequences.buffer("alpha", len(sequences.X), len(start))
    logs = _forward(sequences, seen, start, trans, alpha, [])
    for s in np.flatnonzero(np.isnan(logs)):
        logs[s] = _in_logarithms(sequences, seen, start, trans, int(s))[0]
    return logs


def expect(
    sequences: Sequences, seen: Emissions, start: np.ndarray, trans: np.ndarray, *, each: bool | None = None
) -> Expected:
    """Return the expectations of an E step; with `each`, the probabilities of states at every step.

    They stand in a buffer of the sequences, until the next pass over them.
    """
    from assay.hmm._loops import shares

    (n, k), offsets = (len(sequences.X), len(start)), sequences.offsets
    each = seen.each if each is None else each
    alpha, beta, scales = (
        sequences.buffer("alpha", n, k),
        sequences.buffer("beta", n, k),
        sequences.buffer("scales", n),
    )
    logs = _forward(sequences, seen, start, trans, alpha, [beta, scales])
    role = np.zeros(n, np.int8)
    role[offsets[1:] - 1] = 1
    apart = np.flatnonzero(np.isnan(logs) | (logs == -np.inf))
    for s in apart:
        role[offsets[s] : offsets[s + 1]] = 2
    pieces = sequences.stretches(_STRETCH if each else max(_STRETCH, -(-n // _PIECES)))

    def work(piece: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        counts, pairs = np.zeros((0 if each else len(seen.table), k)), np.zeros((k, k))
        shares(seen.table, seen.which, alpha, beta, scales, role, *piece, each, counts, pairs)
        return counts, pairs

    firsts = offsets[:-1][role[offsets[:-1]] != 2]
    first = alpha[firsts] * beta[firsts]  # before alpha is overwritten
    result = thread_map(work, pieces, n_jobs=sequences.n_jobs)
    counts, pairs = (sum(parts[1:], start=parts[0].copy()) for parts in zip(*result))
    first_states = (first / first.sum(axis=1, keepdims=True)).sum(axis=0)
    pairs *= trans
    for s in apart:
        here = slice(offsets[s], offsets[s + 1])
        logs[s], posterior, more = _in_logarithms(sequences, seen, start, trans, int(s))
        pairs += more
        first_states += posterior[0]
        if each:
            alpha[here] = posterior
        else:
            np.add.at(counts, seen.which[here], posterior)
    return Expected(logs, first_states, pairs, alpha if each else counts)


def _forward(
    sequences: Sequences, seen: Emissions, start: np.ndarray, trans: np.ndarray, alpha: np.ndarray, also: list[Any]
) -> np.ndarray:
    """Run the forward pass, and the backward pass if arrays for it are given; return ln p, NaN where logarithms are
    needed."""
    from assay.hmm._loops import backward, forward

    offsets = sequences.offsets
    logs = np.empty(len(offsets) - 1)
    trans, trans_t = np.ascontiguousarray(trans), np.ascontiguousarray(trans.T)

    def work(task: tuple[bool, int, int]) -> None:
        ahead, first, last = task
        if ahead:
            forward(seen.table, seen.which, start, trans_t, offsets, first, last, alpha, logs, seen.clamped)
        else:
            backward(seen.table, seen.which, trans, offsets, first, last, *also)

    ways = (True, False) if also else (True,)
    thread_map(work, [(way, *group) for group in sequences.groups() for way in ways], n_jobs=sequences.n_jobs)
    shifts = seen.shift if seen.each else seen.shift[seen.which]
    return logs + np.add.reduceat(shifts, offsets[:-1])


def _in_logarithms(
    sequences: Sequences, seen: Emissions, start: np.ndarray, trans: np.ndarray, s: int
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return ln p of one sequence, probabilities of its states and expected steps, all through logarithms."""
    from assay.hmm._loops import in_logarithms

    logs = seen.log_rows(slice(sequences.offsets[s], sequences.offsets[s + 1]))
    posterior, pairs = np.zeros_like(logs), np.zeros_like(trans)
    with np.errstate(divide="ignore"):
        value = in_logarithms(logs, np.log(start), np.log(trans), posterior, pairs)
    return value, posterior, pairs


def best_paths(
    sequences: Sequences, seen: Emissions, start: np.ndarray, trans: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable states, and ln p(rows, states) of each sequence."""
    from assay.hmm._loops import best_path

    offsets = sequences.offsets
    states = np.empty(len(sequences.X), np.int64)
    with np.errstate(divide="ignore"):
        log_start, log_trans = np.log(start), np.log(trans)

    def work(group: tuple[int, int]) -> list[float]:
        results = []
        for s in range(*group):
            here = slice(offsets[s], offsets[s + 1])
            results.append(best_path(seen.log_rows(here), log_start, log_trans, states[here]))
        return results

    values = thread_map(work, sequences.groups(), n_jobs=sequences.n_jobs)
    return states, np.array([item for part in values for item in part])


def joined(learner: Any, X: Any, lengths: Any) -> tuple[Any, Any]:
    """Return rows one below the other and the lengths of the sequences, if X is a list of sequences; else both as they
    are.

    A sequence is an array or a frame of rows, a list of rows, a list of words, or a string of characters. A list of
    plain numbers is a row.
    """
    if not isinstance(X, (list, tuple)) or not X or not all(map(_is_sequence, X)):
        return X, lengths
    if lengths is not None:
        raise refuse(learner, "lengths are those of the sequences in the list X; pass none beside it.")
    parts = [_rows(row) for row in X]
    wide = {part.shape[1] for part in parts if len(part)}
    if len(wide) > 1 or any(not len(part) for part in parts):
        raise refuse(learner, "the sequences in the list X must have rows, all with the same number of columns.")
    return np.concatenate(parts), [len(part) for part in parts]


def _is_sequence(sequence: Any) -> bool:
    if isinstance(sequence, str) or getattr(sequence, "ndim", 0) == 2:
        return True
    if getattr(sequence, "ndim", 0) == 1:
        return np.asarray(sequence).dtype.kind in "US"
    return (
        isinstance(sequence, (list, tuple))
        and len(sequence) > 0
        and isinstance(sequence[0], (str, list, tuple, np.ndarray))
    )


def _rows(sequence: Any) -> np.ndarray:
    rows = np.array(list(sequence) if isinstance(sequence, str) else sequence)
    return rows[:, None] if rows.ndim == 1 else rows


def text_in(X: Any) -> np.ndarray | None:
    """Return rows as an array of objects if they hold text, None if they are numbers."""
    kinds = [str(kind) for kind in getattr(X, "dtypes", ())]
    if not kinds and not isinstance(X, (list, tuple, np.ndarray)):
        return None
    if kinds and all(kind.lower().startswith(("int", "uint", "float")) for kind in kinds):
        return None
    result = np.asarray(X)
    if result.dtype.kind not in "USO" or result.ndim != 2:
        return None
    result = result.astype(object)
    return result if any(isinstance(item, str) for item in result.ravel()) else None


def numbered(learner: Any, rows: np.ndarray, symbols: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return text as positions in the sorted symbols, NaN where there is none, and the symbols; learnt if not given."""
    there = np.array([row is not None and row == row for row in rows.ravel()]).reshape(rows.shape)
    odd = [row for row in rows[there] if not isinstance(row, str)]
    if odd:
        raise refuse(learner, f"symbols must be all text or all numbers; {odd[0]!r} stands among text.")
    words = rows[there].astype(str)
    known = np.unique(words) if symbols is None else symbols
    at = np.minimum(np.searchsorted(known, words), len(known) - 1)
    if (known[at] != words).any():
        other = str(words[known[at] != words][0])
        raise refuse(learner, f"symbol {other!r} is not among the {len(known)} symbols {', '.join(known[:8])}.")
    codes = np.full(rows.shape, np.nan)
    codes[there] = at
    return codes, known
