"""A study as code: the Python script, the command line and the notebook that run it again."""

import json
import shlex
from typing import Any

from assay.studio.workspace import Run


def command(run: Run) -> str:
    """Return the command line of a study.

    What the form left empty is left out, as the defaults are those of `assay learn`.
    """
    words = ["assay", "learn", _source(run), "--target", run.target]
    nominal, ordered, drop = _kinds(run)
    options = {
        "--nominal": ",".join(nominal),
        "--drop": ",".join(drop),
        **{name: value for name, value in _options(run).items() if not isinstance(value, list)},
        "--learners": ",".join(run.asked.get("learners") or []),
    }
    for name, value in options.items():
        option = name if name.startswith("--") else f"--{name}"
        words += [option, f"{value:g}" if isinstance(value, float) else str(value)] if value not in ("", None) else []
    for column, levels in ordered.items():
        words += ["--ordered", f"{column}={','.join(levels)}"]
    return shlex.join(words)


def script(run: Run) -> str:
    """Return a Python script that runs a study again."""
    nominal, ordered, drop = _kinds(run)
    read = {"nominal": nominal, "ordered": ordered, "drop": drop}
    corrections = "".join(f", {name}={value!r}" for name, value in read.items() if value)
    source = repr(_source(run)) if "bundled" not in run.table.source else f"assay.datasets.load({_source(run)!r})"
    arguments = "".join(f", {name}={value!r}" for name, value in _options(run).items())
    return f"""import assay
from assay.data import raw_table

table = raw_table({source}{corrections})
study = assay.learn(table, {run.target!r}{arguments})
print(study)
print(study.certificate)
study.save("model.assay")
"""


def notebook(run: Run) -> str:
    """Return a Jupyter notebook that runs a study again, and reads its certificate."""
    texts = (
        ("markdown", f"# {run.record.name}\n\n{run.record.note}".rstrip()),
        ("code", script(run).replace("print(study)\nprint(study.certificate)\n", "").rstrip() + "\nstudy"),
        ("code", "study.certificate"),
        ("code", 'model, certificate = assay.load("model.assay")\nmodel'),
    )
    cells = [_cell(i, kind, text) for i, (kind, text) in enumerate(texts)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    more: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text, **more}


def _source(run: Run) -> str:
    """Return the table as a person would name it: what was uploaded goes by its own name."""
    source = run.table.source
    if "bundled" in source:
        return source["bundled"]
    return run.table.name if run.uploaded else source.get("file", run.table.name)


def _options(run: Run) -> dict[str, Any]:
    return {name: value for name, value in run.asked.items() if value not in (None, "", [])}


def _kinds(run: Run) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """Return the columns that a person called nominal, ordered, or left out."""
    nominal, drop = ([name for name, kind in run.kinds.items() if kind == word] for word in ("nominal", "out"))
    return nominal, {name: kind for name, kind in run.kinds.items() if isinstance(kind, list)}, drop
