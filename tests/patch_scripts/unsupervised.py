# %% k-means of blobs
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

N = 500
X, y = make_blobs(n_samples=N, random_state=170)
common = {"n_init": "auto", "random_state": 0}
result = [KMeans(n_clusters=3, **common).fit(X).inertia_]
X_stretched = X @ [[0.60834549, -0.63667341], [-0.40887718, 0.85253229]]
result += sorted(np.bincount(KMeans(n_clusters=3, n_init=10, random_state=0).fit_predict(X_stretched)))

# %% k-means of digits and what clusterings score  atol=0.06
import numpy as np
from sklearn import metrics
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data, labels = load_digits(return_X_y=True)
result = []
for init in ("k-means++", PCA(n_components=10).fit(data).components_):
    kmeans = KMeans(init=init, n_clusters=10, n_init=4 if isinstance(init, str) else 1, random_state=0)
    found = make_pipeline(StandardScaler(), kmeans).fit(data)[-1].labels_
    result += [metrics.homogeneity_score(labels, found), metrics.v_measure_score(labels, found)]
pca = PCA(n_components=2).fit(data)
result += [*pca.explained_variance_ratio_, *np.abs(pca.components_).sum(axis=1)]

# %% silhouettes
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_samples, silhouette_score

N = 300
X, y = make_blobs(n_samples=N, n_features=2, centers=4, cluster_std=1, random_state=1)
result = []
for k in (2, 3, 4):
    found = KMeans(n_clusters=k, n_init=5, random_state=10).fit_predict(X)
    result += [silhouette_score(X, found), silhouette_samples(X, found).min()]

# %% mini-batches beside all rows  rtol=0.02
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import pairwise_distances_argmin

N = 1000
X, _ = make_blobs(n_samples=N, centers=[[1, 1], [-1, -1], [1, -1]], cluster_std=0.4, random_state=0)
full = KMeans(n_clusters=3, n_init=10, random_state=0).fit(X)
mini = MiniBatchKMeans(n_clusters=3, batch_size=45, n_init=10, random_state=0).fit(X)
order = pairwise_distances_argmin(full.cluster_centers_, mini.cluster_centers_)
result = [full.inertia_, mini.inertia_, len(set(order))]

# %% colours of a picture  rtol=0.05
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image
from sklearn.utils import shuffle

image = np.array(load_sample_image("flower.jpg"), dtype=np.float64)[::8, ::8] / 255
pixels = image.reshape(-1, 3)
sample = shuffle(pixels, random_state=0, n_samples=1000)
kmeans = KMeans(n_clusters=16, n_init=3, random_state=0).fit(sample)
shown = kmeans.cluster_centers_[kmeans.predict(pixels)]
result = [np.abs(shown - pixels).mean()]

# %% the number of components by BIC  long
import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

rng = np.random.RandomState(0)
X = np.concatenate([rng.randn(300, 2) @ [[0.0, -0.1], [1.7, 0.4]], 0.7 * rng.randn(300, 2) + [-4, 1]])
grid = {"n_components": [1, 2, 3], "covariance_type": ["spherical", "diag", "full"]}
search = GridSearchCV(
    GaussianMixture(random_state=0, n_init=2), grid, scoring=lambda model, rows: -model.bic(rows)
).fit(X)
result = [search.best_params_["n_components"], len(search.best_params_["covariance_type"])]

# %% principal components and discriminants of iris
import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

X, y = datasets.load_iris(return_X_y=True)
pca = PCA(n_components=2).fit(X)
lda = LinearDiscriminantAnalysis(n_components=2).fit(X, y)
result = [*pca.explained_variance_ratio_, *np.abs(pca.transform(X)[:5]).ravel(), *np.abs(lda.transform(X)[:5]).ravel()]

# %% kernel principal components  atol=1e-3
import numpy as np
from sklearn.datasets import make_circles
from sklearn.decomposition import PCA, KernelPCA
from sklearn.linear_model import LogisticRegression

N = 300
X, y = make_circles(n_samples=N, factor=0.3, noise=0.05, random_state=0)
kernel_pca = KernelPCA(n_components=3, kernel="rbf", gamma=10, fit_inverse_transform=True, alpha=0.1)
mapped = kernel_pca.fit(X).transform(X)
back = kernel_pca.inverse_transform(mapped)
plain = PCA(n_components=2).fit_transform(X)
result = [np.abs(mapped).mean(), np.abs(back - X).mean(), LogisticRegression().fit(plain, y).score(plain, y)]

# %% texts by latent semantics, clustered  atol=0.05
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import v_measure_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

animals, planets = "cat dog horse mouse bird fish".split(), "mars venus earth orbit moon star".split()
texts = [" ".join(words[(i + j) % 6] for j in range(4)) for words in (animals, planets) for i in range(30)]
lsa = make_pipeline(TfidfVectorizer(), TruncatedSVD(n_components=2, random_state=0), Normalizer(copy=False))
found = KMeans(n_clusters=2, n_init=5, random_state=0).fit_predict(lsa.fit_transform(texts))
result = [v_measure_score([0] * 30 + [1] * 30, found)]

# %% topics  rtol=0.2
import numpy as np
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

animals, planets = "cat dog horse mouse bird fish".split(), "mars venus earth orbit moon star".split()
texts = [" ".join(words[(i + j) % 6] for j in range(4)) for words in (animals, planets) for i in range(30)]
counts = CountVectorizer().fit_transform(texts)
lda = LatentDirichletAllocation(n_components=2, max_iter=10, random_state=0).fit(counts)
found = lda.transform(counts).argmax(axis=1)
result = [
    abs(found[:30].mean() - found[30:].mean()),
    lda.perplexity(counts),
    NMF(2, random_state=0).fit(counts).n_components_,
]
assert np.isfinite(lda.score(counts))

# %% clusterings compared  long
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

X, y = make_moons(n_samples=300, noise=0.05, random_state=30)
X = StandardScaler().fit_transform(X)
joined = kneighbors_graph(X, n_neighbors=3, include_self=False)
algorithms = [DBSCAN(eps=0.3), AgglomerativeClustering(2, connectivity=0.5 * (joined + joined.T), linkage="ward"),
              SpectralClustering(2, affinity="nearest_neighbors", random_state=0)]  # fmt: skip
result = [adjusted_rand_score(y, model.fit(X).labels_) for model in algorithms]
assert {len(set(m.fit_predict(X))) for m in (KMeans(2), MiniBatchKMeans(2), GaussianMixture(2))} == {2}
