# %% kernels on iris
from sklearn import datasets, svm

X, y = datasets.load_iris(return_X_y=True)
X = X[:, :2]
models = [svm.SVC(kernel="linear", C=1.0), svm.LinearSVC(C=1.0, max_iter=10000), svm.SVC(kernel="rbf", gamma=0.7),
          svm.SVC(kernel="poly", degree=3, gamma="auto")]  # fmt: skip
result = [clf.fit(X, y).score(X, y) for clf in models]

# %% the maximum margin hyperplane  rtol=1e-2
from sklearn import svm
from sklearn.datasets import make_blobs

X, y = make_blobs(n_samples=40, centers=2, random_state=6)
clf = svm.SVC(kernel="linear", C=1000).fit(X, y)
result = [*clf.coef_[0], *clf.intercept_, len(clf.support_vectors_), *clf.decision_function(X[:3])]

# %% a kernel of one's own
import numpy as np
from sklearn import datasets, svm

X, y = datasets.load_iris(return_X_y=True)
X = X[:, :2]


def my_kernel(X, Y):
    return np.dot(np.dot(X, np.array([[2, 0], [0, 1.0]])), Y.T)


clf = svm.SVC(kernel=my_kernel).fit(X, y)
given = svm.SVC(kernel="precomputed").fit(X @ X.T, y)
result = [clf.score(X, y), given.score(X @ X.T, y)]

# %% unbalanced classes and weights of rows  atol=0.02
import numpy as np
from sklearn import svm
from sklearn.datasets import make_blobs

X, y = make_blobs([200, 20], centers=[[0.0, 0.0], [2.0, 2.0]], cluster_std=[1.5, 0.5], random_state=0)
plain = svm.SVC(kernel="linear", C=1.0).fit(X, y)
weighted = svm.SVC(kernel="linear", class_weight={1: 10}).fit(X, y)
rows = svm.SVC(gamma=1).fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
result = [model.predict(X).mean() for model in (plain, weighted, rows)] + [*weighted.coef_[0]]

# %% support vector regression  rtol=1e-2
import numpy as np
from sklearn.svm import SVR

X = np.sort(5 * np.random.RandomState(0).rand(40, 1), axis=0)
y = np.sin(X).ravel()
y[::5] += 3 * (0.5 - np.random.RandomState(1).rand(8))
models = [SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1), SVR(kernel="linear", C=100, gamma="auto"),
          SVR(kernel="poly", C=1, gamma="auto", degree=3, epsilon=0.1, coef0=1)]  # fmt: skip
result = [model.fit(X, y).score(X, y) for model in models]

# %% novelty detection  atol=0.03
import numpy as np
from sklearn import svm

rng = np.random.RandomState(0)
X = 0.3 * rng.randn(100, 2)
train = np.r_[X + 2, X - 2]
clf = svm.OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(train)
result = [(clf.predict(train) == -1).mean(), (clf.predict(rng.uniform(-4, 4, (50, 2))) == -1).mean()]

# %% parameters of the rbf kernel by grid search
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
cv = StratifiedShuffleSplit(n_splits=3, test_size=0.2, random_state=42)
grid = GridSearchCV(SVC(), {"C": np.logspace(-1, 2, 3), "gamma": np.logspace(-3, 0, 3)}, cv=cv).fit(X, y)
result = [*grid.cv_results_["mean_test_score"], grid.best_score_]

# %% digits recognised
from sklearn import datasets, metrics, svm
from sklearn.model_selection import train_test_split

digits = datasets.load_digits()
data = digits.images.reshape((len(digits.images), -1))
X_train, X_test, y_train, y_test = train_test_split(data, digits.target, test_size=0.5, shuffle=False)
predicted = svm.SVC(gamma=0.001).fit(X_train, y_train).predict(X_test)
result = [metrics.accuracy_score(y_test, predicted), *metrics.confusion_matrix(y_test, predicted).ravel()]

# %% features chosen before the machine
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

N = 300
X, y = make_classification(N, n_features=20, n_informative=3, n_redundant=0, n_classes=2, random_state=42)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=42)
model = make_pipeline(SelectKBest(f_classif, k=3), LinearSVC()).fit(X_train, y_train)
told = classification_report(y_test, model.predict(X_test), output_dict=True)
result = [told["accuracy"], *model[-1].coef_[0], *model[:-1].inverse_transform(model[-1].coef_)[0]]
