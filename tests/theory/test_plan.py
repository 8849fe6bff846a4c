"""Sample sizes: reference values, minimality and round trips."""

import math

import pytest

from assay.theory import pac, plan, vc
from assay.theory.concentration import clopper_pearson_upper
from assay.theory.spaces import Finite, HalfSpaces, Intervals, Unbounded


@pytest.mark.parametrize(
    ("d", "epsilon", "blumer", "growth", "ghost"), [(3, 0.1, 1686, 680, 250), (11, 0.05, 14120, 5057, 1904)]
)
@pytest.mark.mission("LTH-16")
def test_reference_values_of_the_separable_case(d, epsilon, blumer, growth, ghost):
    assert plan.vc_realizable_rows(epsilon, 0.05, d) == blumer

    def log_growth(n):
        return vc.log_sauer(n, d)

    assert plan.growth_realizable_rows(epsilon, 0.05, log_growth) == growth
    assert plan.ghost_rows(epsilon, 0.05, log_growth) == ghost


@pytest.mark.parametrize(
    ("error", "width", "binomial", "by_kl", "hoeffding"),
    [
        (0.0, 0.02, 149, 149, 3745),
        (0.05, 0.02, 472, 884, 3745),
        (0.2, 0.02, 1201, 2513, 3745),
        (0.2, 0.01, 4557, 9823, 14979),
    ],
)
def test_reference_values_of_hold_out_sets(error, width, binomial, by_kl, hoeffding):
    rows = plan.holdout_rows(width, 0.05, error=error)
    assert (rows.kl, rows.hoeffding) == (by_kl, hoeffding)
    assert rows.first <= binomial <= 1.01 * rows.first  # the printed number is among the first that work

    def reaches(m):
        k = math.ceil(error * m - 1e-9)
        return k < m and clopper_pearson_upper(k, m, 0.05) - k / m <= width

    assert next(m for m in range(1, 5000) if reaches(m)) == rows.first
    assert all(reaches(m) for m in range(rows.safe, rows.safe + 300))


def test_hold_out_set_for_the_best_of_several_models():
    assert plan.holdout_rows(0.02, 0.05, candidates=10) == plan.holdout_rows(0.02, 0.005)
    assert plan.holdout_rows(0.05, 0.05).first == math.ceil(math.log(0.05) / math.log(0.95))
    binomial, hoeffding = plan.holdout_width(472, 0.05, errors=24)
    assert binomial == pytest.approx(0.01992, abs=1e-5)
    assert hoeffding == pytest.approx(math.sqrt(math.log(20) / 944))


@pytest.mark.mission("LTH-37")
def test_a_finite_vc_dimension_is_learnable():
    """The VC bound inverted at epsilon/2: minimal, monotone, and back."""
    for d in (1, 3, 10):
        for epsilon in (0.3, 0.1):
            n = plan.erm_rows(epsilon, 0.05, d)
            deviation = vc.uniform_deviation(n, 0.05, lambda N, d=d: vc.log_sauer_simple(N, d))
            before = vc.uniform_deviation(n - 1, 0.05, lambda N, d=d: vc.log_sauer_simple(N, d))
            assert deviation <= epsilon / 2 < before
    sizes = [plan.erm_rows(0.1, 0.05, d) for d in (1, 2, 5, 20)]
    assert sizes == sorted(sizes)
    assert plan.erm_rows(0.05, 0.05, 3) > plan.erm_rows(0.1, 0.05, 3) < plan.erm_rows(0.1, 0.01, 3)


def test_closed_forms_imply_their_bounds():
    for d in (1, 5, 40):
        for epsilon in (0.05, 0.2, 0.5):
            n = plan.vc_agnostic_rows(epsilon, 0.05, d)
            assert vc.massart_deviation(n, 0.05, vc.log_sauer(n, d)) <= epsilon
            assert plan.massart_rows(epsilon, 0.05, lambda N, d=d: vc.log_sauer(N, d)) <= n
            n = plan.vc_realizable_rows(epsilon, 0.05, d)
            assert vc.realizable_growth_bound(n, 0.05, vc.log_sauer(2 * n, d)) <= epsilon


def test_searches_are_minimal():
    log_growth = Intervals().log_growth
    n = plan.ghost_rows(0.1, 0.05, log_growth)
    assert vc.ghost_sample_bound(0, n, log_growth, 0.05).bound <= 0.1
    assert vc.ghost_sample_bound(0, n - 1, log_growth, 0.05).bound > 0.1
    n = plan.ghost_rows(0.1, 0.05, log_growth, training_error=0.25)
    assert vc.ghost_sample_bound(math.ceil(0.25 * n), n, log_growth, 0.05).bound <= 0.35
    n = plan.compression_rows(0.1, 0.05, 3, largest=10)
    assert 1 - (0.05 / 11 / math.comb(n, 3)) ** (1 / (n - 3)) <= 0.1
    assert 1 - (0.05 / 11 / math.comb(n - 1, 3)) ** (1 / (n - 4)) > 0.1
    n = plan.pac_bayes_rows(0.2, 0.05, 0.1, 5.0)
    kl = 0.1 * math.log(0.1 / 0.2) + 0.9 * math.log(0.9 / 0.8)
    assert (5 + math.log(2 * math.sqrt(n) / 0.05)) / n <= kl * (1 + 1e-6)
    assert (5 + math.log(2 * math.sqrt(n - 1) / 0.05)) / (n - 1) > kl * (1 - 1e-6)


def test_other_closed_forms():
    assert [plan.conformal_rows(alpha, 0.05) for alpha in (0.1, 0.05, 0.01)] == [29, 59, 299]
    assert plan.margin_rows(0.1, 0.05, 2.0, 1.5) == math.ceil(((6 + math.sqrt(math.log(20) / 2)) / 0.1) ** 2)
    assert plan.rademacher_draws(0.017, 1000) == math.ceil(2 * math.log(1e6) / (1000 * 0.017**2))


@pytest.mark.mission("LTH-52")
def test_table_of_bounds_marks_the_smallest():
    for space, errors in ((HalfSpaces(10), 0), (HalfSpaces(10), 50), (Finite(1000), 3)):
        lines = plan.error_guaranteed(1000, 0.05, space, errors=errors)
        values = [line.value for line in lines]
        assert [line.value for line in lines if line.recommended] == [min(values)]
        assert all(value >= errors / 1000 for value in values)
        alone = plan.error_guaranteed(1000, 0.05, space, errors=errors, shared=False)
        assert all(a.value <= b.value for a, b in zip(alone, lines))  # choosing afterwards is paid for
    by_name = {
        line.theorem: line.value for line in plan.error_guaranteed(1000, 0.05, Finite(1000), errors=3, shared=False)
    }
    assert by_name["finite class"] == pac.finite_class_bound(3, 1000, 0.05, 1000)
    growth = HalfSpaces(10).log_growth
    for shared, part in ((False, 0.05), (True, 0.05 / 4)):  # four theorems speak of a consistent half-space
        found = {line.theorem: line.value for line in plan.error_guaranteed(9000, 0.05, HalfSpaces(10), shared=shared)}
        assert found == {
            "VC inequality": vc.uniform_deviation(9000, part, growth),
            "growth function through Rademacher averages": vc.massart_bound(0, 9000, part, growth),
            "exact ghost sample": vc.ghost_sample_bound(0, 9000, growth, part).bound,
            "growth function, consistent": vc.realizable_growth_bound(9000, part, growth),
        }
    erring = plan.error_guaranteed(9000, 0.05, HalfSpaces(10), errors=30, shared=False)
    assert {line.theorem: line.value for line in erring}["VC inequality"] == pytest.approx(
        30 / 9000 + vc.uniform_deviation(9000, 0.05, growth)
    )
    assert len(erring) == 3


def test_rows_needed_lists_every_theorem_that_applies():
    separable = plan.rows_needed(0.1, 0.05, HalfSpaces(2))
    by_name = {line.theorem: line.value for line in separable}
    assert by_name["exact ghost sample"] == plan.ghost_rows(0.1, 0.05, HalfSpaces(2).log_growth)
    assert by_name["VC dimension, consistent (Blumer et al.)"] == 1686
    assert [line.value for line in separable if line.recommended] == [min(by_name.values())]
    finite = plan.rows_needed(0.1, 0.05, Finite(3**10), training_error=0.2)
    assert {line.claim for line in finite} == {"finite-class", "vc"}
    excess = plan.rows_needed(0.1, 0.05, Finite(100), excess=True)
    assert min(line.value for line in excess) == pac.erm_sample_size(0.1, 0.05, 100)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plan.vc_realizable_rows(0.0, 0.05, 3), "epsilon must lie"),
        (lambda: plan.holdout_rows(0.02, 2.0), "delta must lie"),
        (lambda: plan.pac_bayes_rows(0.1, 0.05, 0.2, 1.0), "target must exceed"),
        (lambda: plan.ghost_rows(1e-13, 0.05, lambda N: 1.0), "more than 2\\^40"),
        (lambda: plan.rows_needed(0.1, 0.05, Unbounded("RBF kernel")), "no finite capacity"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
