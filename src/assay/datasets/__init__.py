"""Small tables that come with Assay (`credit`, invented; see `make_credit`) and with scikit-learn."""

from importlib.resources import as_file, files

from assay import data
from assay.borrowed import borrowed
from assay.data.columns import Column, ColumnType
from assay.data.table import Table
from assay.datasets.worked import VEHICLE_COLUMNS, film_review, programmers, vehicles

__all__ = ["TARGETS", "VEHICLE_COLUMNS", "film_review", "load", "names", "programmers", "vehicles"]

__getattr__, __dir__ = borrowed(__name__, __all__)

TARGETS = {
    "credit": "default",
    "iris": "species",
    "wine": "cultivar",
    "breast_cancer": "diagnosis",
    "digits": "digit",
    "diabetes": "progression",
}
"""The tables, and the column of each that is meant to be predicted."""


def names() -> list[str]:
    """Return the names that `load` knows.

    Returns
    -------
    list of str
        The names.
    """
    return list(TARGETS)


def load(name: str) -> Table:
    """Return the table of this name; `TARGETS[name]` is its target.

    Parameters
    ----------
    name : str
        Name of the table.

    Returns
    -------
    Table
        The table.

    Examples
    --------
    >>> load("iris").column("species").type.levels
    ('setosa', 'versicolor', 'virginica')
    """
    if name not in TARGETS:
        raise ValueError(f"there is no bundled table {name!r}; the names are {', '.join(TARGETS)}.")
    if name == "credit":
        with as_file(files(__name__) / "credit.csv") as path:
            return data.read(path, ordered={"history": ["poor", "fair", "good"]})
    return _from_sklearn(name)


def _from_sklearn(name: str) -> Table:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    columns = [
        Column(ColumnType(str(feature), "numeric"), values.copy())
        for feature, values in zip(bunch.feature_names, bunch.data.T, strict=True)
    ]
    levels = tuple(str(level) for level in bunch.get("target_names", ()))
    target = ColumnType(TARGETS[name], "nominal" if levels else "numeric", levels)
    return Table([*columns, Column(target, bunch.target.astype(float))])
