"""Fitted models as Python source without dependencies: for places where nothing can be installed.

The source has the model's numbers as literals, the functions that its predictor needs, and `predict(row)`.
"""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from assay.checker.family import find, stored_form
from assay.checker.rules.members import BOOSTED, COUNTS, LEAVES, LOGISTIC, SHARES
from assay.claims.model import StoredModel
from assay.data.columns import LARGEST
from assay.data.encoding import Encoding, Words
from assay.ensemble._combined import LINKS, probability_link
from assay.files import written_whole

MOST_NUMBERS = 200_000
"""How many numbers a model may store: source of more of them is slow to read and to import."""


def python_source(model: Any) -> str:
    """Return a fitted model as Python source that needs the standard library alone.

    The source has `predict(row)`, which returns a label or a number, and, if probabilities follow from the scores,
    `predict_proba(row)`, those of `CLASSES`. A row of a learner is a sequence of numbers. A row of a model of a table
    is a dict of its columns: numbers (None or NaN is a missing value), dates as seconds since 1970, categories as text
    (None or "" is a missing value).

    Parameters
    ----------
    model : fitted learner or model of a table
        Linear and generalised linear models, linear discriminants, trees, forests and boosting of at most
        200,000 numbers; others are refused.

    Returns
    -------
    str
        The source; it names the fingerprint of the model, which a certificate is about.

    Examples
    --------
    >>> from assay.linear_model import Ridge
    >>> source = python_source(Ridge(alpha=1e-9).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]))
    >>> names = {}
    >>> exec(source, names)
    >>> round(names["predict"]([3.0]), 6)
    7.0
    """
    encoding = getattr(model, "encoding", None)
    learner = model if encoding is None else model.learner
    stored = stored_form(learner)
    if sum(array.size for array in stored.arrays.values()) > MOST_NUMBERS or stored.members:
        raise ValueError(f"Python source is for models of one learner and at most {MOST_NUMBERS:,} numbers.")
    width, scores = _scores(stored)
    row = f"a sequence of {int(learner.n_features_in_)} numbers" if encoding is None else "a dict of columns"
    parts = [
        f'"""Predictions of a model of Assay: {stored.learner}.\n\nmodel: {stored_form(model).digest()}\n"""\n',
        "import math\n",
        _ROW_OF_NUMBERS if encoding is None else _encoding(encoding),
        scores,
        _decision(learner, stored, width, row),
    ]
    return "\n".join(parts)


def save_python(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model as Python source; see `python_source`.

    Parameters
    ----------
    model : learner
        Fitted model, or that of a study.
    path : str or path
        File to write.
    """
    source = python_source(model)
    with written_whole(Path(path)) as part:
        part.write_text(source, encoding="utf-8")


def _literal(name: str, values: list[Any]) -> str:
    """Return the assignment of a list, an entry a line."""
    lines = "".join(f"    {_text(value)},\n" for value in values)
    return f"{name} = [\n{lines}]\n"


def _text(value: Any) -> str:
    """Return the source of a value; infinities and NaN have no literal."""
    if isinstance(value, float) and not np.isfinite(value):
        return f"math.{value}" if value > 0 or value != value else "-math.inf"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))},)"
    return repr(value)


# Rows -----------------------------------------------------------------------------------------------------------------

_ROW_OF_NUMBERS = """
def encoded(row):
    return [float(value) for value in row]
"""

_TABLE = f"""
def number(value):
    x = math.nan if value is None else float(value)
    if abs(x) > {LARGEST!r}:
        return math.nan
    return 0.0 if abs(x) < {1 / LARGEST!r} else x


def level(value, levels, other):
    if value is None or value == "":
        return math.nan
    return float(levels.get(str(value), other))


def scaled(x, fill, mean, scale):
    x = ((fill if math.isnan(x) else x) - mean) / scale
    if abs(x) > {LARGEST!r}:
        return (fill - mean) / scale
    return 0.0 if abs(x) < {1 / LARGEST!r} else x


def encoded(row):
    raw = [number(row.get(name)) if levels is None else level(row.get(name), levels, other)
           for name, levels, other in COLUMNS]
    raw += [date_part(raw[place], name) for place, name in DATE_PARTS]
    x = [math.nan if raw[place] >= limit else raw[place] for place, limit in KEPT]
    x += [scaled(raw[place], *numbers) for place, *numbers in NUMBERS]
    x += [(math.isnan(raw[place]) - mean) / scale for place, mean, scale in MISSING]
    for place, slots in LEVELS:
        slot = slots[-1] if math.isnan(raw[place]) else slots[int(raw[place])]
        x += [float(slot == k) for k in range(max(slots) + 1)]
    return x
"""

_DATES = """
def date_part(seconds, name):
    if math.isnan(seconds):
        return math.nan
    days = math.floor(seconds / 86400)
    if name == "elapsed days":
        return seconds / 86400
    if name == "weekday":
        return float((days + 3) % 7)
    if name == "hour":
        return float((seconds - 86400 * days) // 3600)
    era, day = divmod(days + 719468, 146097)  # 400 years that begin in March
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    if name == "day":
        return float(day - (153 * month + 2) // 5 + 1)
    if name == "month":
        return float(month - 9 if month >= 10 else month + 3)
    return float(400 * era + year + (month >= 10))
"""


def _encoding(encoding: Encoding) -> str:
    text = [part.type.name for part in encoding.parts if isinstance(part, Words)]
    if text:
        raise ValueError(f"the column {text[0]!r} holds free text, which Python source cannot read; drop it.")
    arrays = encoding.arrays()
    columns: list[tuple[str, Any, Any]] = []
    for column in (part.type for part in encoding.parts):
        levels = {name: code for code, name in enumerate(column.levels)} if column.levels else None
        columns.append((column.name, levels, float(len(column.levels)) if column.kind == "nominal" else np.nan))
    lists: dict[str, list[Any]] = {
        "COLUMNS": columns,
        "DATE_PARTS": [(int(place), str(name)) for place, name in arrays.dates],
        "KEPT": _rows(arrays.kept, arrays.kept_levels),
        "NUMBERS": _rows(arrays.numbers, arrays.fill, arrays.mean, arrays.scale),
        "MISSING": _rows(arrays.gaps, arrays.gap_mean, arrays.gap_scale),
        "LEVELS": [
            (int(place), arrays.slots[start:stop].astype(int).tolist())
            for place, start, stop in zip(arrays.nominal, arrays.starts[:-1], arrays.starts[1:])
        ],
    }
    return "".join(_literal(name, value) for name, value in lists.items()) + "\n" + _DATES + "\n" + _TABLE


def _rows(places: Any, *numbers: Any) -> list[tuple[Any, ...]]:
    return [(int(place), *map(float, row)) for place, *row in zip(places, *numbers)]


# Scores ---------------------------------------------------------------------------------------------------------------

_LINEAR = """
def scores(x):
    return [math.fsum(w * value for w, value in zip(weights, x)) + b for weights, b in zip(WEIGHTS, INTERCEPT)]
"""

_INVERSE_LINKS = {
    "identity": "[{0}]", "log": "[math.exp({0})]", "logit": "[logistic({0})]", "inverse": "[1 / {0}]",
}  # fmt: skip

_TREES = """
def leaf(x, node):
    while len(NODES[node]) == 4:
        column, test, child, missing = NODES[node]
        value = x[column]
        if math.isnan(value):
            node = child + missing
        elif isinstance(test, list):
            node = child + test[int(value)]
        else:
            node = child + (value > test)
    return NODES[node][0]
"""

_MEAN = """
def scores(x):
    leaves = [leaf(x, root) for root in ROOTS]
    return [math.fsum(column) / len(leaves) for column in zip(*leaves)]
"""

_SUM = """
def scores(x):
    leaves = [leaf(x, root)[0] for root in ROOTS]
    return [base + math.fsum(leaves[k :: len(BASE)]) for k, base in enumerate(BASE)]
"""

_WEIGHTED_VOTE = """
def scores(x):
    votes = [0.0] * len(CLASSES)
    for root, weight in zip(ROOTS, WEIGHTS):
        values = leaf(x, root)
        votes[values.index(max(values))] += weight
    return votes
"""

_MEDIAN = """
def scores(x):
    total = 0
    for value, weight in sorted((leaf(x, root)[0], weight) for root, weight in zip(ROOTS, WEIGHTS)):
        total += weight
        if total >= sum(WEIGHTS) / 2:
            return [value]
"""


def _scores(model: StoredModel) -> tuple[int, str]:
    """Return how many scores a row has, and the source that computes them."""
    family, _, kind = model.family.partition(".")
    if family == "trees":
        return _tree_scores(model, kind)
    if family not in ("linear", "glm") and model.family != "discriminant.linear":
        raise ValueError(f"models of the family {model.family} cannot be written as Python source; export to ONNX.")
    coef = np.atleast_2d(model.arrays["coef_"]).astype(float)
    intercept = np.broadcast_to(np.atleast_1d(model.arrays["intercept_"]).astype(float), len(coef))
    numbers = _literal("WEIGHTS", coef.tolist()) + _literal("INTERCEPT", intercept.tolist())
    if family != "glm":
        return len(coef), numbers + "\n" + _LINEAR
    if kind not in _INVERSE_LINKS:
        raise ValueError(f"models with the {kind} link cannot be written as Python source.")
    linear = _LINEAR.replace("scores", "linear")
    inverse = _INVERSE_LINKS[kind].format("linear(x)[0]")
    return 1, f"{numbers}\n{linear}\n{_LOGISTIC}\n\ndef scores(x):\n    return {inverse}\n"


def _tree_scores(model: StoredModel, kind: str) -> tuple[int, str]:
    arrays = model.arrays
    value = np.atleast_2d(arrays["node_value_"].T).T.astype(float)
    numbers = _literal("ROOTS", arrays["tree_root_"].tolist()) + _literal("NODES", _nodes(arrays, value))
    if kind in ("classifier", "regressor", "vote", "mean"):
        return value.shape[1], f"{numbers}\n{_TREES}\n{_MEAN}"
    if kind in ("sum-classifier", "sum-regressor", "sum-exponential"):
        base = np.atleast_1d(arrays["base_score_"]).astype(float)
        numbers, summed = numbers + _literal("BASE", base.tolist()), _SUM
        if kind == "sum-exponential":
            summed = _SUM.replace("scores", "total") + "\n\ndef scores(x):\n    return [math.exp(total(x)[0])]\n"
        return len(base), f"{numbers}\n{_TREES}\n{summed}"
    if kind == "weighted-vote":
        weights = arrays["estimator_weights_"].astype(float).tolist()
        return value.shape[1], f"{numbers}{_literal('WEIGHTS', weights)}\n{_TREES}\n{_WEIGHTED_VOTE}"
    if kind == "median":
        weights = arrays["estimator_weights_"]
        units = np.rint(weights / weights.max() * 2.0**30).astype(int).tolist()
        return 1, f"{numbers}{_literal('WEIGHTS', units)}\n{_TREES}\n{_MEDIAN}"
    raise ValueError(f"models of the family {model.family} cannot be written as Python source; export to ONNX.")


def _nodes(arrays: Any, value: np.ndarray) -> list[Any]:
    """Return a node as (column, threshold or branch of each level, first child, child for missing values), and a leaf
    as its values alone."""
    child, missing, table = arrays["node_child_"], arrays["node_missing_"], arrays["node_table_"]
    if len(arrays["column_types_"]) and np.any(missing[child >= 0] < 0):
        raise ValueError("the tree sends rows with missing values down several branches; export is not possible.")
    tests: list[Any] = arrays["node_threshold_"].astype(float).tolist()
    for node in np.flatnonzero(table >= 0).tolist():
        branches = arrays["branch_tables_"][table[node]]
        tests[node] = np.where(branches < 0, branches.max(), branches).astype(int).tolist()
    return [
        (int(column), test, int(first), max(int(gap), 0)) if first >= 0 else (leaf,)
        for column, test, first, gap, leaf in zip(arrays["node_column_"], tests, child, missing, value.tolist())
    ]


# Predictions ----------------------------------------------------------------------------------------------------------

_LOGISTIC = """
def logistic(t):
    return 1 / (1 + math.exp(-t)) if t >= 0 else math.exp(t) / (1 + math.exp(t))
"""

_NUMBER = '''
def predict(row):
    """Return the prediction for ROW."""
    return scores(encoded(row))[0]
'''

_LABEL = '''
def predict(row):
    """Return the label of ROW."""
    values = scores(encoded(row))
    return CLASSES[int(values[0] > 0)] if len(values) == 1 else CLASSES[values.index(max(values))]
'''

_PROBABILITIES = '''
def predict_proba(row):
    """Return the probability of each of CLASSES for ROW."""
    values = scores(encoded(row))
'''

_OF_LINK = {
    LEAVES: "    return values\n",
    SHARES: "    return values\n",
    COUNTS: "    total = sum(values)\n    return [value / total if total > 0 else 0.0 for value in values]\n",
    LOGISTIC: "    return softmax(values)\n",
    BOOSTED: (
        "    total, k = sum(values), len(values)\n"
        "    return softmax([value / total * k / (k - 1) ** 2 if total > 0 else 0.0 for value in values])\n"
    ),
}

_SOFTMAX = """
def softmax(values):
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]
"""


def exported_link(learner: Any, model: StoredModel) -> int:
    """Return the link by which a learner's probabilities follow from its scores; -1 if there is none."""
    link = probability_link(learner)
    if link < 0 and len(model.arrays.get("column_types_", ())) and learner.probabilities_of_family:
        return next((LINKS[name] for name in find(model.family)[1].probabilities), -1)  # levels cannot be probed
    return link


def _decision(learner: Any, model: StoredModel, width: int, row: str) -> str:
    """Return the source of `predict`, and of `predict_proba` where probabilities follow from the scores."""
    if not find(model.family)[1].classes:
        return _NUMBER.replace("ROW", row)
    labels = _literal("CLASSES", model.arrays["classes_"].tolist()) + "\n" + _LABEL.replace("ROW", row)
    link, proba = exported_link(learner, model), _PROBABILITIES.replace("ROW", row)
    if link not in _OF_LINK:
        return labels
    if width > 1:
        return f"{labels}\n{_SOFTMAX}\n{proba}{_OF_LINK[link]}"
    if link == LOGISTIC:
        return f"{labels}\n{_LOGISTIC}\n{proba}    p = logistic(values[0])\n    return [1 - p, p]\n"
    return f"{labels}\n{proba}    return [1 - values[0], values[0]]\n"
