# %% nested cross-validation
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
grid = {"C": [1, 10, 100], "gamma": [0.01, 0.1]}
inner, outer = (KFold(n_splits=4, shuffle=True, random_state=i) for i in (0, 1))
clf = GridSearchCV(estimator=SVC(kernel="rbf"), param_grid=grid, cv=inner)
result = cross_val_score(clf, X=X, y=y, cv=outer)
assert np.isfinite(result).all()

# %% a search over two processes  atol=0.03 long
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RandomizedSearchCV
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
settings = {"max_depth": [1, 2, 3, 4], "min_samples_leaf": [1, 5, 9]}
search = RandomizedSearchCV(DecisionTreeClassifier(random_state=0), settings, n_iter=4, n_jobs=2, random_state=0, cv=3)
search.fit(X, y)
result = [search.best_score_, *search.cv_results_["mean_test_score"]]

# %% several metrics at once  atol=5e-3
from sklearn.datasets import make_hastie_10_2
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

N = 600
X, y = make_hastie_10_2(n_samples=N, random_state=42)
scoring = {"AUC": "roc_auc", "Accuracy": make_scorer(accuracy_score)}
gs = GridSearchCV(DecisionTreeClassifier(random_state=42), {"min_samples_split": range(20, 200, 60)}, scoring=scoring,
                  refit="AUC", n_jobs=1, return_train_score=True, cv=3)  # fmt: skip
gs.fit(X, y)
result = [*gs.cv_results_["mean_train_AUC"], *gs.cv_results_["mean_train_Accuracy"]]

# %% learning and validation curves  atol=0.02
from sklearn.datasets import load_digits
from sklearn.model_selection import learning_curve, validation_curve
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]
_, _, scores = learning_curve(GaussianNB(), X, y, cv=3, train_sizes=[0.3, 1.0])
_, valid = validation_curve(SVC(), X, y, param_name="gamma", param_range=[1e-4, 1e-3], cv=3)
result = [*scores.ravel(), *valid.ravel()]

# %% ROC curves across folds
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import RocCurveDisplay, auc
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
X, y = X[y != 2], y[y != 2]
X = np.c_[X, np.random.RandomState(0).randn(len(X), 40)]
result = []
for train, test in StratifiedKFold(n_splits=4).split(X, y):
    clf = SVC(kernel="linear").fit(X[train], y[train])
    shown = RocCurveDisplay.from_estimator(clf, X[test], y[test])
    result.append(auc(shown.fpr, shown.tpr))

# %% features eliminated
from sklearn.datasets import make_classification
from sklearn.feature_selection import RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

N = 300
X, y = make_classification(N, n_features=10, n_informative=3, n_redundant=2, n_classes=2, random_state=0)
rfecv = RFECV(estimator=LogisticRegression(), step=1, cv=3, scoring="accuracy").fit(X, y)
chosen = SelectFromModel(LinearSVC(C=0.01, penalty="l1", dual=False)).fit(X, y)
forward = SequentialFeatureSelector(KNeighborsClassifier(5), n_features_to_select=3, cv=3).fit(X, y)
result = [rfecv.n_features_, *chosen.get_support(), *forward.get_support()]

# %% columns of mixed types
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

N = 300
rng = np.random.RandomState(0)
X = pd.DataFrame({"age": rng.normal(40, 10, N), "fare": rng.exponential(30, N), "port": rng.choice(list("SCQ"), N)})
y = ((X["fare"] > 25) ^ (X["port"] == "C")).astype(int)
X.loc[::7, "age"] = np.nan
numbers = Pipeline([("imputer", SimpleImputer(strategy="median")), ("scaler", StandardScaler())])
columns = ColumnTransformer([("num", numbers, ["age", "fare"]), ("cat", OneHotEncoder(), ["port"])])
clf = Pipeline([("columns", columns), ("classifier", LogisticRegression())])
search = GridSearchCV(clf, {"classifier__C": [0.1, 1.0, 10]}, cv=3).fit(X, y)
result = [search.best_score_, search.best_params_["classifier__C"], search.score(X, y)]
assert "LogisticRegression" in clf._repr_html_()

# %% frames come out
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

X, y = load_iris(as_frame=True, return_X_y=True)
model = make_pipeline(PCA(n_components=2).set_output(transform="pandas"), LogisticRegression()).fit(X, y)
reduced = model[:-1].transform(X)
assert isinstance(reduced, pd.DataFrame)
assert list(model[-1].feature_names_in_) == ["pca0", "pca1"]
result = [model.score(X, y), *reduced.abs().mean()]

# %% probabilities calibrated  atol=0.02
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

N = 1000
X, y = make_classification(n_samples=N, n_features=20, n_informative=2, n_redundant=10, random_state=42)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=42)
result = []
for model in (GaussianNB(), CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic"),
              CalibratedClassifierCV(LinearSVC(max_iter=10_000), cv=2, method="sigmoid")):  # fmt: skip
    prob = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
    result += [brier_score_loss(y_test, prob), log_loss(y_test, prob)]
    calibration_curve(y_test, prob, n_bins=5)

# %% a threshold tuned  atol=0.03
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

N = 800
X, y = make_classification(N, weights=[0.9], random_state=0, class_sep=0.7)
tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring="balanced_accuracy", random_state=0).fit(X, y)
fixed = FixedThresholdClassifier(LogisticRegression(), threshold=0.1).fit(X, y)
result = [balanced_accuracy_score(y, model.predict(X)) for model in (tuned, fixed)] + [tuned.best_threshold_]

# %% models written and read
import io
import pickle

import joblib
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

X, y = load_iris(return_X_y=True)
result = []
for model in (LogisticRegression(), RandomForestClassifier(10, random_state=0), KMeans(3, n_init=3, random_state=0)):
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    result.append((again.predict(X) == joblib.load(file).predict(X)).all())
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert type(again).__name__ == type(model).__name__

# %% an estimator of one's own
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score


class ClusterThenClassify(ClassifierMixin, BaseEstimator):
    def __init__(self, k=3):
        self.k = k

    def fit(self, X, y):
        self.kmeans_ = KMeans(self.k, n_init=5, random_state=0).fit(X)
        self.model_ = LogisticRegression().fit(self.kmeans_.transform(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(self.kmeans_.transform(X))


class Loud(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        self.rows_ = len(X)
        return super().fit(X, y, sample_weight)


X, y = load_iris(return_X_y=True)
loud = Loud(C=2.0).fit(X, y)
assert isinstance(loud, LogisticRegression)
assert isinstance(LogisticRegression(), LogisticRegression)
result = [*cross_val_score(ClusterThenClassify(), X, y, cv=3), loud.rows_, loud.score(X, y), np.round(loud.C)]

# %% errors are scikit-learn's
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

result = []
for fail, kind in (
    (lambda: SVC(C=-1).fit([[0], [1]], [0, 1]), ValueError),
    (lambda: SVC().predict([[0]]), NotFittedError),
    (lambda: Ridge().fit([[np.nan]], [1]), ValueError),
    (lambda: Ridge(no_such=1), TypeError),
    (lambda: SVC().fit([[0], [1]], [1, 1]), ValueError),
):
    try:
        fail()
    except kind as error:
        result.append(len(str(error)) > 0)

# %% losses and kernels that only scikit-learn has  rtol=0.02
import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.svm import SVC

rng = np.random.RandomState(0)
X, y = rng.rand(60, 5), rng.rand(60)
added = KernelRidge(kernel="additive_chi2").fit(X, y)
named = KernelRidge(kernel="polynomial", degree=2).fit(X, y)
chi2 = SVC(kernel=chi2_kernel, gamma=0.5).fit(X, y > 0.5)
result = [*added.predict(X[:4]), *named.predict(X[:4]), chi2.score(X, y > 0.5)]
