# %% Gaussian naive Bayes and discriminants  atol=1e-3
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

X, y = load_wine(return_X_y=True)
models = [GaussianNB(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), QuadraticDiscriminantAnalysis()]
result = [(cross_val_predict(model, X, y, cv=5) == y).mean() for model in models]
result += list(GaussianNB().fit(X, y).theta_.ravel())

# %% texts by naive Bayes
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import Pipeline

texts = ["good film great", "bad film awful", "great acting good", "awful plot bad", "good plot", "bad acting"]
labels = np.array(["pos", "neg", "pos", "neg", "pos", "neg"])
result = []
for clf in (MultinomialNB(), ComplementNB(), BernoulliNB()):
    model = Pipeline([("vect", CountVectorizer()), ("tfidf", TfidfTransformer()), ("clf", clf)]).fit(texts, labels)
    result += list(model.predict_proba(["great film", "awful acting film"]).ravel())

# %% out of core
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import MultinomialNB

texts = ["good film great", "bad film awful", "great acting good", "awful plot bad"] * 10
labels = np.array([1, 0, 1, 0] * 10)
vectorizer = HashingVectorizer(n_features=2**10, alternate_sign=False)
models = [SGDClassifier(random_state=0), Perceptron(), MultinomialNB(alpha=0.01)]
for start in range(0, 40, 8):
    rows = vectorizer.transform(texts[start : start + 8])
    for model in models:
        model.partial_fit(rows, labels[start : start + 8], classes=[0, 1])
result = [model.score(vectorizer.transform(texts), labels) for model in models]

# %% categories by naive Bayes
import numpy as np
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

rng = np.random.RandomState(1)
X = rng.choice(["a", "b", "c"], size=(100, 4))
y = (X[:, 0] == "a").astype(int) ^ (rng.rand(100) < 0.1)
model = make_pipeline(OrdinalEncoder(), CategoricalNB()).fit(X, y)
bins = make_pipeline(KBinsDiscretizer(3, encode="ordinal"), CategoricalNB(alpha=2)).fit(rng.randn(100, 3), y)
result = [*model.predict_proba(X[:5]).ravel(), bins[-1].class_count_.sum()]

# %% a network for digits  atol=0.05
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0, test_size=0.7)
mlp = MLPClassifier(
    hidden_layer_sizes=(40,), max_iter=15, alpha=1e-4, solver="sgd", random_state=1, learning_rate_init=0.2
)
mlp.fit(X_train, y_train)
result = [mlp.score(X_train, y_train), mlp.score(X_test, y_test), len(mlp.coefs_), len(mlp.loss_curve_)]

# %% a network for regression  atol=0.1
import numpy as np
from sklearn.datasets import make_regression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = make_regression(n_samples=200, n_features=5, random_state=1)
y = (y - y.mean()) / y.std()
model = make_pipeline(
    StandardScaler(), MLPRegressor(hidden_layer_sizes=(20,), random_state=1, max_iter=2000, tol=1e-4)
).fit(X, y)
result = [model.score(X, y), np.round(model[-1].out_activation_ == "identity")]

# %% features of a Boltzmann machine  atol=0.08 long
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import minmax_scale

X, y = load_digits(return_X_y=True)
X = minmax_scale(X[:800])
rbm = BernoulliRBM(random_state=0, learning_rate=0.06, n_iter=5, n_components=40)
model = Pipeline([("rbm", rbm), ("logistic", LogisticRegression(C=6000, max_iter=500))]).fit(X, y[:800])
result = [model.score(X, y[:800])]

# %% labels spread  atol=0.05
import numpy as np
from sklearn.datasets import load_iris
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
rng = np.random.RandomState(42)
few = np.copy(y)
few[rng.rand(len(y)) < 0.5] = -1
spread = LabelSpreading().fit(X, few)
trained = SelfTrainingClassifier(SVC(kernel="rbf", gamma=0.5), criterion="k_best", k_best=10)
result = [spread.score(X, y), spread.transduction_.mean()]
try:
    trained.fit(X, few)
except (AttributeError, ValueError):  # a machine without probabilities cannot teach itself
    result.append(-1)
