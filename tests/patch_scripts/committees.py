# %% soft votes  atol=0.02
from sklearn import datasets
from sklearn.ensemble import VotingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

X, y = datasets.load_iris(return_X_y=True)
X = X[:, [0, 2]]
eclf = VotingClassifier(
    estimators=[("dt", DecisionTreeClassifier(max_depth=4)), ("knn", KNeighborsClassifier(n_neighbors=7)),
                ("svc", SVC(gamma=0.1, kernel="rbf"))],
    voting="hard",
)  # fmt: skip
eclf.fit(X, y)
result = [eclf.score(X, y), *[est.score(X, eclf.le_.transform(y)) for est in eclf.estimators_]]

# %% regressors averaged  rtol=0.05
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression

X, y = load_diabetes(return_X_y=True)
ereg = VotingRegressor([("gb", GradientBoostingRegressor(random_state=1)),
                        ("rf", RandomForestRegressor(random_state=1, n_estimators=50)),
                        ("lr", LinearRegression())])  # fmt: skip
ereg.fit(X, y)
result = [*ereg.predict(X[:10]), ereg.score(X, y)]

# %% predictors stacked  rtol=0.05 long
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor, StackingRegressor
from sklearn.linear_model import LassoCV, RidgeCV
from sklearn.model_selection import cross_validate

X, y = load_diabetes(return_X_y=True)
stack = StackingRegressor(
    [("forest", RandomForestRegressor(n_estimators=20, random_state=42)), ("lasso", LassoCV())],
    final_estimator=RidgeCV(),
)
result = [cross_validate(stack, X, y, cv=3, scoring="neg_mean_absolute_error")["test_score"].mean()]

# %% stacked classifiers  atol=0.03
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

X, y = load_iris(return_X_y=True)
estimators = [("rf", RandomForestClassifier(n_estimators=10, random_state=42)),
              ("svr", make_pipeline(StandardScaler(), LinearSVC(random_state=42)))]  # fmt: skip
clf = StackingClassifier(estimators=estimators, final_estimator=LogisticRegression())
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=42)
result = [clf.fit(X_train, y_train).score(X_test, y_test)]

# %% leaves as features  atol=0.03
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, RandomTreesEmbedding
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

N = 1200
X, y = make_classification(n_samples=N, random_state=10)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=10)
forest = RandomForestClassifier(n_estimators=10, max_depth=3, random_state=10).fit(X_train, y_train)
leaves = FunctionTransformer(lambda rows: forest.apply(rows), validate=False)
models = [make_pipeline(leaves, OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=1000)),
          make_pipeline(RandomTreesEmbedding(10, max_depth=3, random_state=0), LogisticRegression())]  # fmt: skip
result = [roc_auc_score(y_test, m.fit(X_train, y_train).predict_proba(X_test)[:, 1]) for m in models]
result.append(np.unique(forest.apply(X_train)[:, 0]).size)

# %% multi-label classification  rtol=5e-3
from sklearn.cross_decomposition import CCA
from sklearn.datasets import make_multilabel_classification
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

X, Y = make_multilabel_classification(n_classes=2, n_labels=1, allow_unlabeled=True, random_state=1)
X = CCA(n_components=2).fit(X, Y).transform(X)
classif = OneVsRestClassifier(SVC(kernel="linear")).fit(X, Y)
result = [*[est.coef_[0, 0] for est in classif.estimators_], classif.predict(X).sum()]

# %% meta-estimators of many classes  atol=0.05
from sklearn.datasets import load_digits
from sklearn.model_selection import RepeatedStratifiedKFold, cross_validate
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.tree import DecisionTreeClassifier

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=42)
tree = DecisionTreeClassifier(random_state=0)
models = [tree, OneVsOneClassifier(tree), OneVsRestClassifier(tree)]
result = [cross_validate(model, X, y, cv=cv)["test_score"].mean() for model in models]
code = OutputCodeClassifier(tree, code_size=3.0, random_state=0).fit(X, y)
result.append(code.score(X, y))

# %% chains and several outputs
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import jaccard_score
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

X, Y = make_multilabel_classification(200, 15, n_classes=4, random_state=0)
chain = ClassifierChain(LogisticRegression(), order="random", random_state=0).fit(X[:150], Y[:150])
many = MultiOutputClassifier(LogisticRegression()).fit(X[:150], Y[:150])
result = [jaccard_score(Y[150:], model.predict(X[150:]), average="samples") for model in (chain, many)]
