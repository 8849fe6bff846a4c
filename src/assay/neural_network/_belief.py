"""Deep belief networks: restricted Boltzmann machines on top of each other, trained one layer after the other.

The first machine learns the rows, the next one the chances of its hidden units, and so on (Hinton, Osindero and Teh
2006). The weights are a starting point for a feed-forward network with the same layers of logistic units, which
`classifier` then trains with labels: the rows without labels have shaped its features.

Claims: the chances of the last layer, recomputed by the checker for any row; what the single machines prove is theirs
        (`machines_`).
Method: `BernoulliRBM` for each layer.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from assay.base import Diagram, Learner, fit_log, read_rows, require_finite
from assay.card import Card
from assay.neural_network._multilayer_perceptron import MLPClassifier
from assay.neural_network._network import unpack
from assay.neural_network._rbm import BernoulliRBM, Machines
from assay.params import Count, Flag, Positive, check, refuse


@dataclass(eq=False, repr=False)
class DeepBeliefNetwork(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):
    """A stack of restricted Boltzmann machines.

    Parameters
    ----------
    layers : sequence of int
        Hidden units of each machine.
    learning_rate, batch_size, n_iter, k, persistent
        Of each machine, see `BernoulliRBM`.
    random_state : int, RandomState or None
    n_jobs : int or None
        Has no effect on the machines, which are trained one after the other.

    Attributes
    ----------
    machines_ : list of BernoulliRBM

    Examples
    --------
    >>> import numpy as np
    >>> from assay.neural_network import DeepBeliefNetwork
    >>> X = np.random.default_rng(0).integers(0, 2, size=(60, 6))
    >>> stack = DeepBeliefNetwork((8, 4), random_state=0).fit(X)
    >>> stack.transform(X).shape
    (60, 4)
    >>> net = stack.classifier(X, X[:, 0] ^ X[:, 1], max_iter=300, learning_rate_init=0.02)
    >>> net.n_layers_
    4
    """

    family = "rbm.stack"
    figure = "network"
    card = Card(
        name="Deep belief network",
        task="transform",
        model=Machines(),
        strategy="likelihood of the rows, layer by layer",
        algorithm="contrastive divergence or persistent chains for each layer, greedily",
        guarantee=(),
    )
    constraints: ClassVar = {
        "learning_rate": Positive(),
        "batch_size": Count(),
        "n_iter": Count(),
        "k": Count(),
        "persistent": Flag,
    }

    layers: Any = (64, 32)
    _: KW_ONLY
    learning_rate: float = 0.1
    batch_size: int = 10
    n_iter: int = 10
    k: int = 1
    persistent: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    def diagram(self) -> Diagram:
        """Return the layers that a diagram shows."""
        names = [f"hidden {k + 1}" for k in range(len(self.machines_))]
        return Diagram([machine.components_.T for machine in self.machines_], ["visible", *names])

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "DeepBeliefNetwork":
        """Train a machine for each layer on rows X; y is not used."""
        check(self)
        sizes = self._sizes()
        rows = read_rows(self, X, None)
        require_finite(rows, self)
        data = np.concatenate([block.X for block in rows.blocks()])
        random = check_random_state(self.random_state)
        machines: list[BernoulliRBM] = []
        options = {name: getattr(self, name) for name in ("learning_rate", "batch_size", "n_iter", "k", "persistent")}
        with fit_log(self, len(sizes), X, None) as log:
            for size in sizes:
                seed = int(random.randint(2**31 - 1))
                machine = BernoulliRBM(size, random_state=seed, **options)
                if not log.stopped:
                    machine.fit(data)
                else:  # the layers above stand as they begin
                    machine.partial_fit(data[: self.batch_size])
                machines.append(machine)
                data = machine.transform(data)
                self.machines_ = machines
                told = machine.history_[-1].objective if machine.history_ else math.inf
                log.step(told, 0.0, machines_=list(machines))
                log.stopped |= len(machine.history_) < self.n_iter
        return self

    def _sizes(self) -> list[int]:
        given = self.layers
        fits = isinstance(given, (tuple, list, np.ndarray)) and len(given) > 0
        if not fits or not all(isinstance(size, Integral) and int(size) >= 1 for size in given):
            raise refuse(self, f"layers must be numbers of hidden units >= 1, one for each machine; got {given!r}.")
        return [int(size) for size in given]

    @property
    def _n_features_out(self) -> int:
        return len(self.machines_[-1].components_)

    def transform(self, X: Any) -> np.ndarray:
        """Return the chances of the hidden units of the last layer, (n, units)."""
        check_is_fitted(self)
        values = validate_data(self, X, reset=False, dtype=np.float64)
        for machine in self.machines_:
            values = machine.transform(values)
        return values

    def classifier(self, X: Any, y: Any, **parameters: Any) -> MLPClassifier:
        """Return an `MLPClassifier` with these layers, trained with labels from the weights of the machines on.

        `parameters` are those of `MLPClassifier`, except for its layers, its units (which are logistic) and
        `warm_start`.
        """
        check_is_fitted(self)
        taken = {"hidden_layer_sizes", "activation", "warm_start"} & set(parameters)
        if taken:
            raise refuse(self, f"{min(taken)} follows from the machines; it cannot be given.")
        net = MLPClassifier(tuple(self._sizes()), "logistic", warm_start=True, **{"random_state": 0, **parameters})
        net.classes_, net.n_features_in_ = unique_labels(y), self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            net.feature_names_in_ = self.feature_names_in_
        net.several_labels_ = np.array(0)
        shape = net._shape(self.n_features_in_, 1 if len(net.classes_) == 2 else len(net.classes_))
        theta = shape.start(check_random_state(net.random_state), np.float64)
        weights, intercepts = unpack(shape.sizes, theta)
        for k, machine in enumerate(self.machines_):
            weights[k][:], intercepts[k][:] = machine.components_.T, machine.intercept_hidden_
        net._forget()
        net.network_sizes_, net.network_weights_ = np.array(shape.sizes, dtype=np.int64), theta
        return net.fit(X, y).set_params(warm_start=False)

    # Storage

    def members(self) -> Sequence[Learner]:
        """Return the machines."""
        return self.machines_

    def _take_members(self, members: Sequence[Any]) -> None:
        if not all(isinstance(member, BernoulliRBM) for member in members):
            raise refuse(self, "its members must be restricted Boltzmann machines.")
        if [member.n_components for member in members] != self._sizes():
            raise refuse(self, f"the machines have other sizes than layers={self.layers!r}.")
        self.machines_ = list(members)
