"""Model files: a fitted model and its certificate in one file, read without running anything that is in it.

A model file is a zip archive, uncompressed, with exactly these members:

    manifest.json         format, versions, and size and SHA-256 of every other member
    certificate.json      the certificate and its witnesses, if there is one (`certificate.document`)
    model/schema.json     the fitted model as skops writes it
    model/<n>.npy         its arrays

There is no pickle. Before skops sees a file, every node of the schema is compared with the list of types that
a model file may hold, and every array's header with its size.
"""

import hashlib
import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from assay.certificate.claim import Certificate
from assay.certificate.document import from_json, strict_json, to_json
from assay.files import written_whole
from assay.registry import LEARNER_ROOMS, is_learner

FORMAT = "assay-model/1"
_MAX_BYTES = 2**32
_MAX_MEMBERS = 10_000
_MAX_NESTING = 200
_MEMBER = re.compile(r"manifest\.json|certificate\.json|model/schema\.json|model/[0-9]{1,6}\.npy")

_NUMBERS = {f"numpy.{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_NUMBERS |= {"numpy.float32", "numpy.float64", "numpy.bool", "numpy.bool_", "numpy.str_"}
_ALLOWED = {  # kind of node -> types it may stand for; objects are judged by `_may_be_object`
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple", "assay.fitlog.Step"},
    "SliceNode": {"builtins.slice"},
    "JsonNode": {"builtins.str"},
    "TypeNode": {"builtins.int", "builtins.float", "builtins.str", "builtins.bool", "builtins.object"} | _NUMBERS,
    "NdArrayNode": {"numpy.ndarray"} | _NUMBERS,
    "DTypeNode": {"numpy.dtype"},
}
_PLAIN_OBJECTS = {
    "assay.model_selection._folds.CrossValidated",
    "assay.learning.model.TableModel",
    "assay.data.columns.ColumnType",
    "assay.data.encoding.Encoding",
}
# Transformers that are plain NumPy; a forged tree or index could make compiled code read wild memory.
_SKLEARN = r"sklearn\.(pipeline|compose\._\w+|preprocessing\._\w+|impute\._base|decomposition\._pca)"
_LEARNERS = rf"assay\.({'|'.join(LEARNER_ROOMS)})(\.\w+)*"


class ModelFileError(ValueError):
    """A file is not a model file, or is damaged, or holds something that model files may not hold."""


class Saved(NamedTuple):
    """What a model file holds."""

    model: Any
    certificate: Certificate | None


def save(model: Any, path: str | os.PathLike[str], certificate: Certificate | None = None) -> None:
    """Write a fitted model, and its certificate, to a file. An existing file is replaced in one step.

    The model may be a learner, or scikit-learn's Pipeline or ColumnTransformer of learners and transformers.
    """
    members = _model_members(model)
    if certificate is not None:
        members["certificate.json"] = to_json(certificate).encode()
    content = _zipped({"manifest.json": _manifest(members), **members})
    with written_whole(path) as part:
        part.write_bytes(content)


def load(path: str | os.PathLike[str]) -> Saved:
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
    except Exception as error:  # whatever a forged file makes NumPy, zipfile or skops raise is one thing to the caller
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
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise ModelFileError(f"its format is {str(found)[:40]!r}, and this version of Assay reads {FORMAT!r}.")
    if manifest.get("members") != _digests(members):
        raise ModelFileError("the content does not match the manifest: the file was damaged or changed.")


def _manifest(members: dict[str, bytes]) -> bytes:
    import sklearn

    import assay

    versions = {"assay": assay.__version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    return json.dumps({"format": FORMAT, "written_with": versions, "members": _digests(members)}, indent=1).encode()


def _digests(members: dict[str, bytes]) -> dict[str, Any]:
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


def _model_members(model: Any) -> dict[str, bytes]:
    """Return schema and arrays of a model as skops writes them, with names that do not depend on the run."""
    import skops.io

    try:
        written = skops.io.dumps(model)
    except Exception as error:
        raise ModelFileError(
            f"save: {type(model).__name__} cannot be written to a model file: {_one_line(error)}"
        ) from error
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        schema = json.loads(archive.read("schema.json"))
        _audit(schema)
        numbers: dict[int, int] = {}
        members = {"model/schema.json": b""}
        for node in _nodes(schema):
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
            if "file" in node:
                name = f"{node['__id__']}.npy"
                members[f"model/{name}"], node["file"] = archive.read(node["file"]), name
        members["model/schema.json"] = json.dumps(schema, separators=(",", ":")).encode()
    return members


def _model(members: dict[str, bytes]) -> Any:
    """Build the model of audited members."""
    import skops.io

    parts = {name.removeprefix("model/"): data for name, data in members.items() if name.startswith("model/")}
    if "schema.json" not in parts:
        raise ModelFileError("there is no model in it.")
    schema = strict_json(parts["schema.json"], _MAX_NESTING)
    trusted = _audit(schema)
    for name, data in parts.items():
        if name.endswith(".npy"):
            _check_array(name, data)
    return skops.io.loads(_zipped(parts), trusted=sorted(trusted))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every node of a skops schema: every object that names a loader."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _audit(schema: Any) -> set[str]:
    """Return the types that a schema wants to build, all of them known; refuse any other."""
    wanted = set()
    for node in _nodes(schema):
        kind, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if name not in _ALLOWED.get(kind, ()) and not (kind == "ObjectNode" and _may_be_object(name)):
            raise ModelFileError(
                f"it holds {name[:80]} ({str(kind)[:40]}), which model files may not hold: they hold Assay's "
                "learners, scikit-learn's transformers, arrays, numbers and text."
            )
        if kind == "JsonNode" and node["content"][:1] in ("", "[", "{"):
            raise ModelFileError("a plain value in it is neither a number nor text.")
        wanted.add(name)
    return wanted


def _may_be_object(name: str) -> bool:
    """Tell whether a class is a learner, or one of the scikit-learn transformers that a file may hold."""
    if name in _PLAIN_OBJECTS:
        return True
    module, _, kind = name.rpartition(".")
    if not re.fullmatch(f"{_LEARNERS}|{_SKLEARN}", module):
        return False
    found = getattr(import_module(module), kind, None)
    if module.startswith("assay."):
        return is_learner(found)
    return isinstance(found, type) and issubclass(found, BaseEstimator) and found.__module__ == module


def _check_array(name: str, data: bytes) -> None:
    """Refuse an array whose header promises another number of bytes than there are, or objects."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ModelFileError(f"array {name} has the unknown format {version}.")
    shape, _, dtype = readers[version](file)
    if dtype.kind not in "fiubU" or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ModelFileError(f"array {name} is not what its header says.")


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + "..."
