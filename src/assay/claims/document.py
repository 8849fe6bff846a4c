"""Certificates as JSON text, and back; what is read is checked field by field and trusted in nothing.

Claims have a code in files, "D04/1", and a name everywhere else; the definitions of the core and of the model's family
say which. Arrays are `{"dtype": "<f8", "shape": [3], "base64": "..."}`. Reading refuses duplicate keys, NaN and
infinity, deep nesting, unknown or missing fields, and arrays whose bytes do not fill their shape.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import NoReturn, TypeVar

import numpy as np

from assay._typing import Json
from assay.claims.claim import FORMAT, Certificate, Claim, DataReference, ModelReference, NotApplicable
from assay.claims.definitions import names, register
from assay.claims.directory import code

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
_OLDER = ("assay-certificate/1", "assay-certificate/2")
_CERTIFICATE = (
    "format", "model", "data", "delta_total", "split", "claims", "not_applicable", "unreported", "looks", "time"
)  # fmt: skip
_CLAIM = ("template", "value", "direction", "params", "data", "delta", "assumptions", "witness", "producer")
_LOOKS = ("count", "reserve", "part", "parts", "units")
_NESTING = 32
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)  # an open string ends the text


T = TypeVar("T")


class DocumentError(ValueError):
    """A text is not a well-formed certificate."""


def to_json(certificate: Certificate) -> str:
    """Return the certificate as JSON text; `from_json` gives back an equal certificate."""
    return json.dumps(_certificate_record(certificate), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def digest(certificate: Certificate) -> str:
    """Return the SHA-256 of a certificate's JSON text: what a prediction, a card or an exported model names it by."""
    return hashlib.sha256(to_json(certificate).encode()).hexdigest()


def from_json(text: str | bytes) -> Certificate:
    """Return the certificate written in `text`, or raise `DocumentError` saying what is wrong and where."""
    read: dict[str, Json] = _of_type(strict_json(text), dict, "certificate")
    if (version := read.get("format")) != FORMAT:
        again = " Its claims had another meaning: certify the model again." if version in _OLDER else ""
        raise DocumentError(f"certificate: the format is {str(version)[:40]!r}; this version reads {FORMAT!r}.{again}")
    record = _Record({"looks": None, "time": None, **read}, "certificate", *_CERTIFICATE)
    split, looks, time = (record.optional(name) for name in ("split", "looks", "time"))
    reference = _Record(record.mapping("model"), "model", "learner", "family", "digest")
    model = ModelReference(reference.text("learner"), reference.text("family"), reference.text("digest"))
    _load_definitions(model.family)
    return Certificate(
        claims=tuple(_claim(item, f"claims[{i}]") for i, item in enumerate(record.items("claims"))),
        model=model,
        data={name: _data_reference(item, f"data.{name}") for name, item in record.mapping("data").items()},
        delta_total=_probability(record.text("delta_total"), "delta_total"),
        not_applicable=tuple(_not_applicable(item) for item in record.items("not_applicable")),
        unreported=tuple(_unreported(item) for item in record.items("unreported")),
        split=None if split is None else _arrays(split, "split"),
        looks=None if looks is None else _looks(looks),
        time=None if time is None else _time(time),
    )


def strict_json(text: str | bytes, nesting: int = _NESTING) -> Json:
    """Parse JSON; refuse duplicate keys, NaN, infinity, too large numbers and more than `nesting` levels."""
    data = text.encode() if isinstance(text, str) else text
    _check_nesting(data, nesting)
    try:
        value: Json = json.loads(
            data.decode(), object_pairs_hook=_no_duplicates, parse_constant=_refuse, parse_float=_finite
        )
        return value
    except DocumentError:
        raise
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not JSON text: {error}.") from None


def _check_nesting(data: bytes, nesting: int) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth > nesting:
            raise DocumentError(f"JSON text is nested more than {nesting} levels deep.")


def _no_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise DocumentError("a JSON object repeats a key.")
    return record


def _refuse(token: str) -> NoReturn:
    raise DocumentError(f"{token} is not a JSON number.")


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise DocumentError(f"the number {token[:40]} is beyond binary64.")
    return value


def _certificate_record(certificate: Certificate) -> dict[str, object]:
    return {
        "format": certificate.format,
        "model": vars(certificate.model),
        "data": {
            name: {**vars(reference), "labels": None if reference.labels is None else list(reference.labels)}
            for name, reference in certificate.data.items()
        },
        "delta_total": certificate.delta_total,
        "split": None if certificate.split is None else _array_records(certificate.split),
        "claims": [_claim_record(claim) for claim in certificate.claims],
        "not_applicable": [
            {"template": code(missing.name), "reason": missing.reason} for missing in certificate.not_applicable
        ],
        "unreported": [[code(name), delta] for name, delta in certificate.unreported],
        "looks": None if certificate.looks is None else _plain(certificate.looks),
        "time": None if certificate.time is None else _plain(certificate.time),
    }


def _claim_record(claim: Claim) -> dict[str, object]:
    record: dict[str, object] = {"template": code(claim.name)} | vars(claim)
    del record["name"]
    record.update(
        value=float(claim.value), params=_plain(_renamed(claim.params, code)), witness=_array_records(claim.witness)
    )
    record.update(data=list(claim.data), assumptions=list(claim.assumptions))
    return record


def _plain(value: object) -> object:
    """Return `value` with NumPy numbers, tuples and mappings as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _array_records(arrays: Mapping[str, np.ndarray]) -> dict[str, object]:
    return {name: _array_record(name, np.asarray(array)) for name, array in arrays.items()}


def _array_record(name: str, array: np.ndarray) -> dict[str, object]:
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in DTYPES:
        raise DocumentError(f"{name}: arrays of type {array.dtype} cannot be part of a certificate.")
    data = np.ascontiguousarray(array, dtype=dtype).tobytes()
    return {"dtype": dtype, "shape": list(array.shape), "base64": base64.b64encode(data).decode()}


def _arrays(records: Mapping[str, Json], where: str) -> dict[str, np.ndarray]:
    return {name: _array(item, f"{where}.{name}") for name, item in records.items()}


def _array(item: Json, where: str) -> np.ndarray:
    record = _Record(item, where, "dtype", "shape", "base64")
    kind, shape, text = record.text("dtype"), record.counts("shape"), record.text("base64")
    if kind not in DTYPES:
        raise DocumentError(f"{where}: the array type {kind[:20]!r} is not one of {', '.join(DTYPES)}.")
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise DocumentError(f"{where}: the array's bytes are not base64.") from None
    dtype = np.dtype(kind)
    if len(shape) > 4 or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise DocumentError(f"{where}: shape {shape} of {dtype} does not match {len(data)} bytes.")
    return np.frombuffer(data, dtype).reshape(shape)


def _claim(item: Json, where: str) -> Claim:
    record = _Record(item, where, *_CLAIM)
    return Claim(
        name=_called(record.text("template"), where),
        value=record.number("value"),
        direction=record.text("direction"),
        params=_renamed(record.mapping("params"), partial(_called, where=f"{where}.params")),
        data=tuple(record.texts("data")),
        delta=_probability(record.text("delta"), f"{where}.delta"),
        assumptions=tuple(record.texts("assumptions")),
        witness=_arrays(record.mapping("witness"), f"{where}.witness"),
        producer=record.text("producer"),
    )


def _load_definitions(family: str) -> None:
    """Make the claims known that any certificate may make, and those of the family that the file names."""
    for place in ("facts", "bounds", f"families.{family.partition('.')[0]}"):
        if re.fullmatch(r"(families\.)?[a-z][a-z0-9_]{0,39}", place) and find_spec(f"assay.checker.{place}"):
            register(getattr(import_module(f"assay.checker.{place}"), "CLAIMS", {}))


def _called(code: str, where: str) -> str:
    """Return the name of the claim with that code; of a family that is not loaded, and of none, the code itself."""
    if code[:1].islower():
        raise DocumentError(f"{where}: files have the codes of claims; {code[:40]!r} is not one.")
    return names.get(code, code)


def named(claim: Claim) -> Claim:
    """Return a claim by its name, which was read before its definition was loaded: the table's model was not known."""
    return replace(
        claim, name=names.get(claim.name, claim.name), params=_renamed(claim.params, lambda gap: names.get(gap, gap))
    )


def _renamed(params: Mapping[str, object], called: Callable[[str], str]) -> Mapping[str, object]:
    """Return parameters in which `gap`, the claim that this one rests on, is called otherwise."""
    gap = params.get("gap")
    return {**params, "gap": called(gap)} if isinstance(gap, str) else params


def _data_reference(item: Json, where: str) -> DataReference:
    record = _Record(item, where, "digest", "rows", "columns", "labels")
    digest, rows, columns = record.text("digest"), record.count("rows"), record.count("columns")
    return DataReference(digest, rows, columns, None if record["labels"] is None else tuple(record.texts("labels")))


def _not_applicable(item: Json) -> NotApplicable:
    record = _Record(item, "not_applicable", "template", "reason")
    return NotApplicable(_called(record.text("template"), "not_applicable"), record.text("reason"))


def _time(item: Json) -> dict[str, object]:
    record = _Record(item, "time", "name", "kind", "levels", "written")
    texts = {part: record.texts(part) for part in ("levels", "written")}
    return {"name": record.text("name"), "kind": record.text("kind"), **texts}


def _looks(item: Json) -> dict[str, object]:
    record = _Record(item, "looks", *_LOOKS)
    counts = {name: record.count(name) for name in _LOOKS if name != "reserve"}
    rows = record.counts("reserve")
    if min(*counts.values(), *rows) < 0:
        raise DocumentError("looks: numbers of looks and of rows are not negative.")
    return {name: rows if name == "reserve" else counts[name] for name in _LOOKS}  # in one order: digests cover it


def _unreported(record: Json) -> tuple[str, str]:
    if not isinstance(record, list) or len(record) != 2:
        raise DocumentError("unreported: each entry is the code of a claim and its delta.")
    name = _called(_of_type(record[0], str, "unreported"), "unreported")
    return name, _probability(_of_type(record[1], str, "unreported"), "unreported")


def _probability(text: str, where: str, high: Decimal | None = Decimal(1)) -> str:
    """Return a decimal string unchanged if it is a number from 0 to `high`."""
    try:
        value = Decimal(text) if re.fullmatch(r"[0-9][0-9.eE+-]{0,49}", text) else None
    except InvalidOperation:
        value = None
    if value is None or not value.is_finite() or value < 0 or abs(value.adjusted()) > 400 or (high and value > high):
        raise DocumentError(f"{where}: {text[:60]!r} is not a decimal number from 0 to {high or 'any'}.")
    return text


class _Record:
    """A JSON object that has exactly these fields; each is read as the type that it must have."""

    def __init__(self, item: Json, where: str, *names: str) -> None:
        self.where = where
        self.fields: dict[str, Json] = _of_type(item, dict, where)
        if self.fields.keys() != {*names}:
            missing, extra = sorted({*names} - self.fields.keys()), sorted(self.fields.keys() - {*names})
            raise DocumentError(f"{where}: fields missing {missing}, unknown {[name[:40] for name in extra[:5]]}.")

    def __getitem__(self, name: str) -> Json:
        return self.fields[name]

    def text(self, name: str) -> str:
        return _of_type(self[name], str, f"{self.where}.{name}")

    def texts(self, name: str) -> list[str]:
        return [_of_type(item, str, f"{self.where}.{name}") for item in self.items(name)]

    def count(self, name: str) -> int:
        return _of_type(self[name], int, f"{self.where}.{name}")

    def counts(self, name: str) -> list[int]:
        return [_of_type(item, int, f"{self.where}.{name}") for item in self.items(name)]

    def number(self, name: str) -> float:
        value = self[name]
        if type(value) is int and abs(value) < 2**1023:
            return float(value)
        return _of_type(value, float, f"{self.where}.{name}")

    def items(self, name: str) -> list[Json]:
        return _of_type(self[name], list, f"{self.where}.{name}")

    def mapping(self, name: str) -> dict[str, Json]:
        return _of_type(self[name], dict, f"{self.where}.{name}")

    def optional(self, name: str) -> dict[str, Json] | None:
        return None if self[name] is None else self.mapping(name)


def _of_type(value: Json, kind: type[T], where: str) -> T:
    if isinstance(value, kind) and type(value) is kind:  # True is no integer
        return value
    raise DocumentError(f"{where}: expected {kind.__name__}, got {type(value).__name__}.")
