"""A model file as an attacker sees it: parts that can be changed one at a time, and sealed again.

`Parts` holds the record of the model, its arrays and the certificate as plain JSON. `forgeries(parts)` yields every
single change that this file knows: of each array, each parameter, the class, the family, the members, the names of the
columns, and each field of the certificate. It asks the file what is in it, so a new learner's items are found by
themselves.
"""

import copy
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay import persist, registry
from assay.claims.model import StoredModel
from assay.params import Choice, constraints

Change = Callable[["Parts"], None]


@dataclass
class Parts:
    """The content of a model file, to be changed."""

    record: dict[str, Any]
    arrays: dict[int, Any]  # by number; an array, or the bytes of the member as they are
    certificate: dict[str, Any] | None = None
    more: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, content: bytes) -> "Parts":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        arrays = {
            int(name[7:-4]): np.load(io.BytesIO(data)) for name, data in members.items() if name.startswith("arrays/")
        }
        told = members.get("certificate.json")
        return cls(json.loads(members["model.json"]), arrays, None if told is None else json.loads(told))

    def copy(self) -> "Parts":
        return copy.deepcopy(self)

    def members(self) -> dict[str, bytes]:
        """Return the members of the archive, but for the manifest."""
        found = {"model.json": _compact(self.record)}
        for number, array in self.arrays.items():
            found[f"arrays/{number}.npy"] = array if isinstance(array, bytes) else npy(array)
        if self.certificate is not None:
            found["certificate.json"] = _compact(self.certificate)
        return found | self.more

    def content(self, *, manifest: bytes | None = None) -> bytes:
        """Return the bytes of the file; its manifest is made anew unless one is given."""
        members = self.members()
        return persist._zipped({"manifest.json": manifest or persist._manifest(members), **members})

    def stored(self) -> StoredModel:
        """Return the stored model that the parts describe, by the reader of model files."""
        members = self.members()
        return persist._stored(self.record, members, {name for name in members if name.startswith("arrays/")})

    def seal(self) -> None:
        """Make the certificate one about this model, as whoever has the software can do."""
        assert self.certificate is not None
        stored = self.stored()
        self.certificate["model"] = {
            "learner": stored.learner,
            "family": stored.family,
            "digest": stored.digest(),
        }


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)  # a forger may store objects
    return content.getvalue()


# Changes ------------------------------------------------------------------------------------------------------


def forgeries(parts: Parts) -> Iterator[tuple[str, Change]]:
    """Yield the name of a change of the model, and the change."""
    for name, place in parts.record["arrays"].items():
        if isinstance(place, int):
            for what, change in _array_changes(parts.arrays[place]):
                yield f"{name}: {what}", _on_array(place, change)
        else:
            for what, held in _text_changes(place):
                yield f"{name}: {what}", _on_record("arrays", name, held)
        yield from _name_changes(parts.record["arrays"], name)
    for name, value in parts.record["parameters"].items():
        for held in _parameter_values(parts.record["learner"], name, value):
            yield f"parameter {name} = {json.dumps(held)[:60]}", _on_record("parameters", name, held)
        yield f"no parameter {name}", _without("parameters", name)
    yield "one more parameter", _on_record("parameters", "predict", "str")
    yield "one more array", _with_array("predict")
    yield "one more array that no record names", lambda p: p.arrays.update({99: np.zeros(3)})
    yield from _of_the_whole(parts)


def _array_changes(array: np.ndarray) -> Iterator[tuple[str, Callable[[np.ndarray], Any]]]:
    yield from _value_changes(array)
    yield "negated", lambda a: -a if a.dtype.kind != "b" else ~a
    yield "times 1.5", lambda a: (a * 1.5).astype(a.dtype)
    yield "plus one", lambda a: (a + 1).astype(a.dtype)
    yield "all zero", np.zeros_like
    yield "all minus one", lambda a: np.full_like(a, -1)
    yield "shuffled", lambda a: np.random.default_rng(0).permutation(a.ravel()).reshape(a.shape)
    if array.ndim:
        yield "reversed", lambda a: a[::-1]
        yield "rolled", lambda a: np.roll(a, 1, axis=0)
        yield "without its last entry", lambda a: a[:-1]
        yield "one entry longer", lambda a: np.concatenate([a, a[-1:]])
        yield "twice", lambda a: np.concatenate([a, a])
        yield "empty", lambda a: a[:0]
        yield "reversed in its last axis", lambda a: a[..., ::-1]
        yield "empty in its last axis", lambda a: a[..., :0]
        yield "shorter in its last axis", lambda a: a[..., :-1]
        yield "transposed", lambda a: a.T
        yield "flat", lambda a: a.ravel()
        yield "a single number", lambda a: a.ravel()[0] if a.size else np.array(0, a.dtype)
        yield "in Fortran order", np.asfortranarray
    yield "one axis more", lambda a: a[None]
    yield "one axis more at the end", lambda a: a[..., None]
    for kind in ("<f8", "<f4", ">f8", "<f2", "<i8", "<i4", "<i1", "<u8", "|b1", "<c16", "<U8", "|O", "<M8[s]", "|S8"):
        if np.dtype(kind) != array.dtype or kind == ">f8":
            yield f"of type {kind}", lambda a, kind=kind: _as_type(a, kind)


def _value_changes(array: np.ndarray) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Yield changes of one entry: the first, the last, one between."""
    numbers = [1.0, -1.0, 0.0, 1e300, 1e17, -1e17, 1e-320, np.nan, np.inf, -np.inf]
    whole = [0, 1, -1, 2, -2, 7, 2**31, -(2**31), 2**62, -(2**62)]
    places = sorted({0, array.size // 2, array.size - 1}) if array.size else []
    for place in places:
        for value in numbers if array.dtype.kind == "f" else whole:
            yield f"entry {place} = {value}", lambda a, place=place, value=value: _with_entry(a, place, value)
        yield f"entry {place} a little larger", lambda a, place=place: _with_entry(a, place, a.ravel()[place] * 1.25)
    if array.size > 1:
        yield "two entries swapped", _swapped


def _with_entry(array: np.ndarray, place: int, value: Any) -> np.ndarray:
    new = array.copy().ravel()
    if new.dtype.kind in "iu":
        limits = np.iinfo(new.dtype)
        value = min(max(int(value), int(limits.min)), int(limits.max))
    new[place] = value
    return new.reshape(array.shape)


def _swapped(array: np.ndarray) -> np.ndarray:
    new = array.copy().ravel()
    new[[0, -1]] = new[[-1, 0]]
    return new.reshape(array.shape)


def _as_type(array: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(kind, casting="unsafe")


def _text_changes(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield records of an array of text that are not this one."""
    values = list(record["values"])
    for what, held in {
        "reversed": values[::-1],
        "one renamed": ["another", *values[1:]],
        "one twice": [*values[:-1], values[0]] if values else [],
        "with a NUL": [value + "\0" for value in values],
        "with an escape": ["\x1b[2J[red]\n" + value for value in values],
        "no strings": [1] * len(values),
        "shorter": values[:-1],
        "longer": [*values, "more"],
        "long": ["x" * 10_000, *values[1:]],
    }.items():
        yield what, {**record, "values": held}
        if len(held) != len(values):
            yield f"{what}, and its shape", {**record, "values": held, "shape": [len(held)]}
    yield "of the other kind", {**record, "text": "str" if record["text"] == "object" else "object"}
    yield "of no kind", {**record, "text": "bytes"}
    yield "of another shape", {**record, "shape": [1, *record["shape"]]}
    yield "of numbers", {"dtype": "<f8", "shape": [1], "base64": "AAAAAAAA8D8="}
    yield "nothing", None


def _name_changes(arrays: dict[str, Any], name: str) -> Iterator[tuple[str, Change]]:
    def renamed(parts: Parts) -> None:
        parts.record["arrays"]["renamed_"] = parts.record["arrays"].pop(name)

    yield f"{name}: renamed", renamed
    yield f"{name}: left out", _left_out(name)
    yield f"{name}: not in the file", _on_record("arrays", name, 98)
    for other in arrays:
        if other > name:
            yield f"{name} and {other}: swapped", _exchange(name, other)


def _left_out(name: str) -> Change:
    def change(parts: Parts) -> None:
        place = parts.record["arrays"].pop(name)
        if isinstance(place, int):
            del parts.arrays[place]

    return change


def _exchange(name: str, other: str) -> Change:
    def change(parts: Parts) -> None:
        arrays = parts.record["arrays"]
        arrays[name], arrays[other] = arrays[other], arrays[name]

    return change


def _parameter_values(learner: str, name: str, value: Any) -> Iterator[Any]:
    """Yield values that a parameter does not have: others of its type, other types, and every named choice."""
    kind = registry.find(learner)
    options: list[Any] = []
    constraint = constraints(kind()).get(name)
    constraint = getattr(constraint, "constraint", constraint)  # of `Maybe` and `NameOr`
    if isinstance(constraint, Choice):
        options += [option for option in constraint.allowed if isinstance(option, str)]
    if isinstance(value, bool):
        options += [not value]
    elif isinstance(value, (int, float)):
        options += [value + 1, value * 2.0, -value, 0, 1e300, 2**70, {"number": "nan"}, {"number": "inf"}]
    options += [None, True, 1, 0.5, "rbf", "x\n[red]\x1b[2J", [], [1, 2], {"tuple": [1, 2]}]
    options += [
        {"mapping": [["a", 1]]},
        {"mapping": [[{"mapping": []}, 1]]},
        {"array": {"dtype": "<f8", "shape": [1], "base64": "AAAAAAAA8D8="}},
        {"array": {"dtype": "<f8", "shape": [2**39, 2**39], "base64": ""}},
        {"object": {"learner": "linear_model.Ridge", "parameters": {}}},
        {"object": {"learner": "os.system", "parameters": {"command": "true"}}},
        {"object": {"kernel": "gaussian"}},
        {"object": None},
        {"pickle": "gASVBAAAAAAAAABLAS4="},
        {},
    ]
    yield from (held for held in options if type(held) is not type(value) or held != value)


def _on_array(place: int, change: Callable[[np.ndarray], Any]) -> Change:
    def apply(parts: Parts) -> None:
        parts.arrays[place] = np.asarray(change(parts.arrays[place]))

    return apply


def _on_record(part: str, name: str, held: Any) -> Change:
    def apply(parts: Parts) -> None:
        parts.record[part][name] = held

    return apply


def _without(part: str, name: str) -> Change:
    def apply(parts: Parts) -> None:
        del parts.record[part][name]

    return apply


def _with_array(name: str) -> Change:
    def apply(parts: Parts) -> None:
        parts.record["arrays"][name] = 97
        parts.arrays[97] = np.zeros(3)

    return apply


def _set(name: str, held: Any) -> Change:
    def apply(parts: Parts) -> None:
        parts.record[name] = held

    return apply


FAMILIES = (
    "linear.regressor", "linear.classifier", "glm.log", "trees.vote", "trees.mean", "trees.median", "kernel.regressor",
    "kernel.classifier", "expansion.classifier", "expansion.map", "neighbors.classifier", "neighbors.regressor",
    "centroids", "projection", "histogram", "mixture.full", "mixture.diag", "network.regressor", "table", "folds.mean",
    "", "os.path", "linear", "linear.", "a" * 100,
)  # fmt: skip


def _of_the_whole(parts: Parts) -> Iterator[tuple[str, Change]]:
    """Yield changes of class, family and members, and columns with names."""
    own = parts.record["learner"]
    for other in [registry.class_name(learner) for learner in registry.learners()] + ["os.system", "base.Learner", ""]:
        if other != own:
            yield f"class {other}", _set("learner", other)
            yield f"class {other}, with its parameters", _as_class(other)
    for family in FAMILIES:
        if family != parts.record["family"]:
            yield f"family {family[:20]}", _set("family", family)
    yield "itself as a member", lambda p: p.record["members"].append(copy.deepcopy(p.record))
    yield "a member that is nothing", lambda p: p.record["members"].append({})
    yield "members left out", _set("members", [])
    yield "members twice", lambda p: p.record["members"].extend(copy.deepcopy(p.record["members"]))
    yield "members reversed", lambda p: p.record["members"].reverse()
    for what, names in {
        "four": ["a", "b", "c", "d"], "one": ["a"], "two alike": ["a", "b", "c", "a"], "numbers": [1, 2, 3, 4],
    }.items():  # fmt: skip
        record = {"text": "object", "shape": [len(names)], "values": names}
        yield f"names of columns: {what}", _on_record("arrays", "feature_names_in_", record)
    yield "one more field", _set("__class__", "x")


def _as_class(other: str) -> Change:
    def apply(parts: Parts) -> None:
        if other not in ("os.system", "base.Learner", ""):
            kind = registry.find(other)
            own = parts.record["parameters"]
            from assay.stored import plain_parameters

            parts.record["parameters"] = {
                name: own.get(name, value) for name, value in plain_parameters(kind()).items()
            }
            parts.record["family"] = kind.family if isinstance(getattr(kind, "family", None), str) else "linear"
        parts.record["learner"] = other

    return apply


def forgeries_of_the_record(parts: Parts) -> Iterator[tuple[str, Change]]:
    """Yield changes of every field of the model's record, however deep, and of every array that stands in it."""
    for path, value in _leaves(parts.record, ()):
        for held in _other_values(value):
            yield f"{'.'.join(map(str, path))} = {str(held)[:40]!r}", _at(path, held, "record")
        yield f"{'.'.join(map(str, path))} left out", _at(path, _GONE, "record")
    for place, array in parts.arrays.items():
        for what, change in _array_changes(array):
            yield f"array {place}: {what}", _on_array(place, change)


# The certificate -----------------------------------------------------------------------------------------------


def certificate_forgeries(parts: Parts) -> Iterator[tuple[str, Change]]:
    """Yield changes of every field of the certificate, wherever it stands."""
    for path, value in _leaves(parts.certificate, ()):
        for held in _other_values(value):
            yield f"{'.'.join(map(str, path))} = {str(held)[:40]!r}", _at(path, held)
        yield f"{'.'.join(map(str, path))} left out", _at(path, _GONE)


_GONE = object()


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for name, held in value.items():
            yield from _leaves(held, (*path, name))
    elif isinstance(value, list):
        for place, held in enumerate(value[:4] if path[-1] == "labels" or "split" in path else value):
            yield from _leaves(held, (*path, place))
    if path:
        yield path, value


def _other_values(value: Any) -> list[Any]:
    common = [None, [], {}, "", "x\n  - The error rate is 0 %.\x1b[2J[red]", -1, 0, 1.5, True, 2**53 + 2, 1e308]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        common += [value + 1, value - 1, value * 0.5, value * 2, -value, 10**9]
    if isinstance(value, str):
        common += [value + "\0", value[:-1], value + "x", "holdout.binomial", "0", "1", "0." + "0" * 39 + "1"]
    return [held for held in common if type(held) is not type(value) or held != value]


def _at(path: tuple[Any, ...], held: Any, part: str = "certificate") -> Change:
    def apply(parts: Parts) -> None:
        inner: Any = getattr(parts, part)
        for step in path[:-1]:
            inner = inner[step]
        if held is _GONE:
            del inner[path[-1]]
        else:
            inner[path[-1]] = held

    return apply
