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
from typing import Any

import numpy as np

from assay.claims.claim import FORMAT, Certificate, Claim, DataReference, ModelReference, NotApplicable
from assay.claims.definitions import names, register
from assay.claims.directory import code

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
_NESTING = 32
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)  # an open string ends the text


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
    read = _of_type(strict_json(text), dict, "certificate")
    if (result := read.get("format")) != FORMAT:
        again = " It was written otherwise before: certify the model again." if str(result) < FORMAT else ""
        raise DocumentError(f"certificate: the format is {str(result)[:40]!r}; this version reads {FORMAT!r}.{again}")
    record = _fields(
        {"looks": None, "time": None, **read}, "certificate", looks=(dict, None), format=str, model=dict, data=dict,
        delta_total=str, split=(dict, None), claims=list, not_applicable=list, unreported=list, time=(dict, None),
    )  # fmt: skip
    model = ModelReference(**_fields(record["model"], "model", learner=str, family=str, digest=str))
    _load_definitions(model.family)
    return Certificate(
        claims=tuple(_claim(item, f"claims[{i}]") for i, item in enumerate(record["claims"])),
        model=model,
        data={name: _data_reference(item, f"data.{name}") for name, item in record["data"].items()},
        delta_total=_probability(record["delta_total"], "delta_total"),
        not_applicable=tuple(_not_applicable(item) for item in record["not_applicable"]),
        unreported=tuple(_unreported(item) for item in record["unreported"]),
        split=None if record["split"] is None else _split(record["split"]),
        looks=None if record["looks"] is None else _looks(record["looks"]),
        time=None if record["time"] is None else _time(record["time"]),
    )


def strict_json(text: str | bytes, nesting: int = _NESTING) -> Any:
    """Parse JSON; refuse duplicate keys, NaN, infinity, too large numbers and more than `nesting` levels."""
    data = text.encode() if isinstance(text, str) else text
    _check_nesting(data, nesting)
    try:
        return json.loads(data.decode(), object_pairs_hook=_no_duplicates, parse_constant=_refuse, parse_float=_finite)
    except DocumentError:
        raise
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"not JSON text: {error}.") from None


def _check_nesting(data: bytes, nesting: int) -> None:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(data):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match[0], 0)
        if depth > nesting:
            raise DocumentError(f"JSON text is nested more than {nesting} levels deep.")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise DocumentError("a JSON object repeats a key.")
    return record


def _refuse(token: str) -> Any:
    raise DocumentError(f"{token} is not a JSON number.")


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise DocumentError(f"the number {token[:40]} is beyond binary64.")
    return value


def _certificate_record(certificate: Certificate) -> dict[str, Any]:
    return {
        "format": certificate.format,
        "model": vars(certificate.model),
        "data": {
            name: {**vars(array), "labels": None if array.labels is None else list(array.labels)}
            for name, array in certificate.data.items()
        },
        "delta_total": certificate.delta_total,
        "split": None if certificate.split is None else _split_record(certificate.split),
        "claims": [_claim_record(claim) for claim in certificate.claims],
        "not_applicable": [{"template": code(item.name), "reason": item.reason} for item in certificate.not_applicable],
        "unreported": [[code(name), delta] for name, delta in certificate.unreported],
        "looks": None if certificate.looks is None else _plain(certificate.looks),
        "time": None if certificate.time is None else _plain(certificate.time),
    }


def _claim_record(claim: Claim) -> dict[str, Any]:
    record = {"template": code(claim.name)} | vars(claim)
    del record["name"]
    record.update(
        value=float(claim.value), params=_plain(_renamed(claim.params, code)), witness=_array_records(claim.witness)
    )
    record.update(data=list(claim.data), assumptions=list(claim.assumptions))
    return record


def _plain(value: Any) -> Any:
    """Return `value` with NumPy numbers, tuples and mappings as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _split_record(split: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return a bit for each row of the table, 1 for those that are held out."""
    held = np.zeros(len(split["train"]) + len(split["holdout"]), dtype=bool)
    held[split["holdout"]] = True
    bits = base64.b64encode(np.packbits(held).tobytes()).decode()
    return {"rows": len(held), "seed": int(split["seed"][0]) if "seed" in split else None, "holdout": bits}


def _array_records(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: _array_record(name, np.asarray(array)) for name, array in arrays.items()}


def _array_record(name: str, array: np.ndarray) -> dict[str, Any]:
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in DTYPES:
        raise DocumentError(f"{name}: arrays of type {array.dtype} cannot be part of a certificate.")
    data = np.ascontiguousarray(array, dtype=dtype).tobytes()
    return {"dtype": dtype, "shape": list(array.shape), "base64": base64.b64encode(data).decode()}


def _split(record: Any) -> dict[str, np.ndarray]:
    fields = _fields(record, "split", rows=int, seed=(int, None), holdout=str)
    packed = {"dtype": "|u1", "shape": [-(-fields["rows"] // 8)], "base64": fields["holdout"]}
    held = np.unpackbits(_array(packed, "split.holdout"))[: max(fields["rows"], 0)]
    split = {"train": np.flatnonzero(held == 0), "holdout": np.flatnonzero(held)}
    return split if fields["seed"] is None else {**split, "seed": np.array([fields["seed"]])}


def _arrays(records: dict[str, Any], where: str) -> dict[str, np.ndarray]:
    return {name: _array(record, f"{where}.{name}") for name, record in records.items()}


def _array(record: Any, where: str) -> np.ndarray:
    fields = _fields(record, where, dtype=str, shape=list, base64=str)
    if fields["dtype"] not in DTYPES:
        raise DocumentError(f"{where}: the array type {fields['dtype'][:20]!r} is not one of {', '.join(DTYPES)}.")
    shape = [_of_type(size, int, f"{where}.shape") for size in fields["shape"]]
    try:
        data = base64.b64decode(fields["base64"], validate=True)
    except ValueError:
        raise DocumentError(f"{where}: the array's bytes are not base64.") from None
    dtype = np.dtype(fields["dtype"])
    if len(shape) > 4 or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise DocumentError(f"{where}: shape {shape} of {dtype} does not match {len(data)} bytes.")
    return np.frombuffer(data, dtype).reshape(shape)


def _claim(record: Any, where: str) -> Claim:
    fields = _fields(
        record, where, template=str, value=float, direction=str, params=dict, data=list, delta=str,
        assumptions=list, witness=dict, producer=str,
    )  # fmt: skip
    fields.update(
        data=tuple(_of_type(item, str, f"{where}.data") for item in fields["data"]),
        assumptions=tuple(_of_type(item, str, f"{where}.assumptions") for item in fields["assumptions"]),
        delta=_probability(fields["delta"], f"{where}.delta"),
        witness=_arrays(fields["witness"], f"{where}.witness"),
    )
    fields["params"] = _renamed(fields["params"], partial(_called, where=f"{where}.params"))
    return Claim(_called(fields.pop("template"), where), **fields)


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


def _renamed(params: Mapping[str, Any], called: Callable[[str], str]) -> Mapping[str, Any]:
    """Return parameters in which `gap`, the claim that this one rests on, is called otherwise."""
    gap = params.get("gap")
    return {**params, "gap": called(gap)} if isinstance(gap, str) else params


def _not_applicable(record: Any) -> NotApplicable:
    fields = _fields(record, "not_applicable", template=str, reason=str)
    return NotApplicable(_called(fields["template"], "not_applicable"), fields["reason"])


def _data_reference(record: Any, where: str) -> DataReference:
    fields = _fields(record, where, digest=str, rows=int, columns=int, labels=(list, None))
    if fields["labels"] is not None:
        fields["labels"] = tuple(_of_type(item, str, f"{where}.labels") for item in fields["labels"])
    return DataReference(**fields)


def _time(record: Any) -> dict[str, Any]:
    fields = _fields(record, "time", name=str, kind=str, levels=list, written=list)
    for part in ("levels", "written"):
        fields[part] = [_of_type(item, str, f"time.{part}") for item in fields[part]]
    return fields


def _looks(record: Any) -> dict[str, Any]:
    fields = _fields(record, "looks", count=int, reserve=list, part=int, parts=int, units=int)
    rows = [_of_type(item, int, "looks.reserve") for item in fields["reserve"]]
    if min(fields["count"], fields["part"], fields["parts"], fields["units"], *rows) < 0:
        raise DocumentError("looks: numbers of looks and of rows are not negative.")
    return fields


def _unreported(record: Any) -> tuple[str, str]:
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


def _fields(record: Any, where: str, **types: Any) -> dict[str, Any]:
    """Return a copy of `record` if it has exactly these fields with these types."""
    _of_type(record, dict, where)
    if record.keys() != types.keys():
        missing, extra = sorted(types.keys() - record.keys()), sorted(record.keys() - types.keys())
        raise DocumentError(f"{where}: fields missing {missing}, unknown {[name[:40] for name in extra[:5]]}.")
    return {name: _of_type(record[name], kind, f"{where}.{name}") for name, kind in types.items()}


def _of_type(value: Any, kind: Any, where: str) -> Any:
    optional = isinstance(kind, tuple)
    wanted = kind[0] if optional else kind
    if (optional and value is None) or type(value) is wanted:
        return value
    if wanted is float and type(value) is int and abs(value) < 2**1023:
        return float(value)
    raise DocumentError(
        f"{where}: expected {wanted.__name__}{' or null' if optional else ''}, got {type(value).__name__}."
    )
