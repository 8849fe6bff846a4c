"""Boxes and balls: a hidden Markov model by hand (Li Hang, example 10.2), learnt again from what it draws
=======================================================================================================

Run `python examples/boxes_and_balls.py`.
"""

import itertools

import numpy as np

import assay
from assay.hmm import CategoricalHMM


def boxes() -> CategoricalHMM:
    """Return three boxes with red (0) and white (1) balls, and how one goes from box to box."""
    model = CategoricalHMM(3)
    model.startprob_ = np.array([0.2, 0.4, 0.4])
    model.transmat_ = np.array([[0.5, 0.2, 0.3], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    model.emissionprob_ = np.array([[0.5, 0.5], [0.4, 0.6], [0.7, 0.3]])
    return model


def by_enumeration(model: CategoricalHMM, balls: list[int]) -> float:
    """Return the probability of the balls, summed over all paths through the boxes."""
    total = 0.0
    for path in itertools.product(range(3), repeat=len(balls)):
        p = model.startprob_[path[0]] * model.emissionprob_[path[0], balls[0]]
        for (before, here), ball in zip(itertools.pairwise(path), balls[1:], strict=True):
            p *= model.transmat_[before, here] * model.emissionprob_[here, ball]
        total += p
    return float(total)


def main() -> None:
    model, balls = boxes(), [0, 1, 0]
    rows = np.array(balls)[:, None]
    print(f"p(red, white, red) = {np.exp(model.score(rows)):.6f}; over all 27 paths {by_enumeration(model, balls):.6f}")
    log_p, states = model.decode(rows)
    print(f"best path {tuple((states + 1).tolist())} with probability {np.exp(log_p):.4f}")

    # Who stays at a box for a while, with a colour of its own in most of its balls, betrays it: draws alone suffice.
    model.transmat_ = np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    model.emissionprob_ = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    draws = [model.sample(50, random_state=i)[0] for i in range(40)]
    X, lengths = np.concatenate(draws), [50] * 40
    learnt = CategoricalHMM(3, random_state=3, n_iter=100).fit(X, lengths)
    print(f"{learnt.monitor_.iter} steps of EM; contents of the boxes, in some order:")
    print(learnt.emissionprob_.round(2))
    certificate = learnt.certify(X, lengths=lengths)
    print(certificate)
    assert assay.verify(certificate, learnt, X).holds


if __name__ == "__main__":
    main()
