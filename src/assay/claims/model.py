"""A fitted model as plain data: what a model file holds, what a fingerprint covers and what the checker reads.

`StoredModel` is the one truth about a model: its class, its constructor parameters and exactly the arrays that its
family names; a learner that consists of fitted learners has them as `members`. Everything else that `predict` needs is
derived from these by code.
"""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from assay._typing import Json

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
"""Types of arrays of numbers; text is an array of kind U or of Python strings."""


@dataclass(frozen=True)
class StoredModel:
    """A fitted model as its parts.

    Attributes
    ----------
    learner : str
        Room and class, for example "linear_model.Ridge".
    family : str
        Which family of the checker reads the arrays, with its variant: "linear.regressor".
    parameters : mapping
        Constructor parameters as plain values (`to_plain`), without those that say how the machine works (`n_jobs`).
    arrays : mapping of arrays
        What `fit` found, by the names that the family lists.
    members : tuple of StoredModel
        Fitted learners that this one is made of.
    """

    learner: str
    family: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    members: tuple["StoredModel", ...] = ()

    def digest(self) -> str:
        """Return the fingerprint of class, parameters, arrays and members (SPEC.md, section 1)."""
        names = sorted(self.arrays)
        header = {
            "learner": self.learner,
            "family": self.family,
            "parameters": dict(self.parameters),
            "arrays": [[name, _kind(self.arrays[name]), list(self.arrays[name].shape)] for name in names],
            "members": [member.digest() for member in self.members],
        }
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        digest = hashlib.sha256(f"assay-model/2\n{text}\n".encode())
        for name in names:
            digest.update(_bytes(self.arrays[name]))
        return digest.hexdigest()


@runtime_checkable
class Storable(Protocol):
    """A fitted model that has a stored form."""

    def stored(self) -> StoredModel: ...


def is_text(array: np.ndarray) -> bool:
    """Tell whether an array holds text and nothing else."""
    return array.dtype.kind == "U" or (array.dtype == object and all(isinstance(item, str) for item in array.ravel()))


def _kind(array: np.ndarray) -> str:
    """Return the type of an array in words of the format; refuse one that no model file may hold."""
    if is_text(array):
        return "text"
    kind = array.dtype.newbyteorder("<").str
    if kind not in DTYPES:
        raise ValueError(f"arrays of type {array.dtype} cannot be part of a model file.")
    return kind


def _bytes(array: np.ndarray) -> bytes:
    if is_text(array):
        return json.dumps(array.ravel().tolist(), separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


# Constructor parameters --------------------------------------------------------------------------------------


@runtime_checkable
class HasPlainForm(Protocol):
    """An object that a parameter may be: it gives a plain form of itself."""

    def plain(self) -> Json: ...


def to_plain(value: object, name: str) -> Json:
    """Return a constructor parameter as JSON has it; refuse what cannot be written without running code to read it.

    Tuples, mappings, arrays, numbers that JSON lacks and objects with a `plain()` of their own are tagged:
    {"tuple": [...]}.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"number": repr(float(value))}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (list, tuple)):
        items = [to_plain(item, name) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, Mapping):
        return {"mapping": [[to_plain(key, name), to_plain(item, name)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and (is_text(value) or value.dtype.kind in "fiub"):
        return {"array": array_record(value)}
    if isinstance(value, HasPlainForm):
        return {"object": value.plain()}
    raise ValueError(f"the parameter {name}={str(value)[:60]} is a {type(value).__name__}, which cannot be saved.")


def from_plain(value: Json, build: Callable[[Json], object]) -> object:
    """Return the parameter of a plain value; `build` makes what stands under "object"."""
    if isinstance(value, list):
        return [from_plain(item, build) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError("a tagged parameter has exactly one tag.")
    (tag, held), *_ = value.items()
    if tag == "number" and held in ("inf", "-inf", "nan"):
        return float(held)
    if tag == "tuple" and isinstance(held, list):
        return tuple(from_plain(item, build) for item in held)
    if tag == "mapping" and isinstance(held, list):
        pairs = [pair for pair in held if isinstance(pair, list) and len(pair) == 2]
        if len(pairs) == len(held):
            return {from_plain(key, build): from_plain(item, build) for key, item in pairs}
    if tag == "array":
        return array_of(held)
    if tag == "object":
        return build(held)
    raise ValueError(f"unknown kind of parameter {str(tag)[:40]!r}.")


def array_record(array: np.ndarray) -> dict[str, Json]:
    """Return an array as JSON has it."""
    kind = _kind(array)
    if kind == "text":
        held = "object" if array.dtype == object else "str"
        return {"text": held, "shape": list(array.shape), "values": array.ravel().tolist()}
    return {"dtype": kind, "shape": list(array.shape), "base64": base64.b64encode(_bytes(array)).decode()}


def array_of(record: Json) -> np.ndarray:
    """Return the array of a record, checked field by field; raise ValueError if it is not one."""
    if not isinstance(record, dict) or not isinstance(sizes := record.get("shape"), list):
        raise ValueError("an array is a record with a shape.")
    shape = [size for size in sizes if type(size) is int and 0 <= size < 2**40]
    if len(sizes) > 4 or len(shape) != len(sizes):
        raise ValueError(f"the shape {str(sizes)[:60]} of an array is not one.")
    if record.keys() == {"text", "shape", "values"}:
        return _array_of_text(record["values"], record["text"], shape)
    if record.keys() != {"dtype", "shape", "base64"} or record["dtype"] not in DTYPES:
        raise ValueError("an array has a dtype that the format knows, a shape and its bytes.")
    if not isinstance(record["base64"], str):
        raise ValueError("the bytes of an array are a text in base64.")
    data, dtype = base64.b64decode(record["base64"], validate=True), np.dtype(str(record["dtype"]))
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"the shape {shape} of {dtype} does not match {len(data)} bytes.")
    return np.frombuffer(data, dtype).reshape(shape).copy()


def _array_of_text(values: Json, held: Json, shape: list[int]) -> np.ndarray:
    texts = [text for text in values if isinstance(text, str)] if isinstance(values, list) else []
    if values != texts or held not in ("object", "str") or len(texts) != math.prod(shape):
        raise ValueError("an array of text is not what its record says.")
    if held == "str":
        if any(text.endswith("\0") for text in texts):
            raise ValueError("a text ends in a NUL character, which such arrays drop.")
        return np.array(texts, dtype=str).reshape(shape)
    array: np.ndarray = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)
