# %% nearest neighbours, uniform and by distance  atol=0.03
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

iris = load_iris(as_frame=True)
X, y = iris.data[["sepal length (cm)", "sepal width (cm)"]], iris.target
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
clf = Pipeline([("scaler", StandardScaler()), ("knn", KNeighborsClassifier(n_neighbors=11))])
result = [clf.set_params(knn__weights=w).fit(X_train, y_train).score(X_test, y_test) for w in ("uniform", "distance")]

# %% neighbours for regression
import numpy as np
from sklearn import neighbors

rng = np.random.RandomState(0)
X = np.sort(5 * rng.rand(40, 1), axis=0)
y = np.sin(X).ravel()
y[::5] += 1 * (0.5 - rng.rand(8))
T = np.linspace(0, 5, 50)[:, np.newaxis]
result = []
for weights in ("uniform", "distance"):
    result += list(neighbors.KNeighborsRegressor(5, weights=weights).fit(X, y).predict(T))

# %% distances, graphs and trees of neighbours
import numpy as np
from sklearn.neighbors import BallTree, KernelDensity, NearestNeighbors

rng = np.random.RandomState(0)
X = rng.randn(80, 3)
nbrs = NearestNeighbors(n_neighbors=4, algorithm="ball_tree").fit(X)
distances, indices = nbrs.kneighbors(X)
density = KernelDensity(bandwidth=0.5).fit(X).score_samples(X[:5])
result = [*distances.ravel(), *indices.ravel(), nbrs.kneighbors_graph(X).sum(), *density]
result.append(BallTree(X).query(X[:1], k=2)[0][0, 1])

# %% components learnt for neighbours
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
knn = KNeighborsClassifier(n_neighbors=3)
result = []
for model in (PCA(n_components=10, random_state=0), LinearDiscriminantAnalysis(n_components=2)):
    reduce = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
    result.append(knn.fit(reduce.transform(X_train), y_train).score(reduce.transform(X_test), y_test))

# %% neighbours kept by a transformer
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import Pipeline

X, y = make_blobs(200, centers=3, random_state=0, cluster_std=2)
graph = KNeighborsTransformer(n_neighbors=11, mode="distance")
model = Pipeline([("graph", graph), ("classifier", KNeighborsClassifier(metric="precomputed"))])
search = GridSearchCV(model, {"classifier__n_neighbors": [1, 5, 10]}).fit(X, y)
result = [*search.cv_results_["mean_test_score"]]

# %% outliers and novelty
import numpy as np
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

rng = np.random.RandomState(42)
X = np.r_[0.3 * rng.randn(100, 2) + 2, 0.3 * rng.randn(100, 2) - 2, rng.uniform(-4, 4, (20, 2))]
models = [LocalOutlierFactor(20, contamination=0.1), IsolationForest(random_state=0), EllipticEnvelope(random_state=0)]
result = [(model.fit_predict(X) == -1).sum() for model in models]
