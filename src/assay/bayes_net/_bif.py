"""The Bayesian Interchange Format: networks with tables as text, as most programs read and write them."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np

from assay.bayes_net._network import Network

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+', re.DOTALL)
_PLAIN = re.compile(r"[^\s{}()\[\];,|\"]+")


def read_bif(path: Any) -> Network:
    """Return the network that a BIF file holds; text that begins with "network" is read as such.

    >>> text = "network n {} variable a { type discrete [2] { no, yes }; } probability (a) { table 0.25, 0.75; }"
    >>> round(read_bif(text).infer("a")["yes"], 12)
    0.75
    """
    text = str(path)
    if not text.lstrip().startswith(("network", "//", "/*")):
        text = Path(path).read_text(encoding="utf-8")
    tokens = [one for one in _TOKEN.findall(text) if not one.startswith(("//", "/*"))]
    reader = _Reader([one[1:-1] if one.startswith('"') else one for one in tokens])
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
        found = []
        while (token := self.next()) != end:
            found += [token] if token != "," else []
        return found

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
        name, parents = family[0], [one for one in family[1:] if one != "|"]
        if any(one not in self.states for one in (name, *parents)):
            raise ValueError(f"the table of {name!r} names a variable that is not declared before it.")
        shape = [len(self.states[one]) for one in (*parents, name)]
        table = np.full(shape, np.nan)
        self.next("{")
        while (token := self.next()) != "}":
            if token in ("table", "default"):
                values = np.array([float(one) for one in self.until(";")])
                if token == "default":
                    table[np.isnan(table)] = np.broadcast_to(values, shape)[np.isnan(table)]
                else:  # the states of the variable come first in the list, its parents after it
                    table = np.moveaxis(values.reshape(shape[-1:] + shape[:-1]), 0, -1)
            elif token == "(":
                states = self.until(")")
                where = tuple(self.states[one].index(state) for one, state in zip(parents, states, strict=True))
                table[where] = [float(one) for one in self.until(";")]
            else:
                self.until(";")
        self.tables[name] = (parents, table / table.sum(axis=-1, keepdims=True))


def write(net: Network, path: Any = None) -> str:
    """Return a network as BIF text, tables to the last bit; with `path`, write it there."""
    if any(one is None for one in net.states):
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
    lines = [f"probability ( {name} | {', '.join(_word(net.names[one]) for one in above)} ) {{"]
    for where in itertools.product(*(range(net.sizes[one]) for one in above)):
        states = ", ".join(_word((net.states[one] or ())[i]) for one, i in zip(above, where))
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
