"""Probabilistic claims by simulation, 400 times, a third of them without `--long`; `python -m bench claims` runs the
release size."""

import pytest

from bench.claims import CASES, deltas, largest_accepted, simulate

RUNS = [(case, delta) for case in CASES for delta in deltas(case)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("case", "delta"), RUNS, ids=lambda v: v if isinstance(v, float) else f"{v.claim} {v.world}")
def test_claims_hold_and_controls_are_caught(case, delta):
    tally = simulate(case, delta, 40 if case.slow else 400)
    assert tally.sound, f"{tally.violations} violations of {tally.repetitions}, accepted to {tally.limit}"


def test_every_claim_is_informative_somewhere():
    claims = {case.claim for case in CASES if not case.control}
    informative = {case.claim for case in CASES if not case.control and simulate(case, 0.05, 20).informative >= 0.5}
    assert informative == claims


@pytest.mark.parametrize(
    ("runs", "delta", "limit"),
    [
        (400, 0.05, 44),
        (400, 0.2, 120),
        (1000, 0.05, 86),
        (1000, 0.2, 262),
        (2000, 0.05, 149),
        (10_000, 0.2, 2192),
    ],
)
def test_acceptance_table(runs, delta, limit):
    assert largest_accepted(runs, delta) == limit


@pytest.mark.long(by_hand="minutes; `python -m bench claims` does the same")
@pytest.mark.parametrize(("case", "delta"), RUNS, ids=lambda v: v if isinstance(v, float) else f"{v.claim} {v.world}")
def test_release_size(case, delta):
    assert simulate(case, delta, 2000).sound
