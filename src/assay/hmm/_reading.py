"""How sequences reach a hidden Markov model: rows one below the other, a list of sequences, symbols that are text."""

from typing import Any

import numpy as np

from assay.params import refuse


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
    parts = [_rows(one) for one in X]
    wide = {part.shape[1] for part in parts if len(part)}
    if len(wide) > 1 or any(not len(part) for part in parts):
        raise refuse(learner, "the sequences in the list X must have rows, all with the same number of columns.")
    return np.concatenate(parts), [len(part) for part in parts]


def _is_sequence(one: Any) -> bool:
    if isinstance(one, str) or getattr(one, "ndim", 0) == 2:
        return True
    if getattr(one, "ndim", 0) == 1:
        return np.asarray(one).dtype.kind in "US"
    return isinstance(one, (list, tuple)) and len(one) > 0 and isinstance(one[0], (str, list, tuple, np.ndarray))


def _rows(one: Any) -> np.ndarray:
    rows = np.array(list(one) if isinstance(one, str) else one)
    return rows[:, None] if rows.ndim == 1 else rows


def text_in(X: Any) -> np.ndarray | None:
    """Return rows as an array of objects if they hold text, None if they are numbers."""
    kinds = [str(kind) for kind in getattr(X, "dtypes", ())]
    if not kinds and not isinstance(X, (list, tuple, np.ndarray)):
        return None
    if kinds and all(kind.lower().startswith(("int", "uint", "float")) for kind in kinds):
        return None
    found = np.asarray(X)
    if found.dtype.kind not in "USO" or found.ndim != 2:
        return None
    found = found.astype(object)
    return found if any(isinstance(one, str) for one in found.ravel()) else None


def numbered(learner: Any, rows: np.ndarray, symbols: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return text as positions in the sorted symbols, NaN where there is none, and the symbols; learnt if not given."""
    there = np.array([one is not None and one == one for one in rows.ravel()]).reshape(rows.shape)
    odd = [one for one in rows[there] if not isinstance(one, str)]
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
