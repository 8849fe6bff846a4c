"""The bottleneck inside a network: identities of information, and a layer that forgets all but the label."""

import numpy as np
import pytest

from assay.linear_model import Ridge
from assay.neural_network import MLPClassifier, layer_information

RNG = np.random.default_rng(0)
X = RNG.normal(size=(256, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def net():
    return MLPClassifier((12, 1), "tanh", solver="lbfgs", alpha=1e-3, max_iter=2000, random_state=0).fit(X, Y)


def test_layers_obey_data_processing_and_the_rows_tell_all(net):
    found = layer_information(net, X, Y)
    assert len(found.about_rows) == len(found.about_labels) == 4  # the rows, two hidden layers, the outputs
    share = Y.mean()
    assert found.about_rows[0] == pytest.approx(np.log2(256))
    assert found.about_labels[0] == pytest.approx(-share * np.log2(share) - (1 - share) * np.log2(1 - share))
    assert (found.about_rows[1:] <= found.about_rows[0] + 1e-9).all()
    assert (found.about_labels[1:] <= found.about_labels[0] + 1e-9).all()
    assert (found.about_labels <= found.about_rows + 1e-9).all()


def test_a_narrow_layer_keeps_the_label_and_forgets_the_rest(net):
    assert net.score(X, Y) > 0.99
    found = layer_information(net, X, Y, bins=10)
    assert found.about_labels[2] > 0.9 * found.about_labels[0]
    assert found.about_rows[2] < 0.5 * found.about_rows[0]


def test_by_hand_on_four_rows():
    square, xor = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    net = MLPClassifier((), solver="lbfgs", random_state=0).fit(square, xor)
    net.network_weights_ = np.array([1.0, 0.0, 0.0])  # the score is the first column
    found = layer_information(net, square, xor, bins=2)
    assert found.about_rows.tolist() == pytest.approx([2.0, 1.0])
    assert found.about_labels.tolist() == pytest.approx([1.0, 0.0], abs=1e-12)


def test_what_has_no_layers_is_refused(net):
    with pytest.raises(ValueError, match="has no layers"):
        layer_information(Ridge().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="bins"):
        layer_information(net, X, Y, bins=1)
