"""Quinlan's and Breiman's trees: the parameters that make a decision tree theirs."""

from typing import Any

from assay.tree._trees import DecisionTreeClassifier


class ID3(DecisionTreeClassifier):
    """Quinlan's ID3: information gain, a branch for each level of a nominal column, no pruning.

    >>> from assay.tree import ID3
    >>> import pandas as pd
    >>> print(ID3().fit(pd.DataFrame({"sky": ["clear", "cloud", "clear"]}), [1, 0, 1]).to_text())
    sky = clear: 1 (2)
    sky = cloud: 0 (1)
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        pruning: str | None = None,
        validation_fraction: float = 0.3,
        prune_ties: bool = False,
        missing: str = "fractional",
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gain",
            split="multiway",
            missing=missing,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            validation_fraction=validation_fraction,
            prune_ties=prune_ties,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class C45(DecisionTreeClassifier):
    """Quinlan's C4.5: gain ratio among columns of at least average gain, fractional missing values,
    pessimistic pruning.

    `min_samples_leaf` is the weight that at least two branches must have (2 in C4.5).

    >>> from assay.tree import C45
    >>> model = C45().fit([[1.0], [2.0], [3.0], [4.0], [None]], ["no", "no", "yes", "yes", "yes"])
    >>> model.predict([[0.0], [9.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 2,
        pruning: str | None = "pessimistic",
        confidence: float = 0.25,
        validation_fraction: float = 0.3,
        prune_ties: bool = False,
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gain_ratio",
            split="multiway",
            missing="fractional",
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            confidence=confidence,
            validation_fraction=validation_fraction,
            prune_ties=prune_ties,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )


class CART(DecisionTreeClassifier):
    """Breiman's CART: Gini, two branches, cost-complexity pruning with alpha chosen by cross-validation.

    >>> from sklearn.datasets import load_iris
    >>> from assay.tree import CART
    >>> CART().fit(*load_iris(return_X_y=True)).get_n_leaves()
    5
    """

    def __init__(
        self,
        *,
        max_depth: int | None = None,
        min_samples_split: Any = 2,
        min_samples_leaf: Any = 1,
        pruning: str | None = "cost_complexity",
        missing: str = "direction",
        nominal: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            criterion="gini",
            split="binary",
            missing=missing,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            pruning=pruning,
            nominal=nominal,
            random_state=random_state,
            n_jobs=n_jobs,
        )
