"""Model files: a fitted model and its certificate in one file, read without running anything that is in it.

A model file is a zip archive, uncompressed, with exactly these members:

    manifest.json         format, versions, and size and SHA-256 of every other member
    certificate.json      the certificate and its witnesses, if there is one (`claims.document`)
    model.json            the model's class, constructor parameters and members, and which array is which
    arrays/<n>.npy        its arrays

There is no pickle, and nothing beside what the fingerprint covers. A learner is built through one door
(`stored.restore`), which checks every array before a compiled loop sees it.
"""

import hashlib
import io
import json
import math
import re
import stat
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from assay import registry
from assay._typing import FileName, Json
from assay.checker.family import check_width
from assay.checker.record import Rejected
from assay.claims.claim import Certificate
from assay.claims.document import from_json, strict_json, to_json
from assay.claims.model import DTYPES, Storable, StoredModel, array_of, array_record, is_text
from assay.files import written_whole
from assay.stored import unfitted

FORMAT = "assay-model/2"
_MAX_BYTES = 2**32
_MAX_MEMBERS = 10_000
_MAX_NESTING = 200
_MEMBER = re.compile(r"manifest\.json|certificate\.json|model\.json|arrays/[0-9]{1,6}\.npy")


class ModelFileError(ValueError):
    """A file is not a model file, or is damaged, or holds something that model files may not hold."""


class Saved(NamedTuple):
    """What a model file holds."""

    model: Any
    certificate: Certificate | None


def save(model: object, path: FileName, certificate: Certificate | None = None) -> None:
    """Write a fitted model, and its certificate, to a file. An existing file is replaced in one step.

    What is written is the model's stored form: class, constructor parameters and the arrays of its family.
    """
    members = _model_members(model)
    if certificate is not None:
        members["certificate.json"] = to_json(certificate).encode()
    content = _zipped({"manifest.json": _manifest(members), **members})
    with written_whole(path) as part:
        part.write_bytes(content)


def load(path: FileName) -> Saved:
    """Return the model and certificate of a file; raise `ModelFileError` if the file is not sound.

    A sound file need not come from an honest source: what its certificate says is for `verify` to judge.
    """
    path = Path(path)
    try:
        members = _members(_file_bytes(path))
        _check_manifest(members)
        model = _model(members)
        certificate = from_json(members["certificate.json"]) if "certificate.json" in members else None
    except FileNotFoundError:
        raise
    except (
        Exception
    ) as error:  # whatever a forged file makes NumPy, zipfile or a reader raise is one thing to the caller
        raise ModelFileError(f"{path}: not a sound model file: {_one_line(error)}") from error
    return Saved(model, certificate)


def _file_bytes(path: Path) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("it is not a regular file.")
    if status.st_size > _MAX_BYTES:
        raise ModelFileError(f"{status.st_size} bytes are more than the {_MAX_BYTES} that a model file may have.")
    return path.read_bytes()


def _members(content: bytes) -> dict[str, bytes]:
    """Return the members of the archive by name, after looking at the directory alone."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        if len(names) != len(entries) or len(entries) > _MAX_MEMBERS:
            raise ModelFileError("members are repeated or too many.")
        for entry in entries:
            if not _MEMBER.fullmatch(entry.filename):
                raise ModelFileError(f"unexpected member {entry.filename[:80]!r}.")
            if (
                entry.compress_type != zipfile.ZIP_STORED
                or entry.flag_bits & 1
                or entry.file_size != entry.compress_size
            ):
                raise ModelFileError(f"member {entry.filename} is compressed or encrypted.")
            if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
                raise ModelFileError(f"member {entry.filename} is a link or device.")
        if sum(entry.file_size for entry in entries) > len(content):
            raise ModelFileError("members overlap or are larger than the file.")
        return {entry.filename: archive.read(entry) for entry in entries}


def _check_manifest(members: dict[str, bytes]) -> None:
    if "manifest.json" not in members:
        raise ModelFileError("there is no manifest.")
    manifest = strict_json(members["manifest.json"])
    fields = manifest if isinstance(manifest, dict) else {}
    if (version := fields.get("format")) != FORMAT:
        raise ModelFileError(f"its format is {str(version)[:40]!r}, and this version of Assay reads {FORMAT!r}.")
    if fields.get("members") != _digests(members):
        raise ModelFileError("the content does not match the manifest: the file was damaged or changed.")


def _manifest(members: dict[str, bytes]) -> bytes:
    import sklearn

    import assay

    versions = {"assay": assay.__version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    return json.dumps({"format": FORMAT, "written_with": versions, "members": _digests(members)}, indent=1).encode()


def _digests(members: dict[str, bytes]) -> dict[str, dict[str, int | str]]:
    return {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in members.items()
        if name != "manifest.json"
    }


def _zipped(members: dict[str, bytes]) -> bytes:
    """Return an uncompressed archive; the same members give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return content.getvalue()


def _model_members(model: object) -> dict[str, bytes]:
    """Return the record of a model and its arrays, numbered in the order in which the record names them."""
    if not isinstance(model, Storable):
        raise ModelFileError(
            f"save: a {type(model).__name__} is not a learner of Assay. Save the learner itself; what prepares its "
            "rows can be part of the file if `assay.learn` made it."
        )
    try:
        members: dict[str, bytes] = {"model.json": b""}
        stored = model.stored()
        check_width(stored, getattr(model, "n_features_in_", 1))
        record = _record(stored, members)
    except (ValueError, Rejected) as error:
        raise ModelFileError(
            f"save: {type(model).__name__} cannot be written to a model file: {_one_line(error)}"
        ) from error
    members["model.json"] = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
    return members


def _record(stored: StoredModel, members: dict[str, bytes]) -> dict[str, object]:
    """Return a stored model as JSON has it; its arrays of numbers go to `members`."""
    arrays: dict[str, object] = {}
    for name, array in stored.arrays.items():
        if is_text(array):
            arrays[name] = array_record(array)
            continue
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array), version=(1, 0), allow_pickle=False)
        arrays[name] = len(members)
        members[f"arrays/{len(members)}.npy"] = content.getvalue()
    return {
        "learner": stored.learner,
        "family": stored.family,
        "parameters": stored.parameters,
        "arrays": arrays,
        "members": [_record(member, members) for member in stored.members],
    }


def _model(members: dict[str, bytes]) -> Storable:
    """Build the model of a file: every learner through `restore`."""
    if "model.json" not in members:
        raise ModelFileError("there is no model in it.")
    unused = {name for name in members if name.startswith("arrays/")}
    stored = _stored(strict_json(members["model.json"], _MAX_NESTING), members, unused)
    if unused:
        raise ModelFileError(f"the array {min(unused)} belongs to nothing.")
    return built(stored)


def _stored(record: Json, members: dict[str, bytes], unused: set[str]) -> StoredModel:
    """Return the stored model of a record, each array used exactly once."""
    if not isinstance(record, dict) or record.keys() != {"learner", "family", "parameters", "arrays", "members"}:
        raise ModelFileError("the record of a model has other fields than it must have.")
    learner, family, parameters = record["learner"], record["family"], record["parameters"]
    places, inner = record["arrays"], record["members"]
    if not (
        isinstance(learner, str) and isinstance(family, str) and isinstance(parameters, dict)
        and isinstance(places, dict) and isinstance(inner, list)
    ):  # fmt: skip
        raise ModelFileError("a field of the record of a model has another type than it must have.")
    arrays = {}
    for name, place in places.items():
        if type(place) is not int:
            arrays[name] = array_of(place)
            continue
        file = f"arrays/{place}.npy"
        if file not in unused:
            raise ModelFileError(f"the array {name[:40]} is not there, or used twice.")
        unused.remove(file)
        arrays[name] = _array(file, members[file])
    return StoredModel(learner, family, parameters, arrays, tuple(_stored(member, members, unused) for member in inner))


def built(stored: StoredModel) -> Storable:
    """Return the fitted learner that a stored model describes."""
    members = [built(member) for member in stored.members]
    model: Storable = registry.find(stored.learner).restore(stored, members, _object)
    return model


def _object(plain: Json) -> object:
    """Return the parameter that a plain value describes: a learner that is not fitted, or a kernel."""
    if isinstance(plain, dict) and plain.keys() == {"learner", "parameters"}:
        learner, parameters = plain["learner"], plain["parameters"]
        if isinstance(learner, str) and isinstance(parameters, dict):
            return unfitted(registry.find(learner), parameters, _object)
    from assay.kernels import from_plain

    return from_plain(plain)


def _array(name: str, data: bytes) -> np.ndarray:
    """Return an array, stored row by row in the order of little ends; NumPy's own reader parses a header as code."""
    result = _NPY.match(data)
    if result is None or result.end() != 10 + int.from_bytes(data[8:10], "little"):
        raise ModelFileError(f"array {name} has another header than such arrays have.")
    shape = tuple(int(size) for size in result["shape"].replace(b",", b" ").split())
    dtype = np.dtype(result["dtype"].decode())
    if len(shape) > 4 or math.prod(shape) * dtype.itemsize != len(data) - result.end():
        raise ModelFileError(f"array {name} is not what its header says.")
    return np.frombuffer(data, dtype, offset=result.end()).reshape(shape).copy()


_TYPES = "|".join(map(re.escape, DTYPES)).encode()
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<dtype>" + _TYPES + rb")', 'fortran_order': False, "
    rb"'shape': \((?P<shape>|[0-9]{1,15},|[0-9]{1,15}(?:, [0-9]{1,15})+)\), \} *\n",
    re.DOTALL,
)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + "..."
