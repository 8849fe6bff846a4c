"""The error of a vote of independent members against enumeration and published values; selective risk against truth."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from assay.theory import holdout
from assay.theory.pac_bayes import independent_error, independent_error_bound


@pytest.mark.mission("ENS-03")
class TestExactError:
    @pytest.mark.parametrize(("T", "eps", "value"), [(5, 0.3, 0.16308), (25, 0.35, 0.0604449)])
    def test_published_values(self, T, eps, value):
        assert independent_error(T, eps) == pytest.approx(value, rel=1e-5)

    @pytest.mark.parametrize("T", range(1, 9))
    @pytest.mark.parametrize("eps", [0.0, 0.1, 0.49])
    def test_is_the_sum_over_all_outcomes(self, T, eps):
        total = 0.0
        for wrong in product([0, 1], repeat=T):
            if 2 * sum(wrong) >= T:  # a tie is an error
                total += np.prod([eps if one else 1 - eps for one in wrong])
        assert independent_error(T, eps) == pytest.approx(total, abs=1e-12)

    @pytest.mark.parametrize("eps", [0.5, 0.7, -0.1, np.nan])
    def test_refuses_members_that_are_no_better_than_chance(self, eps):
        for function in (independent_error, independent_error_bound):
            with pytest.raises(ValueError, match="error must be"):
                function(5, eps)

    @pytest.mark.parametrize("members", [0, 2.5, True])
    def test_refuses_no_members(self, members):
        with pytest.raises(ValueError, match="members"):
            independent_error(members, 0.3)


@pytest.mark.mission("ENS-04")
def test_bound_is_never_below_the_exact_error():
    assert independent_error_bound(25, 0.35) == pytest.approx(0.32465, abs=1e-5)
    for T in range(1, 60):
        for eps in np.linspace(0, 0.499, 25):
            assert independent_error(T, eps) <= independent_error_bound(T, eps) + 1e-15


class TestSelectiveRisk:
    """Shares are uniform on [0, 1]; a row with share s is wrong with probability (1 - s) / 2."""

    @staticmethod
    def risk(t):
        return (1 - t) / 4  # mean of (1 - s) / 2 over s > t

    @pytest.mark.parametrize("delta", [0.05, 0.5])
    def test_holds_for_all_thresholds_at_once(self, delta):
        """In how many of 300 draws does any limit, on the grid or between, lie below the truth?"""
        rng, broken, between = np.random.default_rng(4), 0, np.arange(0, 60, 7) / 64 + 1 / 200
        for _ in range(300):
            share = rng.random(150)
            wrong = rng.random(150) < (1 - share) / 2
            found = holdout.curve(share, wrong, delta)
            bad = np.any(found.limit < self.risk(found.threshold))
            for t in between:
                one = holdout.at_threshold(share, wrong, float(t), delta)
                bad |= one is not None and one.limit < self.risk(t)
            broken += bool(bad)
        assert broken <= binom.ppf(1 - 1e-6, 300, delta)

    def test_a_limit_that_does_not_pay_for_the_choice_is_broken(self):
        """The test above has power: limits at delta alone, the best of them chosen, break far more often."""
        from assay.theory.concentration import clopper_pearson_upper

        rng, broken = np.random.default_rng(4), 0
        for _ in range(300):
            share = rng.random(150)
            wrong = rng.random(150) < (1 - share) / 2
            for t in np.arange(0, 60) / 64:
                kept = share > t
                if kept.any() and clopper_pearson_upper(int(wrong[kept].sum()), int(kept.sum()), 0.05) < self.risk(t):
                    broken += 1
                    break
        assert broken > 30

    def test_ties_and_discrete_shares(self):
        """Votes of five members: shares are fifths, and only P[wrong | share > t] is bounded."""
        rng, broken = np.random.default_rng(1), 0
        values, chance = np.array([0.4, 0.6, 0.8, 1.0]), np.array([0.5, 0.3, 0.2, 0.05])
        for _ in range(300):
            at = rng.integers(0, 4, 100)
            wrong = rng.random(100) < chance[at]
            limit = holdout.at_threshold(values[at], wrong, 0.5, 0.2).limit
            broken += limit < chance[1:].mean()
        assert broken <= binom.ppf(1 - 1e-6, 300, 0.2)

    def test_no_decided_rows_say_nothing(self):
        assert holdout.at_threshold(np.array([0.2, 0.3]), np.array([False, True]), 0.9, 0.05) is None
