"""Inference by sampling (forward, likelihood weighting, Gibbs) with standard errors, and the Bayesian Interchange
Format, in which most programs read and write networks.
"""

import itertools
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from assay.bayes_net._network import Network

_BATCHES = 32  # of all chains: means of consecutive draws, nearly independent, from which a standard error follows
_FEW = 100  # independent draws that an answer should be worth, of each chain
_R_HAT = 1.01  # Vehtari et al. 2021


class Drawn(NamedTuple):
    """Estimated probabilities, their standard errors, the effective sample size, and R-hat of several chains."""

    table: np.ndarray
    error: np.ndarray
    effective: float
    r_hat: float | None = None


def ancestral(net: "Network", n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n rows, each node drawn after its parents."""
    if n < 1:
        raise ValueError(f"Network: n_samples must be an integer >= 1; got {n!r}.")
    return _forward(net, {}, n, rng)[0]


def _forward(
    net: "Network", known: Mapping[int, float], n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in which known nodes have their values, and ln of their weights, the probability of these."""
    rows, logs = np.empty((n, len(net.names))), np.zeros(n)
    for node in net.order:
        if node in known:
            rows[:, node] = known[node]
            logs += net.log_conditional(node, rows)
        else:
            rows[:, node] = _draw(net, node, rows, rng)
    return rows, logs


def _draw(net: "Network", node: int, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    table, above = net.tables[node], net.parents[node]
    where = tuple(rows[:, parent].astype(np.intp) for parent in above if not net.is_number(parent))
    at = np.broadcast_to(table[where], (len(rows), table.shape[-1]))
    if net.is_number(node):
        numbers = rows[:, [parent for parent in above if net.is_number(parent)]]
        return at[:, 0] + np.einsum("ij,ij->i", at[:, 1:-1], numbers) + at[:, -1] * rng.normal(size=len(rows))
    ends = np.cumsum(at, axis=1)
    drawn = (ends < (rng.random(len(rows)) * ends[:, -1])[:, None]).sum(axis=1)
    # A draw at the very end of a row of the table must not fall on a state of probability 0.
    last = table.shape[-1] - 1 - np.argmax(at[:, ::-1] > 0, axis=1)
    return np.minimum(drawn, last)


def weighted(net: "Network", asked: list[int], known: Mapping[int, float], n: int, rng: np.random.Generator) -> Drawn:
    """Return P(asked | known) by rows weighted with the probability of the evidence, and its standard errors."""
    rows, weight = _weighted_rows(net, known, n, rng)
    shape = tuple(net.sizes[node] for node in asked)
    cell = np.ravel_multi_index(tuple(rows[:, node].astype(np.intp) for node in asked), shape)
    table = np.bincount(cell, weights=weight, minlength=int(np.prod(shape)))
    # Of the ratio sum w f / sum w the variance is sum w^2 (f - mean)^2 / (sum w)^2.
    square = np.bincount(cell, weights=weight**2, minlength=table.size)
    variance = square * (1 - 2 * table) + table**2 * np.sum(weight**2)
    effective = 1 / float(np.sum(weight**2))
    return Drawn(table.reshape(shape), _errors(table, variance, effective).reshape(shape), effective)


def _errors(table: np.ndarray, variance: np.ndarray, effective: float) -> np.ndarray:
    """Return standard errors; an entry that was never, or always, drawn has that of half a draw more or less."""
    near = (table * effective + 0.5) / (effective + 1)
    return np.sqrt(np.maximum(variance, near * (1 - near) / (effective + 1)))


def _weighted_rows(
    net: "Network", known: Mapping[int, float], n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if n < 2:
        raise ValueError(f"Network: n_samples must be an integer >= 2; got {n!r}.")
    rows, logs = _forward(net, known, n, rng)
    if logs.max() == -np.inf:
        raise ValueError(f"Network: none of {n} rows drawn agrees with the evidence; draw more, or ask exactly.")
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    effective = 1 / float(np.sum(weight**2))
    if effective < _FEW:
        warnings.warn(
            f"Network: {n} weighted rows are worth {effective:.3g} independent ones, since the evidence is improbable; "
            "raise n_samples, or use an exact method.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return rows, weight


def moments(
    net: "Network", node: int, known: Mapping[int, float], n: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return mean, standard deviation and the standard error of the mean of a number, by weighted rows."""
    rows, weight = _weighted_rows(net, known, n, rng)
    mean = float(weight @ rows[:, node])
    apart = (rows[:, node] - mean) ** 2
    return mean, float(np.sqrt(weight @ apart)), float(np.sqrt(weight**2 @ apart))


def gibbs(
    net: "Network",
    asked: list[int],
    known: Mapping[int, float],
    n: int,
    burn_in: int,
    chains: int,
    rng: np.random.Generator,
) -> Drawn:
    """Return P(asked | known) by chains of Gibbs' method, with standard errors from means of batches and of chains."""
    from assay.bayes_net._loops import chain

    batches = max(2, 2 * (_BATCHES // (2 * max(chains, 1))))
    if any(item is None for item in net.states):
        raise ValueError("Network: Gibbs' method draws states alone; with numbers use method='weighting'.")
    if chains < 1 or n < 2 * batches * chains or burn_in < 0:
        raise ValueError(
            f"Network: chains must be at least 1, burn_in at least 0 and n_samples at least {2 * batches * chains}."
        )
    free = np.array([node for node in range(len(net.names)) if node not in known], dtype=np.int64)
    plan, length = _plan(net), n // (batches * chains)
    counts = np.zeros((chains, batches, int(np.prod([net.sizes[node] for node in asked]))))
    for state, own in zip(_starts(net, known, chains, rng), counts):
        chain(state, free, *plan, np.array(asked), burn_in, rng.random((burn_in, len(free))), own, 0)
        for batch in range(batches):
            chain(state, free, *plan, np.array(asked), 0, rng.random((length, len(free))), own, batch)
    result = _mixed(counts / length)
    _warn_of_chains(net, result, chains)
    shape = tuple(net.sizes[node] for node in asked)
    return result._replace(table=result.table.reshape(shape), error=result.error.reshape(shape))


def _mixed(means: np.ndarray) -> Drawn:
    """Return what the means of batches, (chains, batches, entries), say of the mean of all.

    The variance is the larger of two estimates: from batches around the means of their chains, and from these means.
    Halves of chains are compared as in split R-hat (Gelman et al. 2013).
    """
    chains, batches, _ = means.shape
    table, own = means.mean(axis=(0, 1)), means.mean(axis=1)
    variance = ((means - own[:, None]) ** 2).sum(axis=(0, 1)) / (chains * (batches - 1)) / (chains * batches)
    if chains > 1:
        variance = np.maximum(variance, own.var(axis=0, ddof=1) / chains)
    halves = means.reshape(2 * chains, batches // 2, -1).mean(axis=1)
    within, between = (halves * (1 - halves)).mean(axis=0), halves.var(axis=0, ddof=1)
    moved = (table > 0) & (table < 1)
    if not moved.any():  # nothing was drawn but where the chains began
        return Drawn(table, _errors(table, variance, float(chains)), float(chains), np.nan)
    with np.errstate(divide="ignore"):
        effective = float(np.min((table * (1 - table))[moved] / variance[moved]))
        r_hat = float(np.sqrt(1 + np.max(between[moved] / within[moved])))
    return Drawn(table, _errors(table, variance, effective), effective, r_hat)


def _warn_of_chains(net: "Network", drawn: Drawn, chains: int) -> None:
    reasons = []
    if any((table == 0).any() for table in net.tables):
        reasons.append("some probabilities are 0, so that a chain of Gibbs' method may never leave part of the states")
    r_hat = np.nan if drawn.r_hat is None else drawn.r_hat
    if np.isnan(r_hat):
        reasons.append(f"none of {chains} chains ever changed the states that the query is about")
    elif r_hat > _R_HAT or drawn.effective < _FEW * chains:
        reasons.append(
            f"{chains} chains of Gibbs' method have not mixed: R-hat is {r_hat:.4g} and the effective sample "
            f"size {drawn.effective:.3g}"
        )
    if reasons:
        warnings.warn(
            f"Network: {'; '.join(reasons)}. Draw more, or use method='elimination' or 'weighting'.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _starts(net: "Network", known: Mapping[int, float], chains: int, rng: np.random.Generator) -> np.ndarray:
    """Return states that agree with the evidence, one row for each chain, drawn among weighted rows."""
    for n in (1000, 10_000, 100_000):
        rows, logs = _forward(net, known, n, rng)
        if logs.max() > -np.inf:
            weight = np.exp(logs - logs.max())
            return rows[rng.choice(n, size=chains, p=weight / weight.sum())].astype(np.int64)
    raise ValueError("Network: no row drawn agrees with the evidence; ask exactly (method='elimination').")


def _plan(net: "Network") -> tuple[Any, ...]:
    """Return the logarithms of the tables one after the other, and for each node which of their entries depend on it
    and how."""
    starts = np.concatenate([[0], np.cumsum([table.size for table in net.tables])])
    steps: list[dict[int, int]] = []
    for node, above in enumerate(net.parents):
        axes = [*above, node]
        strides = np.cumprod([1, *[net.sizes[axis] for axis in axes[:0:-1]]])[::-1]
        steps.append(dict(zip(axes, strides.tolist())))
    members = [sorted(step) for step in steps]
    flat = np.array([item for part in members for item in part], dtype=np.int64)
    stride = np.array([steps[node][item] for node, part in enumerate(members) for item in part], dtype=np.int64)
    begin = np.concatenate([[0], np.cumsum([len(part) for part in members])])
    near = [
        [node, *(child for child, above in enumerate(net.parents) if node in above)] for node in range(len(members))
    ]
    near_begin = np.concatenate([[0], np.cumsum([len(part) for part in near])])
    with np.errstate(divide="ignore"):
        tables = np.log(np.concatenate([table.ravel() for table in net.tables]))
    return (
        np.array(net.sizes), tables, starts[:-1], flat, stride, begin,
        np.array([item for part in near for item in part]), near_begin,
    )  # fmt: skip


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+', re.DOTALL)
_PLAIN = re.compile(r"[^\s{}()\[\];,|\"]+")


def read_bif(path: Any) -> Network:
    """Return the network that a BIF file holds; text that begins with "network" is read as such.

    Parameters
    ----------
    path : path or str
        A file, or its text.

    Returns
    -------
    Network
        The network.

    Examples
    --------
    >>> text = "network n {} variable a { type discrete [2] { no, yes }; } probability (a) { table 0.25, 0.75; }"
    >>> round(read_bif(text).infer("a")["yes"], 12)
    0.75
    """
    text = str(path)
    if not text.lstrip().startswith(("network", "//", "/*")):
        text = Path(path).read_text(encoding="utf-8")
    tokens = [node for node in _TOKEN.findall(text) if not node.startswith(("//", "/*"))]
    reader = _Reader([token[1:-1] if token.startswith('"') else token for token in tokens])
    try:
        reader.read()
    except (IndexError, ValueError) as error:
        raise ValueError(f"read_bif: near item {reader.at} of the text: {error}") from error
    return Network.of(reader.states, reader.tables)


class _Reader:
    def __init__(self, tokens: list[str]):
        self.tokens, self.at = tokens, 0
        self.states: dict[str, list[str]] = {}
        self.tables: dict[str, Any] = {}

    def next(self, wanted: str | None = None) -> str:
        if self.at >= len(self.tokens):
            raise ValueError("the text ends too early.")
        token = self.tokens[self.at]
        self.at += 1
        if wanted is not None and token != wanted:
            raise ValueError(f"expected {wanted!r}, got {token[:40]!r}.")
        return token

    def until(self, end: str) -> list[str]:
        """Return the items up to `end`, without commas."""
        results = []
        while (token := self.next()) != end:
            results += [token] if token != "," else []
        return results

    def read(self) -> None:
        while self.at < len(self.tokens):
            kind = self.next()
            if kind == "network":
                while self.next() != "{":
                    pass
                self._skip_block()
            elif kind == "variable":
                self._variable()
            elif kind == "probability":
                self._probability()
            else:
                raise ValueError(f"{kind[:40]!r} is no block of such a file.")

    def _skip_block(self) -> None:
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.next(), 0)

    def _variable(self) -> None:
        name = self.next()
        self.next("{")
        while (token := self.next()) != "}":
            if token == "type":
                self.next("discrete")
                self.next("[")
                size = int(self.next())
                self.next("]")
                self.next("{")
                self.states[name] = self.until("}")
                self.next(";")
                if len(self.states[name]) != size:
                    raise ValueError(f"{name!r} has {len(self.states[name])} states, not {size}.")
            else:
                self.until(";")

    def _probability(self) -> None:
        self.next("(")
        family = self.until(")")
        name, parents = family[0], [node for node in family[1:] if node != "|"]
        if any(node not in self.states for node in (name, *parents)):
            raise ValueError(f"the table of {name!r} names a variable that is not declared before it.")
        shape = [len(self.states[node]) for node in (*parents, name)]
        table = np.full(shape, np.nan)
        self.next("{")
        while (token := self.next()) != "}":
            if token in ("table", "default"):
                values = np.array([float(node) for node in self.until(";")])
                if token == "default":
                    table[np.isnan(table)] = np.broadcast_to(values, shape)[np.isnan(table)]
                else:  # the states of the variable come first in the list, its parents after it
                    table = np.moveaxis(values.reshape(shape[-1:] + shape[:-1]), 0, -1)
            elif token == "(":
                states = self.until(")")
                where = tuple(self.states[parent].index(state) for parent, state in zip(parents, states, strict=True))
                table[where] = [float(node) for node in self.until(";")]
            else:
                self.until(";")
        self.tables[name] = (parents, table / table.sum(axis=-1, keepdims=True))


def write(net: Network, path: Any = None) -> str:
    """Return a network as BIF text, tables to the last bit; with `path`, write it there."""
    if any(state is None for state in net.states):
        raise ValueError("to_bif: the format knows tables alone, and a node of the network is a number.")
    parts = ["network assay {\n}"]
    for name, states in zip(net.names, net.states):
        listed = ", ".join(map(_word, states or ()))
        parts.append(f"variable {_word(name)} {{\n  type discrete [ {len(states or ())} ] {{ {listed} }};\n}}")
    for node, name in enumerate(net.names):
        parts.append(_table(net, node, _word(name)))
    text = "\n".join(parts) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _table(net: Network, node: int, name: str) -> str:
    above, table = net.parents[node], net.tables[node]
    if not above:
        return f"probability ( {name} ) {{\n  table {_numbers(table)};\n}}"
    lines = [f"probability ( {name} | {', '.join(_word(net.names[parent]) for parent in above)} ) {{"]
    for where in itertools.product(*(range(net.sizes[parent]) for parent in above)):
        states = ", ".join(_word((net.states[parent] or ())[i]) for parent, i in zip(above, where))
        lines.append(f"  ({states}) {_numbers(table[where])};")
    return "\n".join([*lines, "}"])


def _numbers(row: np.ndarray) -> str:
    return ", ".join(map(repr, row.tolist()))


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if '"' in text:
        raise ValueError(f"to_bif: the name {text!r} has a quotation mark, which the format cannot hold.")
    return f'"{text}"'
