"""Sample compression of a kernel perceptron: stored rows and numbers of updates (compression.kernel-perceptron)."""

import math
from decimal import localcontext
from typing import Any

import numpy as np

from assay.checker.bounds.compression import SLIP, WORD, Rebuilt, ln_counts
from assay.checker.bounds.tails import ln
from assay.checker.record import Rejected
from assay.checker.rule import Rule, View
from assay.checker.rules.expansions import Expansion


class KernelPerceptronCompression(Rule):
    """compression.kernel-perceptron: f = sum beta_j (kappa(v_j, x) + 1), the 1 with an intercept, is rebuilt from the
    v_j, which are training rows, and |beta_j|, numbers of updates told as in compression.perceptron; 64 bits for each
    number of the kernel that is `told`."""

    def prepare(self) -> None:
        self.shared = Rebuilt()
        self.shared.check_claim(self)
        model: Any = self.model
        if not isinstance(model, Expansion) or model.kind == "precomputed":
            raise Rejected("it needs a classifier that is an expansion over rows")
        self.told, coef = self.count("told"), model.coef
        sums = [math.fsum(one) if self.flag("intercept") else 0.0 for one in coef]
        if np.any(coef != np.rint(coef)) or np.any(np.abs(coef) > 2.0**53) or list(model.b) != sums:
            raise Rejected("coefficients must be numbers of updates, and the offset their sum (0 without intercept)")
        self.order = np.argsort(model.support, kind="stable")
        self.kept, self.signed = model.support[self.order], coef[:, self.order]
        if not len(self.kept) or np.any(self.kept[1:] == self.kept[:-1]) or not self.signed.any(axis=0).all():
            raise Rejected("support_ is empty, names a row twice, or one without an update")
        self.positive = np.arange(len(coef)) if len(coef) > 1 else np.array([1])
        self.found = 0

    def block(self, view: View) -> None:
        where, inside = view.pick(self.kept)
        if not np.array_equal(view.X[inside], self.model.vectors[self.order[where]]):
            raise Rejected("a stored vector is not the row that support_ names")
        signs = np.where(view.codes[inside] == self.positive[:, None], 1.0, -1.0)
        if np.any(self.signed[:, where] * signs < 0):
            raise Rejected("an update has the sign of another class")
        self.found += len(inside)
        self.shared.count_outside(view, self.kept, np.zeros(len(view.X)))

    def measure(self) -> float:
        if self.found != len(self.kept):
            raise Rejected("not every stored vector is a training row")
        with localcontext(prec=60):
            message = ln_counts(np.abs(self.signed.T).astype(np.int64)) - self.told * WORD * ln(2) - SLIP
        return self.shared.limit(self, len(self.kept), message)
