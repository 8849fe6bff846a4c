"""One pass over the rows: the vote of its hypotheses, their mean risk, and the last of them, which is not covered."""

import numpy as np

from assay.linear_model import VotedPerceptron
from assay.theory.sequential import progressive_choice
from bench.worlds._case import case
from bench.worlds.machines import told

POINTS = np.random.default_rng(7).normal(size=(24, 3))
SECOND = np.where(POINTS @ [1.0, -1.0, 0.5] > 0, 0.95, 0.05)  # probability of the second class at each point


def rows(rng, n):
    """Draw rows from 24 equally likely points, which a plane tells apart but for one wrong label in twenty."""
    place = rng.integers(0, len(POINTS), n)
    y = (rng.random(n) < SECOND[place]).astype(int)
    y[:2] = 0, 1
    return POINTS[place], y


def risk(score):
    """Return the exact error rate of a score at the points; zero is an error whatever the class."""
    return float(np.mean(np.where(score > 0, 1 - SECOND, np.where(score < 0, SECOND, 1.0))))


def hypotheses(model):
    """Return the risk of each hypothesis that voted, and its votes."""
    steps = np.where(model.gained_ == 1, 1.0, -1.0)[:, None] * np.column_stack(
        [model.vectors_, np.ones(model.n_updates_)]
    )
    W = np.vstack([np.zeros(4), np.cumsum(steps, axis=0)])
    scores = np.column_stack([POINTS, np.ones(len(POINTS))]) @ W.T
    return np.array([risk(column) for column in scores.T]), model.votes_


@case("progressive.vote", "voted perceptron at 24 points, its claim, n = 800")
def vote(rng, delta):
    X, y = rows(rng, 800)
    model = VotedPerceptron(shuffle=False).fit(X, y)
    bound = told(model, X, y, delta, "progressive.vote")
    return bound < risk(model.decision_function(POINTS)), bound < 0.5


@case("progressive.vote", "mean risk of the hypotheses of a perceptron, better form, n = 150")
def mean_of_hypotheses(rng, delta):
    X, y = rows(rng, 150)
    model = VotedPerceptron(shuffle=False, burn_in=0.2).fit(X, y)
    losses = np.zeros(120)
    losses[: round(model.progressive_error_ * 120)] = 1.0
    risks, votes = hypotheses(model)
    bound = progressive_choice(losses, delta).bound
    return bound < risks @ votes / votes.sum(), bound < 0.5


@case("progressive.vote", "the last hypothesis in place of all", control=True)
def last_hypothesis(rng, delta):
    X, y = rows(rng, 800)
    model = VotedPerceptron(shuffle=False).fit(X, y)
    losses = np.zeros(800)
    losses[: model.n_updates_] = 1.0
    return progressive_choice(losses, delta).bound < hypotheses(model)[0][-1], True


@case("progressive.vote", "rows sorted by class before the pass", control=True)
def sorted_rows(rng, delta):
    X, y = rows(rng, 300)
    order = np.argsort(y, kind="stable")
    model = VotedPerceptron(shuffle=False).fit(X[order], y[order])
    losses = np.zeros(300)
    losses[: model.n_updates_] = 1.0
    risks, votes = hypotheses(model)
    return progressive_choice(losses, delta).bound < risks @ votes / votes.sum(), True


@case("compression.voted-perceptron", "voted perceptron rebuilt from its mistakes, n = 300")
def rebuilt_vote(rng, delta):
    place = rng.integers(0, len(POINTS), 300)
    X, y = POINTS[place], (SECOND[place] > 0.5).astype(int)
    model = VotedPerceptron(random_state=int(rng.integers(2**31))).fit(X, y)
    bound = told(model, X, y, delta, "compression.voted-perceptron")
    score = model.decision_function(POINTS)
    return bound < np.mean((score > 0) != (SECOND > 0.5)), bound < 0.5
