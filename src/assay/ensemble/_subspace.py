"""Random subspaces: bagging of columns instead of rows (Ho, IEEE PAMI 20, 1998)."""

from typing import Any

from assay.card import Card
from assay.ensemble._bagging import BaggingClassifier, BaggingRegressor
from assay.tree._spaces import OfAnySize


class RandomSubspaceClassifier(BaggingClassifier):
    """Votes of one kind of classifier, each member fitted to all rows and to its own `max_features` columns.

    The parameters and attributes are those of `BaggingClassifier`.

    >>> from sklearn.datasets import load_iris
    >>> from assay.ensemble import RandomSubspaceClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomSubspaceClassifier(n_estimators=3, random_state=0).fit(X, y)
    >>> [len(columns) for columns in model.estimators_features_]
    [2, 2, 2]
    """

    card = Card(
        name="Random subspace classifier",
        task="classify",
        ensemble="parallel",
        model=OfAnySize("votes of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on random columns, members on threads",
        guarantee=(),
        role="sample",
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: Any = 0.5,
        voting: str = "soft",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            estimator,
            n_estimators,
            max_features=max_features,
            bootstrap=False,
            voting=voting,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class RandomSubspaceRegressor(BaggingRegressor):
    """Mean of one kind of regressor, each member fitted to all rows and to its own `max_features` columns.

    >>> from assay.ensemble import RandomSubspaceRegressor
    >>> model = RandomSubspaceRegressor(n_estimators=4, max_features=1.0).fit([[1.0, 0.0], [2.0, 1.0]], [3.0, 4.0])
    >>> model.predict([[1.0, 0.0]])
    array([3.])
    """

    card = Card(
        name="Random subspace regressor",
        task="regress",
        ensemble="parallel",
        model=OfAnySize("means of any number of members"),
        strategy="that of the base learner; averaging",
        algorithm="base learner on random columns, members on threads",
        guarantee=(),
        role="sample",
    )

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_features: Any = 0.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            estimator,
            n_estimators,
            max_features=max_features,
            bootstrap=False,
            random_state=random_state,
            n_jobs=n_jobs,
        )
