"""How many neighbours? The regions of a vote, what leaving one row out says of new data, and a few prototypes instead
===================================================================================================================

Run `python examples/nearest.py [regions.png]`; with a file name the regions are drawn (needs matplotlib).
"""

import sys

from sklearn.datasets import make_moons

import assay
from assay.neighbors import KNeighborsClassifier, LearningVectorQuantization


def main(regions: str | None = None) -> None:
    X, y = make_moons(4000, noise=0.3, random_state=0)
    new, truth = make_moons(20_000, noise=0.3, random_state=1)
    for k in (1, 5, 25):
        model = KNeighborsClassifier(k).fit(X, y)
        certificate = model.certify(X, y)
        assert assay.verify(certificate, model, X, y).holds
        lost, bound = certificate.find("knn.loo-errors").value / len(X), certificate.find("knn.loo").value
        print(
            f"{k:2d} neighbours: training error {1 - model.score(X, y):.3f}, left out {lost:.3f}, new rows "
            f"{1 - model.score(new, truth):.3f}, certified at most {bound:.3f}"
        )
    few = LearningVectorQuantization(3, schedule="inverse", random_state=0).fit(X, y)
    bound = few.certify(X, y).find("vc").value
    print(f"6 prototypes: new rows {1 - few.score(new, truth):.3f}, certified at most {bound:.3f}")
    if regions is not None:
        KNeighborsClassifier(25).fit(X[:400], y[:400]).plot().savefig(regions)


if __name__ == "__main__":
    main(*sys.argv[1:2])
