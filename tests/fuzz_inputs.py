"""Inputs of the fuzzer: sound model files, certificates and tables, and what is made of them.

Every input is made from its number and the seed alone.
"""

import copy
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import assay
from assay.data import Encoding, read
from tests.certificate.forged_files import Parts, certificate_forgeries, forgeries, forgeries_of_the_record, npy
from tests.certificate.test_forged_files import Certified, certified
from tests.certificate.test_forged_tables import TASKS, CertifiedTable, certified_table


class Seeds(NamedTuple):
    """Sound inputs, from which the others are made."""

    models: list[tuple[Certified, Parts, list[Any], list[Any]]]
    tables: list[tuple[CertifiedTable, Parts, list[Any], list[Any]]]
    csv: bytes
    parquet: bytes
    encoding: list[Any]


def seeds(names: tuple[str, ...] | None, folder: Path) -> Seeds:
    """Fit and certify the learners of these names (None: all), and write a table."""
    models = []
    for learner in assay.learners():
        if names is None or learner.__name__ in names:
            subject = certified(learner, folder)
            parts = Parts.of(subject.content)
            models.append((subject, parts, list(forgeries(parts)), list(certificate_forgeries(parts))))
    tables = []
    for task in TASKS:
        table = certified_table(task, folder)
        parts = Parts.of(table.content)
        tables.append((table, parts, list(forgeries_of_the_record(parts)), list(certificate_forgeries(parts))))
    import pyarrow as pa
    import pyarrow.parquet

    columns = {"a": [1.5, None, 3.0, 4.0] * 5, "b": ["x", "y", None, "z"] * 5, "c": [1, 2, 3, 4] * 5}
    pyarrow.parquet.write_table(pa.table(columns), folder / "table.parquet")
    csv = "a,b,c\n" + "".join(f'{i / 2},"level {i % 3}",{i}\n' for i in range(20))
    encoding = Encoding.fit(read(columns)).plain()
    return Seeds(models, tables, csv.encode(), (folder / "table.parquet").read_bytes(), encoding)


# Mutations ----------------------------------------------------------------------------------------------------


class Draw:
    """Random choices of one input."""

    def __init__(self, seed: int, number: int):
        self.rng = np.random.default_rng([seed, number])

    def below(self, high: int) -> int:
        return int(self.rng.integers(high))

    def of(self, options: Any) -> Any:
        return options[self.below(len(options))]


STRANGE = (
    b"\0", b"\xff" * 8, b"\n", b'"', b"{", b"[" * 40, b"1e999", b"-1", b"NaN", b"\xf0\x9f\x92\xa9", b"\x1b[2J", b",",
)  # fmt: skip


def mutated_bytes(data: bytes, draw: Draw) -> bytes:
    """Return bytes with a few flips, cuts, copies or strange insertions."""
    found = bytearray(data)
    for _ in range(1 + draw.below(4)):
        at, length = draw.below(len(found) + 1), 1 + draw.below(64)
        what = draw.below(7)
        if what == 0 and at < len(found):
            found[at] ^= 1 << draw.below(8)
        elif what == 1:
            del found[at : at + length]
        elif what == 2:
            found[at:at] = draw.of(STRANGE)
        elif what == 3:
            source = draw.below(len(found) + 1)
            found[at:at] = found[source : source + length]
        elif what == 4:
            found[at : at + length] = draw.rng.bytes(min(length, 16))
        elif what == 5:
            del found[at:]
        else:
            found[at : at + 4] = draw.of([0, 1, 2**31 - 1, 2**32 - 1, 255, 65535]).to_bytes(4, "little")
    return bytes(found)


def mutated_plain(value: Any, draw: Draw) -> Any:
    """Return plain data with one to three of its parts replaced, copied, moved or removed."""
    value = copy.deepcopy(value)
    for _ in range(1 + draw.below(3)):
        holders = list(_holders(value))
        if not holders:
            return value
        holder = draw.of(holders)
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = draw.of(keys)
        what = draw.below(6)
        if what == 0:
            del holder[key]
        elif what == 1:
            other = draw.of(holders)
            inner = list(other.values()) if isinstance(other, dict) else other
            holder[key] = copy.deepcopy(draw.of(inner)) if inner else None
        elif what == 2 and isinstance(holder, list):
            holder.extend([copy.deepcopy(holder[key])] * (1 + draw.below(20)))
        elif what == 3 and isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * draw.of([-1, 0, 0.5, 2, 10, 1000, 2**40]) + draw.of([0, 1, -1, 1e-9])
        else:
            holder[key] = copy.deepcopy(draw.of(_PLAIN))  # the next change may be one of its own parts
    return value


_PLAIN = (
    None, True, False, 0, 1, -1, 2, 2**31, 2**53, 2**64, 10**30, 0.5, -0.5, 1e308, 1e-308, "", "0", "1e-300", "0.05",
    "train", "holdout", "x" * 5000, "\x1b[31m[red]\n", "\ud800", [], {}, [[]], [None], {"": None}, "P01/1", "D02/1",
    "P19/1", "holdout.binomial", "squared", "zero-one", "inf", "nan", 3, 7, 100, 10**5, 10**9,
)  # fmt: skip


def _holders(value: Any) -> Any:
    if isinstance(value, (dict, list)) and value:
        yield value
        for inner in value.values() if isinstance(value, dict) else value[:50]:
            yield from _holders(inner)


def mutated_file(subject: Any, draw: Draw) -> tuple[bytes, str]:
    """Return a forged model file, and how it was sealed: "manifest", or "digest" if the certificate was too."""
    _, parts, changes, told = subject
    forged = parts.copy()
    for _ in range(1 + draw.below(2)):
        what = draw.below(8)
        try:
            if what < 3:
                draw.of(changes)[1](forged)
            elif what == 3 and told:
                draw.of(told)[1](forged)
            elif what == 4 and forged.arrays:
                place = draw.of(list(forged.arrays))
                forged.arrays[place] = mutated_bytes(npy(np.asarray(forged.arrays[place])), draw)
            elif what == 5:
                forged.record = mutated_plain(forged.record, draw)
            elif what == 6 and forged.arrays:
                place = draw.of(list(forged.arrays))
                forged.arrays[place] = _noisy(forged.arrays[place], draw)
            else:
                forged.more[draw.of(["arrays/500.npy", "../x", "model.json", "code.py", "arrays/a.npy"])] = b"{}"
        except Exception:
            continue  # the second change does not apply to what the first one left
    sealed = "manifest"
    if draw.below(2):
        try:
            forged.seal()
            sealed = "digest"
        except Exception:
            sealed = "manifest"  # there is no model that a certificate could be about
    try:
        content = forged.content()
    except Exception:  # what no file can hold
        content = parts.content()
    return (mutated_bytes(content, draw) if draw.below(12) == 0 else content), sealed


def _noisy(array: Any, draw: Draw) -> Any:
    """Return an array with some entries drawn anew, from its own or from afar."""
    array = np.array(array)
    if not array.size:
        return array
    flat = array.ravel()
    for _ in range(1 + draw.below(5)):
        at = draw.below(len(flat))
        if flat.dtype.kind == "f":
            flat[at] = draw.of([flat[draw.below(len(flat))], draw.rng.normal(), draw.rng.normal() * 1e6, 0.0])
        elif flat.dtype.kind in "iu":
            flat[at] = draw.of([flat[draw.below(len(flat))], draw.below(100), 0])
    return flat.reshape(array.shape)


# Inputs -------------------------------------------------------------------------------------------------------


class Input(NamedTuple):
    """One input: what it is for, its bytes, and which sound input it was made from."""

    kind: str
    content: bytes
    source: int = 0
    sealed: str = ""


KINDS = ("model", "model", "model", "model", "table", "certificate", "certificate", "csv", "parquet", "encoding")


def kind_of(number: int, seed: int) -> str:
    """Return what the input of that number is for."""
    return Draw(seed, number).of(KINDS)


def make(number: int, seed: int, sound: Seeds) -> Input:
    """Return the input of that number."""
    draw = Draw(seed, number)
    kind = draw.of(KINDS)
    if kind in ("model", "table"):
        sources = sound.models if kind == "model" else sound.tables
        source = draw.below(len(sources))
        content, sealed = mutated_file(sources[source], draw)
        return Input(kind, content, source, sealed)
    if kind == "certificate":
        source = draw.below(len(sound.models))
        told = sound.models[source][1].certificate
        text = json.dumps(mutated_plain(told, draw) if draw.below(4) else told).encode()
        return Input(kind, mutated_bytes(text, draw) if draw.below(3) == 0 else text, source)
    if kind == "encoding":
        return Input(kind, json.dumps(mutated_plain(sound.encoding, draw)).encode())
    return Input(kind, mutated_bytes(sound.csv if kind == "csv" else sound.parquet, draw))
