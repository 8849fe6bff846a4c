# %% ordinary least squares
from sklearn import datasets, linear_model
from sklearn.metrics import mean_squared_error, r2_score

X, y = datasets.load_diabetes(return_X_y=True)
X = X[:, [2]]
model = linear_model.LinearRegression()
model.fit(X[:-20], y[:-20])
predicted = model.predict(X[-20:])
result = [*model.coef_, model.intercept_, mean_squared_error(y[-20:], predicted), r2_score(y[-20:], predicted)]

# %% ridge coefficients along the penalty
import numpy as np
from sklearn import linear_model

X = 1.0 / (np.arange(1, 11) + np.arange(0, 10)[:, np.newaxis])
y = np.ones(10)
coefs = []
for alpha in np.logspace(-6, -2, 20):
    ridge = linear_model.Ridge(alpha=alpha, fit_intercept=False)
    ridge.fit(X, y)
    coefs.append(ridge.coef_)
result = np.ravel(coefs)

# %% lasso and elastic net on sparse signals
import numpy as np
from sklearn.linear_model import ElasticNet, Lasso
from sklearn.metrics import r2_score

N = 60
rng = np.random.RandomState(0)
X = rng.randn(N, 100)
coef = (-1) ** np.arange(100) * np.exp(-np.arange(100) / 10)
coef[10:] = 0
y = X @ coef + 0.01 * rng.normal(size=N)
half = N // 2
scores = []
for model in (Lasso(alpha=0.1), ElasticNet(alpha=0.1, l1_ratio=0.7)):
    scores.append(r2_score(y[half:], model.fit(X[:half], y[:half]).predict(X[half:])))
result = [*scores, np.count_nonzero(Lasso(alpha=0.1).fit(X, y).coef_)]

# %% multinomial logistic regression  rtol=2e-2
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

N = 300
X, y = make_blobs(n_samples=N, centers=[[-5, 0], [0, 1.5], [5, -1]], random_state=40)
X = X @ [[0.4, 0.2], [-0.4, 1.2]]
model = LogisticRegression().fit(X, y)
result = [model.score(X, y), *model.predict_proba(X[:5]).ravel(), *model.coef_.ravel()]

# %% l1 path of logistic regression  atol=2e-2
import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_iris(return_X_y=True)
X, y = X[y != 2], y[y != 2]
clf = make_pipeline(
    StandardScaler(),
    LogisticRegression(l1_ratio=1, solver="liblinear", tol=1e-6, max_iter=int(1e6), warm_start=True),
)
coefs = []
for c in np.logspace(-1, 1, 4):
    clf.set_params(logisticregression__C=c)
    clf.fit(X, y)
    coefs.append(clf["logisticregression"].coef_.ravel().copy())
result = np.ravel(coefs)

# %% stochastic gradient descent of separable classes  atol=0.05
from sklearn.datasets import make_blobs
from sklearn.linear_model import SGDClassifier

N = 500
X, y = make_blobs(n_samples=N, centers=2, random_state=0, cluster_std=0.60)
clf = SGDClassifier(loss="hinge", alpha=0.01, max_iter=200, random_state=0).fit(X, y)
result = [clf.score(X, y), clf.decision_function(X).mean() > 0]

# %% online solvers compared  atol=0.05 long
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=42)
classifiers = [
    SGDClassifier(max_iter=110, random_state=0),
    SGDClassifier(max_iter=110, average=True, random_state=0),
    Perceptron(max_iter=110, random_state=0),
    LogisticRegression(max_iter=200, tol=1e-1, C=1.0e4 / X_train.shape[0]),
]
result = [clf.fit(X_train, y_train).score(X_test, y_test) for clf in classifiers]

# %% polynomial interpolation
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

x = np.linspace(0, 10, 40)
y = x * np.sin(x)
result = []
for degree in [3, 4, 5]:
    model = make_pipeline(PolynomialFeatures(degree), Ridge(alpha=1e-3)).fit(x[:, None], y)
    result.append(model.score(x[:, None], y))
spline = make_pipeline(SplineTransformer(n_knots=4, degree=3), Ridge(alpha=1e-3)).fit(x[:, None], y)
result += list(spline.predict(x[:5, None]))

# %% robust linear regression
import numpy as np
from sklearn import datasets, linear_model

X, y, coef = datasets.make_regression(200, 1, n_informative=1, noise=10, coef=True, random_state=0)
rng = np.random.RandomState(0)
X[:20] = 3 + 0.5 * rng.normal(size=(20, 1))
y[:20] = -3 + 10 * rng.normal(size=20)
plain = linear_model.LinearRegression().fit(X, y)
ransac = linear_model.RANSACRegressor(random_state=0).fit(X, y)
huber = linear_model.HuberRegressor().fit(X, y)
result = [*plain.coef_, *ransac.estimator_.coef_, *huber.coef_, ransac.inlier_mask_.sum()]

# %% counts by Poisson regression  rtol=1e-3
import numpy as np
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.metrics import mean_poisson_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

N = 400
rng = np.random.RandomState(0)
X = rng.uniform(size=(N, 4))
y = rng.poisson(np.exp(X @ [0.5, -1, 2, 0]))
w = rng.uniform(0.5, 2, N)
glm = make_pipeline(StandardScaler(), PoissonRegressor(alpha=1e-6, max_iter=300))
glm.fit(X, y, poissonregressor__sample_weight=w)
ridge = make_pipeline(StandardScaler(), Ridge()).fit(X, y, ridge__sample_weight=w)
result = [mean_poisson_deviance(y, glm.predict(X), sample_weight=w), *ridge[-1].coef_, ridge.score(X, y, w)]

# %% penalties chosen by cross-validation  rtol=1e-2
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNetCV, LassoCV, LassoLarsIC, RidgeCV

X, y = load_diabetes(return_X_y=True)
lasso = LassoCV(cv=5).fit(X, y)
ridge = RidgeCV(alphas=np.logspace(-3, 3, 13)).fit(X, y)
net = ElasticNetCV(cv=5, l1_ratio=[0.5, 0.9, 1]).fit(X, y)
result = [lasso.alpha_, ridge.alpha_, net.l1_ratio_, *lasso.coef_, LassoLarsIC().fit(X, y).alpha_]

# %% a transformed target
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge
from sklearn.preprocessing import QuantileTransformer

N = 500
X, y = make_regression(n_samples=N, noise=100, random_state=0)
y = np.expm1((y + abs(y.min())) / 200)
model = TransformedTargetRegressor(regressor=Ridge(alpha=10), func=np.log1p, inverse_func=np.expm1).fit(X, y)
other = TransformedTargetRegressor(Ridge(), transformer=QuantileTransformer(n_quantiles=100)).fit(X, y)
result = [model.score(X, y), other.score(X, y)]
