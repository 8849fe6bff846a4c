"""Single extremely randomised trees: at each node the best of one random threshold for each column drawn."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn import tree as scikit

from assay.card import Card
from assay.tree._spaces import OfAnySize
from assay.tree._trees import DecisionTreeClassifier, DecisionTreeRegressor


@dataclass(eq=False, repr=False)
class ExtraTreeClassifier(DecisionTreeClassifier):
    """An extremely randomised tree that predicts classes; `ExtraTreesClassifier` makes a forest of such.

    Parameters and attributes are those of `DecisionTreeClassifier`; `splitter` and `max_features` have other defaults.

    Examples
    --------
    >>> from assay.tree import ExtraTreeClassifier
    >>> ExtraTreeClassifier(random_state=0).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]).predict([[1.0], [4.0]])
    array([0, 1])
    """

    card = Card(
        name="Extremely randomised tree classifier",
        task="classify",
        model=OfAnySize("trees of any size"),
        strategy="impurity among random splits",
        algorithm="random columns and thresholds at each node",
        guarantee=("tree.facts", "tree.pruned", "occam", "vc", "rademacher.empirical"),
        input=("numbers", "nominal", "missing"),
        role="named",
    )

    _: KW_ONLY
    splitter: str = "random"
    max_features: Any = "sqrt"


@dataclass(eq=False, repr=False)
class ExtraTreeRegressor(DecisionTreeRegressor):
    """An extremely randomised tree that predicts numbers; `ExtraTreesRegressor` makes a forest of such.

    Parameters and attributes are those of `DecisionTreeRegressor`; `splitter` and `max_features` have other defaults.

    Examples
    --------
    >>> from assay.tree import ExtraTreeRegressor
    >>> ExtraTreeRegressor(random_state=0).fit([[1.0], [2.0], [3.0]], [1.0, 1.0, 4.0]).predict([[1.0], [9.0]])
    array([1., 4.])
    """

    card = Card(
        name="Extremely randomised tree regressor",
        task="regress",
        model=OfAnySize("trees of any size"),
        strategy="squared or absolute error, Friedman's or Poisson's criterion, among random splits",
        algorithm="random columns and thresholds at each node",
        guarantee=("tree.facts",),
        input=("numbers", "nominal", "missing"),
        role="named",
    )

    _: KW_ONLY
    splitter: str = "random"
    max_features: Any = 1.0


# Tools that ask for scikit-learn's classes read ours by `tree_`.
scikit.ExtraTreeClassifier.register(ExtraTreeClassifier)
scikit.ExtraTreeRegressor.register(ExtraTreeRegressor)
