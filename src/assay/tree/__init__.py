"""Decision trees: ID3, C4.5, CART; nominal columns, missing values, pruning; rules for people."""

from assay.borrowed import borrowed
from assay.tree._classes import (
    C45,
    CART,
    ID3,
    ColumnScore,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    column_scores,
)
from assay.tree._oblique import ObliqueTreeClassifier
from assay.tree.growth._nominal import impurity

__all__ = [
    "C45",
    "CART",
    "ID3",
    "ColumnScore",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "ObliqueTreeClassifier",
    "column_scores",
    "impurity",
]

__getattr__, __dir__ = borrowed(__name__, __all__)
