"""Constraints of parameters: what no compiled loop and no file can hold is refused before either sees it."""

from types import SimpleNamespace

import pytest
from sklearn.utils._param_validation import InvalidParameterError

from assay.decomposition import LatentDirichletAllocation
from assay.neural_network import BernoulliRBM
from assay.params import Function, NameOr, Number, check
from assay.semi_supervised import LabelPropagation
from assay.svm import NuSVR


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**70, 10**400, float("nan"), float("inf"), "1", None, True])
def test_numbers_are_what_a_double_or_64_bits_hold(value):
    with pytest.raises(ValueError, match="tol must be a finite number"):
        Number().check(SimpleNamespace(tol=value), "tol")


def test_numbers_at_the_ends_of_64_bits_pass():
    assert Number().check(SimpleNamespace(tol=2**63 - 1), "tol") == float(2**63 - 1)
    assert Number().check(SimpleNamespace(tol=-(2**63)), "tol") == -float(2**63)


def test_a_function_is_one_that_can_be_called():
    constraint = NameOr(Function("two rows"), "near")
    assert constraint.check(SimpleNamespace(kernel="near"), "kernel") == "near"
    assert constraint.check(SimpleNamespace(kernel=min), "kernel") is min
    for value in ("far", 1e-8, None, ["near"]):
        with pytest.raises(ValueError, match="kernel must be one of"):
            constraint.check(SimpleNamespace(kernel=value), "kernel")


@pytest.mark.parametrize(
    "model",
    [
        LabelPropagation(kernel=1e-8),
        LatentDirichletAllocation(mean_change_tol=2**70),
        BernoulliRBM(random_state=-1),
        BernoulliRBM(random_state=2**32),
    ],
)
def test_parameters_that_a_forged_file_held_are_refused(model):
    with pytest.raises(ValueError, match=r"kernel must be|mean_change_tol must be|Seed must be"):
        check(model)


def test_a_refused_parameter_is_scikit_learns_error():
    with pytest.raises(InvalidParameterError, match=r"nu must be a finite number > 0 and <= 1.*got 1\.5"):
        NuSVR(nu=1.5).fit([[0.0], [1.0]], [0.0, 1.0])
