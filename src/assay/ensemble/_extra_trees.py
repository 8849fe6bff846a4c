"""Extremely randomised trees: forests whose nodes draw their thresholds (Geurts, Ernst and Wehenkel 2006)."""

from dataclasses import KW_ONLY, dataclass

import sklearn.ensemble as scikit

from assay.card import Card, Range, log
from assay.ensemble._forest import ForestClassifier, ForestRegressor
from assay.tree._spaces import OfAnySize


@dataclass(eq=False, repr=False)
class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomised trees: all rows, and at each node one random threshold for each of the columns drawn.

    Parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import ExtraTreesClassifier
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]
    >>> ExtraTreesClassifier(10, random_state=0).fit(X, y).predict([[1.0], [4.0]])
    array([0, 1])
    """

    extra = True
    card = Card(
        name="Extremely randomised trees classifier",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of trees of any size"),
        strategy="Gini or entropy among random splits; averaging",
        algorithm="random columns and thresholds at each node, trees on threads",
        guarantee=("pac-bayes.vote",),
        input=("numbers", "nominal", "missing"),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
        first=10,
    )

    _: KW_ONLY
    bootstrap: bool = False
    max_bins: int | None = None


@dataclass(eq=False, repr=False)
class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomised regression trees; parameters as `RandomForestClassifier`.

    >>> from assay.ensemble import ExtraTreesRegressor
    >>> ExtraTreesRegressor(5, random_state=0).fit([[1.0], [2.0]], [3.0, 4.0]).predict([[1.0], [2.0]])
    array([3., 4.])
    """

    extra = True
    card = Card(
        name="Extremely randomised trees regressor",
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of trees of any size"),
        strategy="squared error among random splits; averaging",
        algorithm="random columns and thresholds at each node, trees on threads",
        guarantee=(),
        search={"max_features": Range(0.1, 1.0), "min_samples_leaf": log(1, 20, whole=True)},
        first=8,
    )

    _: KW_ONLY
    bootstrap: bool = False
    max_bins: int | None = None


scikit.ExtraTreesClassifier.register(ExtraTreesClassifier)
scikit.ExtraTreesRegressor.register(ExtraTreesRegressor)
