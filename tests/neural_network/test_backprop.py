"""Neurons and back-propagation as in textbooks: hand values, truth tables, finite differences, the learner beside."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from assay.linear_model import LinearSeparator, Perceptron
from assay.neural_network import MLPClassifier, ThresholdNetwork
from assay.neural_network import units as book
from assay.neural_network.units import ACTIVATIONS, neuron, two_layer_perceptron
from assay.optim.descent import check_gradient

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
XOR = np.array([0, 1, 1, 0])


@pytest.mark.mission("NNW-01")
def test_a_neuron_by_hand():
    x, w = [[1.0, 2.0]], [0.5, -0.25]
    assert neuron(x, w, 0.25, "identity").tolist() == [-0.25]
    assert neuron(x, w, 0.0, "step").tolist() == [1.0]  # exactly at its threshold
    assert neuron(x, w, 1e-9, "step").tolist() == [0.0]
    assert neuron(x, w, np.log(3), "logistic") == pytest.approx([0.25], abs=1e-15)
    with pytest.raises(ValueError, match="activation must be one of step, sign"):
        neuron(x, w, 0.0, "softplus")
    with pytest.raises(ValueError, match="one weight for each column of x"):
        neuron([[1.0, 2.0, 3.0]], w, 0.0)


@pytest.mark.mission("NNW-02")
@pytest.mark.parametrize(("low", "unit"), [(0, "step"), (-1, "sign")])
def test_gates_of_step_units(low, unit):
    points = np.where(SQUARE > 0, 1.0, low)
    middle = 0.5 if low == 0 else 0.0
    both = neuron(points, [1.0, 1.0], 1.5 if low == 0 else 1.0, unit)
    either = neuron(points, [1.0, 1.0], middle if low == 0 else -1.0, unit)
    turned = neuron(points[:, :1], [-1.0], -middle, unit)
    assert both.tolist() == [low, low, low, 1]
    assert either.tolist() == [low, 1, 1, 1]
    assert turned[[0, 2]].tolist() == [1, low]


@pytest.mark.mission("NNW-03")
@pytest.mark.parametrize("name", ["logistic", "tanh", "relu", "identity"])
def test_slopes_of_units(name):
    x = np.linspace(-4.0, 4.0, 33) + 0.01
    unit = ACTIVATIONS[name]
    for at in x:
        assert check_gradient(lambda t: float(unit.value(t)[0]), unit.slope([at]), np.array([at])) < 1e-7
    if name == "logistic":
        f = expit(x)
        assert np.allclose(unit.slope(x), f * (1 - f), atol=1e-16)


def test_units_without_slope_say_so():
    assert ACTIVATIONS["step"].slope is None
    assert ACTIVATIONS["sign"].slope is None


@pytest.mark.mission("NNW-04")
def test_xor_by_two_gates_and_one():
    hidden = ([[1, 1], [1, 1]], [0.5, 1.5])
    assert ThresholdNetwork([hidden, ([[1], [-1]], [0.5])])(SQUARE).ravel().tolist() == XOR.tolist()
    assert ThresholdNetwork([hidden])(SQUARE).tolist() == [[0, 0], [1, 0], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "at least one pair"),
        ([([[1.0]], [0.0]), ([[1.0], [1.0]], [0.0])], "layer 1 must have weights"),
        ([([[1.0, 1.0]], [0.0])], "one threshold per gate"),
    ],
)
def test_gates_that_do_not_fit_are_refused(layers, message):
    with pytest.raises(ValueError, match=message):
        ThresholdNetwork(layers)
    with pytest.raises(ValueError, match="X must have 1 columns"):
        ThresholdNetwork([([[1.0]], [0.0])])(SQUARE)


@pytest.mark.mission("NNW-05")
def test_two_layers_learn_fourteen_of_sixteen_functions():
    """One network of two inputs and sixteen outputs, a function each, all trained by (3.2); constants too."""
    functions = np.array(list(itertools.product([0, 1], repeat=4)))
    network = two_layer_perceptron(SQUARE, functions.T)
    learnt = (functions == network(SQUARE).T).all(axis=1)
    assert learnt.sum() == 14
    assert functions[~learnt].tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    ((w, theta),) = two_layer_perceptron([[2.0, -1.0], [4.0, 1.0]], [[0], [1]], eta=0.5, epochs=1).layers
    # 0 >= 0 is said 1, wrong: w = (-1, 0.5), theta = 0.5; then -3.5 < 0.5 is wrong: w = (1, 1), theta = 0
    assert w.ravel().tolist() == [1.0, 1.0]
    assert theta.tolist() == [0.0]
    for wrong in ([[0], [2]], [0, 1], [[0]]):
        with pytest.raises(ValueError, match="Y must hold 0 and 1"):
            two_layer_perceptron([[2.0, -1.0], [4.0, 1.0]], wrong)


@pytest.mark.mission("NNW-06")
@pytest.mark.filterwarnings("ignore")
def test_no_single_layer_learns_xor():
    for seed in range(5):
        model = Perceptron(max_iter=1000, random_state=seed).fit(SQUARE, XOR)
        assert (model.predict(SQUARE) != XOR).any()
    import assay

    separator = LinearSeparator().fit(SQUARE, XOR)
    certificate = separator.certify(SQUARE, XOR)
    assert (
        certificate.find("inseparability").value >= 1
    )  # every hyperplane errs: an exact combination of the rows proves it
    assert assay.verify(certificate, separator, SQUARE, XOR).holds


# Back-propagation -------------------------------------------------------------------------------------------


def draw(seed, d=3, q=4, outputs=2):
    rng = np.random.default_rng(seed)
    net = book.Weights(*(rng.normal(size=shape) for shape in ((d, q), (q,), (q, outputs), (outputs,))))
    return net, rng.normal(size=d), rng.uniform(size=outputs)


def flat(net):
    return np.concatenate([part.ravel() for part in net])


def unflat(vector, like):
    parts, at = [], 0
    for part in like:
        parts.append(vector[at : at + part.size].reshape(part.shape))
        at += part.size
    return book.Weights(*parts)


@pytest.mark.mission("NNW-08")
def test_outputs_and_error_by_hand():
    # One hidden unit at b = f(1 - 1) = 1/2 and one output f(2/2 - 1) = 1/2; E = (1/2 - 1)^2 / 2.
    net = book.Weights(np.array([[1.0]]), np.array([1.0]), np.array([[2.0]]), np.array([1.0]))
    said = book.forward(net, [1.0])
    assert said.b.tolist() == [0.5]
    assert said.out.tolist() == [0.5]
    assert book.error(said.out, [1.0]) == 0.125


@pytest.mark.mission("NNW-09", "NNW-10", "NNW-11")
@pytest.mark.parametrize("seed", range(5))
def test_moves_are_minus_the_gradient(seed):
    net, x, y = draw(seed)
    value = lambda vector: book.error(book.forward(unflat(vector, net), x).out, y)  # noqa: E731
    assert check_gradient(value, -flat(book.moves(net, x, y)), flat(net)) < 1e-8
    # g is minus the derivative by beta, the input of an output unit, and e by alpha, that of a hidden unit.
    said = book.forward(net, x)
    g, beta = book.output_gradient(said.out, y), said.b @ net.w
    assert check_gradient(lambda b: book.error(expit(b - net.theta), y), -g, beta) < 1e-8
    alpha = x @ net.v
    through = lambda a: book.error(expit(expit(a - net.gamma) @ net.w - net.theta), y)  # noqa: E731
    assert check_gradient(through, -book.hidden_gradient(said.b, net.w, g), alpha) < 1e-8
    moved = book.bp_step(net, x, y, 0.3)
    assert np.allclose(flat(moved), flat(net) + 0.3 * flat(book.moves(net, x, y)))


@pytest.mark.mission("NNW-13")
def test_layers_may_have_rates_of_their_own():
    net, x, y = draw(0)
    slow, fast = book.bp_step(net, x, y, (0.0, 0.5)), book.bp_step(net, x, y, (0.5, 0.0))
    whole = book.bp_step(net, x, y, 0.5)
    assert np.array_equal(slow.v, net.v)
    assert np.array_equal(fast.w, net.w)
    assert np.array_equal(slow.w, whole.w)
    assert np.array_equal(fast.v, whole.v)


@pytest.mark.mission("NNW-13")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["standard_bp", "accumulated_bp"])
def test_a_learner_takes_a_rate_for_each_layer(solver):
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(6, 3)), np.array([0, 1, 2, 0, 1, 2])
    net = draw(3, outputs=3)[0]
    model = started(net, solver, (0.2, 0.9)).fit(X, labels)
    parts = (net.v, net.w, -net.gamma, -net.theta)
    for have, given in zip((*model.coefs_, *model.intercepts_), parts, strict=True):
        have[:] = given
    model.fit(X, labels)
    if solver == "standard_bp":
        for x, y in zip(X, np.eye(3)[labels], strict=True):
            net = book.bp_step(net, x, y, (0.2, 0.9))
    else:
        mean = [np.mean(part, axis=0) for part in zip(*(book.moves(net, x, y) for x, y in zip(X, np.eye(3)[labels])))]
        net = book.Weights(*(part + rate * m for part, rate, m in zip(net, (0.2, 0.2, 0.9, 0.9), mean)))
    for have, want in zip((*model.coefs_, *model.intercepts_), (net.v, net.w, -net.gamma, -net.theta), strict=True):
        assert np.allclose(have, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "standard_bp", "learning_rate_init": (0.1, 0.1, 0.1)}, "a rate for each of 2 layers"),
        ({"solver": "adam", "learning_rate_init": (0.1, 0.1)}, "one for each layer"),
        ({"solver": "standard_bp", "learning_rate_init": (0.1, -0.1)}, "one for each layer"),
    ],
)
def test_rates_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MLPClassifier(4, **options).fit(SQUARE, XOR)


@pytest.mark.mission("NNW-12")
def test_the_accumulated_step_is_the_mean_of_single_steps():
    net, _, _ = draw(1)
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(7, 3)), rng.uniform(size=(7, 2))
    single = np.mean([flat(book.moves(net, x, y)) for x, y in zip(X, Y, strict=True)], axis=0)
    assert np.allclose(flat(book.accumulated_step(net, X, Y, 0.7)), flat(net) + 0.7 * single)


def started(net, solver, rate, epochs=1):
    """Return a learner that starts at a textbook network; its intercepts are minus the thresholds."""
    model = MLPClassifier(
        net.w.shape[0], "logistic", solver=solver, loss="squared_error", alpha=0.0, learning_rate_init=rate,
        shuffle=False, max_iter=1, tol=0.0, n_iter_no_change=np.inf, warm_start=True,
    )  # fmt: skip
    return model.set_params(max_iter=epochs)


@pytest.mark.mission("NNW-11", "NNW-12")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["standard_bp", "accumulated_bp"])
def test_the_learner_makes_the_moves_of_the_textbook(solver):
    rng = np.random.default_rng(2)
    X, labels = rng.normal(size=(9, 3)), np.array([0, 1, 2, 0, 1, 2, 2, 1, 0])
    Y = np.eye(3)[labels]
    net = draw(2, outputs=3)[0]
    model = started(net, solver, 0.4).fit(X, labels)
    for have, given in zip((*model.coefs_, *model.intercepts_), (net.v, net.w, -net.gamma, -net.theta), strict=True):
        have[:] = given
    model.fit(X, labels)
    if solver == "standard_bp":
        for x, y in zip(X, Y, strict=True):
            net = book.bp_step(net, x, y, 0.4)
    else:
        net = book.accumulated_step(net, X, Y, 0.4)
    for have, want in zip((*model.coefs_, *model.intercepts_), (net.v, net.w, -net.gamma, -net.theta), strict=True):
        assert np.allclose(have, want, rtol=1e-12, atol=1e-14)


@pytest.mark.mission("NNW-11")
@pytest.mark.filterwarnings("ignore")
def test_standard_back_propagation_learns_xor():
    model = MLPClassifier(
        4, "logistic", solver="standard_bp", loss="squared_error", alpha=0.0, learning_rate_init=1.0, max_iter=5000,
        tol=0.0, n_iter_no_change=np.inf, random_state=1,
    ).fit(SQUARE, XOR)  # fmt: skip
    assert model.loss_ < 0.01
    assert model.predict(SQUARE).tolist() == XOR.tolist()


@pytest.mark.mission("NNW-13")
@pytest.mark.filterwarnings("ignore")
def test_a_rate_too_large_makes_the_error_swing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    rises = []
    for rate in (0.05, 50.0):
        model = MLPClassifier(
            5, "tanh", solver="accumulated_bp", learning_rate_init=rate, max_iter=100, tol=0.0, n_iter_no_change=np.inf,
            random_state=0,
        ).fit(X, y)  # fmt: skip
        rises.append(int(np.sum(np.diff(model.loss_curve_) > 0)))
    assert rises[0] == 0
    assert rises[1] >= 10
