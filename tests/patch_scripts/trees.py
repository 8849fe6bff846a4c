# %% a tree and its text
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, export_graphviz, export_text, plot_tree

X, y = load_iris(return_X_y=True)
tree = DecisionTreeClassifier(random_state=0, max_depth=2).fit(X, y)
text = export_text(tree, feature_names=["a", "b", "c", "d"])
dot = export_graphviz(tree)
plot_tree(tree)
result = [len(text), dot.count("->"), *tree.feature_importances_, tree.get_depth()]

# %% the structure of a tree
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

X, y = load_iris(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
clf = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X_train, y_train)
tree = clf.tree_
path = clf.decision_path(X_test)
result = [tree.node_count, *np.sort(tree.threshold), *np.sort(tree.n_node_samples), path.sum(), path.shape[0]]

# %% cost complexity pruning  atol=0.02
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
path = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X_train, y_train)
clfs = [DecisionTreeClassifier(random_state=0, ccp_alpha=alpha).fit(X_train, y_train) for alpha in path.ccp_alphas[-4:]]
result = [*path.ccp_alphas[-4:], *[clf.tree_.node_count for clf in clfs], *[clf.score(X_test, y_test) for clf in clfs]]

# %% regression trees, several outputs
import numpy as np
from sklearn.tree import DecisionTreeRegressor

rng = np.random.RandomState(1)
X = np.sort(200 * rng.rand(100, 1) - 100, axis=0)
y = np.array([np.pi * np.sin(X).ravel(), np.pi * np.cos(X).ravel()]).T
result = [DecisionTreeRegressor(max_depth=depth).fit(X, y).score(X, y) for depth in (2, 5, 8)]

# %% importances of a forest  atol=0.06
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

N = 600
X, y = make_classification(N, 10, n_informative=3, n_redundant=0, n_classes=2, random_state=0, shuffle=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
forest = RandomForestClassifier(random_state=0, n_estimators=50).fit(X_train, y_train)
std = np.std([tree.feature_importances_ for tree in forest.estimators_], axis=0)
found = permutation_importance(forest, X_test, y_test, n_repeats=5, random_state=42)
result = [*forest.feature_importances_, std.max(), *found.importances_mean]

# %% out-of-bag errors while a forest grows  atol=0.05
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

N = 400
X, y = make_classification(n_samples=N, n_features=25, n_clusters_per_class=1, n_informative=15, random_state=123)
clf = RandomForestClassifier(warm_start=True, oob_score=True, max_features="sqrt", random_state=123)
result = []
for trees in range(25, 76, 25):
    clf.set_params(n_estimators=trees)
    clf.fit(X, y)
    result.append(1 - clf.oob_score_)

# %% ensembles on two columns  atol=0.03
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

X, y = load_iris(return_X_y=True)
X = X[:, :2]
X = (X - X.mean(axis=0)) / X.std(axis=0)
models = [DecisionTreeClassifier(max_depth=None), RandomForestClassifier(n_estimators=30, random_state=0),
          ExtraTreesClassifier(n_estimators=30, random_state=0),
          AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=30, random_state=0)]  # fmt: skip
result = [model.fit(X, y).score(X, y) for model in models]

# %% gradient boosting and its deviance  rtol=0.05
import numpy as np
from sklearn import datasets, ensemble
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import train_test_split

X, y = datasets.load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.1, random_state=13)
params = {"n_estimators": 100, "max_depth": 4, "min_samples_split": 5, "learning_rate": 0.01, "loss": "squared_error"}
reg = ensemble.GradientBoostingRegressor(**params).fit(X_train, y_train)
errors = [mean_squared_error(y_test, predicted) for predicted in reg.staged_predict(X_test)]
result = [errors[0], errors[-1], reg.train_score_[-1], np.argmax(reg.feature_importances_)]

# %% early stopping of gradient boosting  atol=0.06
from sklearn.datasets import make_hastie_10_2
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split

N = 800
X, y = make_hastie_10_2(n_samples=N, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
full = GradientBoostingClassifier(n_estimators=60, random_state=1, max_leaf_nodes=4).fit(X_train, y_train)
short = GradientBoostingClassifier(
    n_estimators=60, validation_fraction=0.2, n_iter_no_change=5, tol=0.01, random_state=1, max_leaf_nodes=4
).fit(X_train, y_train)
result = [full.score(X_test, y_test), short.score(X_test, y_test), short.n_estimators_ <= 60]

# %% quantiles by boosting  atol=0.06
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

N = 600
rng = np.random.RandomState(42)
X = rng.uniform(0, 10.0, size=(N, 1))
y = (X * np.sin(X)).ravel() + rng.lognormal(sigma=0.5 + X.ravel() / 10) - np.exp((0.5 + X.ravel() / 10) ** 2 / 2)
result = []
for alpha in (0.05, 0.5, 0.95):
    model = GradientBoostingRegressor(loss="quantile", alpha=alpha, max_depth=2, n_estimators=60, min_samples_leaf=9)
    result.append((y <= model.fit(X, y).predict(X)).mean())
hist = HistGradientBoostingRegressor(loss="quantile", quantile=0.9, max_iter=60).fit(X, y)
result.append((y <= hist.predict(X)).mean())

# %% categories and gaps in histogram boosting  atol=0.05
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score

N = 800
rng = np.random.RandomState(0)
frame = pd.DataFrame({"size": rng.normal(size=N), "colour": pd.Categorical(rng.choice(list("rgb"), N))})
y = (frame["size"] + (frame["colour"] == "g") * 2 + 0.3 * rng.normal(size=N) > 0.7).astype(int)
frame.loc[rng.rand(N) < 0.1, "size"] = np.nan
clf = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=30, random_state=0)
result = [cross_val_score(clf, frame, y, cv=3).mean(), clf.fit(frame, y).score(frame, y)]

# %% monotonic constraints  rtol=0.05
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.inspection import partial_dependence

N = 500
rng = np.random.RandomState(0)
X = rng.rand(N, 2)
y = 5 * X[:, 0] + np.sin(10 * np.pi * X[:, 0]) - 5 * X[:, 1] - np.cos(10 * np.pi * X[:, 1]) + rng.normal(0, 0.1, N)
model = HistGradientBoostingRegressor(monotonic_cst=[1, -1], max_iter=50).fit(X, y)
curve = partial_dependence(model, X, [0], grid_resolution=20)["average"][0]
result = [model.score(X, y), (np.diff(curve) >= -1e-9).all()]

# %% boosted trees of several classes  atol=0.08
from sklearn.datasets import make_gaussian_quantiles
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import accuracy_score
from sklearn.tree import DecisionTreeClassifier

N = 600
X, y = make_gaussian_quantiles(n_samples=N, n_features=10, n_classes=3, random_state=1)
weak = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0)
ada = AdaBoostClassifier(estimator=weak, n_estimators=50, random_state=42).fit(X[: N // 2], y[: N // 2])
staged = [accuracy_score(y[N // 2 :], predicted) for predicted in ada.staged_predict(X[N // 2 :])]
result = [staged[0], staged[-1], ada.estimator_errors_[0]]

# %% bias and variance of bagging  rtol=0.3
import numpy as np
from sklearn.ensemble import BaggingRegressor
from sklearn.tree import DecisionTreeRegressor

rng = np.random.RandomState(0)
test = np.linspace(-5, 5, 100)[:, None]
result = []
for model in (DecisionTreeRegressor(), BaggingRegressor(DecisionTreeRegressor(), random_state=0)):
    predictions = []
    for _ in range(20):
        X = np.sort(rng.rand(50) * 10 - 5)
        y = np.exp(-(X**2)) + 1.5 * np.exp(-((X - 2) ** 2)) + rng.normal(0, 0.1, 50)
        predictions.append(model.fit(X[:, None], y).predict(test))
    result.append(np.var(predictions, axis=0).mean() * 100)
