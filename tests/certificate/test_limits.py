"""What a forged claim costs, and what it may be about: bounds on time and memory, sources that change, odd values."""

import math
import time
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import assay
from assay import scan
from assay.checker import verify as verify_module
from assay.checker.bounds.tails import ln, ln_patterns
from assay.checker.facts import TrainErrors
from assay.ensemble import RandomForestClassifier
from assay.guarantees.ledger import claim
from assay.linear_model import LinearRegression, LogisticRegression
from assay.theory import concentration


def labelled(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def with_params(certificate, name, **changes):
    """Return the certificate with parameters of one claim replaced."""
    claims = [
        replace(claim, params={**claim.params, **changes}) if claim.name == name else claim
        for claim in certificate.claims
    ]
    return replace(certificate, claims=tuple(claims))


def verdict_on(report, name):
    return next(verdict for verdict in report.verdicts if verdict.claim == name)


@pytest.fixture(scope="module")
def forest():
    X = labelled(600)[0]
    y = (X[:, 0] > 0).astype(int)
    model = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    return model, model.certify(X, y), X, y


class TestCost:
    def test_bags_are_no_larger_than_the_table(self, forest):
        model, certificate, X, y = forest
        assert assay.verify(certificate, model, X, y).holds
        began = time.process_time()
        report = assay.verify(with_params(certificate, "pac-bayes.vote", bag=3 * 10**8), model, X, y)
        assert time.process_time() - began < 5
        assert "larger than the table" in verdict_on(report, "pac-bayes.vote").reason

    def test_a_tree_has_no_more_leaves_than_its_bag_has_rows(self, forest):
        model, certificate, X, y = forest
        report = assay.verify(with_params(certificate, "pac-bayes.vote", bag=2), model, X, y)
        assert "more leaves" in verdict_on(report, "pac-bayes.vote").reason

    @pytest.mark.parametrize("rows", [10**9, 2**50])
    def test_rows_that_are_not_there_cost_nothing(self, forest, rows):
        model, certificate, X, y = forest
        data = {"train": replace(certificate.data["train"], rows=rows)}
        forged = replace(with_params(certificate, "pac-bayes.vote", rows=rows, bag=rows), data=data)
        began = time.process_time()
        report = assay.verify(forged, model, X, y)
        assert time.process_time() - began < 5
        assert not report.holds
        assert f"about {rows} train rows; {len(X)} are given" in report.reason
        assert not assay.verify(forged, model).holds

    def test_a_class_of_many_columns_is_counted_in_no_time(self):
        X, y = labelled(20_000)
        model = LogisticRegression().fit(X, y)
        certificate = model.certify(X, y)
        descriptor = {**certificate.find("vc").params["class"], "d": 99_000}
        began = time.process_time()
        assay.verify(with_params(certificate, "vc", **{"class": descriptor}), model, X, y)
        assert time.process_time() - began < 5

    def test_numbers_of_patterns_are_the_sums_of_binomials(self):
        for points, d in [(10, 3), (50, 49), (7, 9), (2500, 2000)]:
            exact = sum(math.comb(points, i) for i in range(min(d, points) + 1))
            assert abs(ln_patterns(points, d) - ln(exact)) < Decimal("1e-40")
        exact = ln(sum(math.comb(30_000, i) for i in range(2502)))
        assert exact <= ln_patterns(30_000, 2501) <= exact + Decimal("1e-6")

    def test_the_logarithm_of_a_long_number(self):
        with localcontext(prec=60):
            assert abs(ln(3**20_000) - 20_000 * ln(3)) < Decimal("1e-40")

    def test_many_classes_take_no_square_of_memory(self):
        """A leaf for each of 30,000 classes: a table of classes by classes would take 7 GB."""
        import tracemalloc

        from assay.checker.rules.trees import Trees

        labels = tuple(map(str, range(30_000)))
        none, leaf = np.array([-1]), np.zeros((1, 30_000))
        nodes = (np.array([0]), none, np.zeros(1), none, none, leaf, np.zeros((0, 0)))
        model = Trees("classifier", 1, *nodes, none, np.zeros(0), labels)
        tracemalloc.start()
        model.scores(np.zeros((10, 1)), np.zeros(1))
        assert tracemalloc.get_traced_memory()[1] < 2**26
        tracemalloc.stop()


class TestLimit:
    def test_what_is_not_judged_in_time_cannot_be_checked(self):
        X, y = labelled()
        model = LogisticRegression().fit(X, y)
        certificate = model.certify(X, y)
        report = assay.verify(certificate, model, X, y, limit=1e-9)
        assert not report.holds
        assert {verdict.status for verdict in report.verdicts} == {"REFUSED"}
        assert "within the limit of 1e-09 s" in report.reason
        assert assay.verify(certificate, model, X, y, limit=600).holds

    def test_the_time_may_be_over_between_two_blocks(self, monkeypatch):
        X, y = labelled()
        model = LogisticRegression().fit(X, y)
        certificate = model.certify(X, y)
        now = iter(range(10**6))
        monkeypatch.setattr("assay.checker.rule.time.monotonic", lambda: float(next(now)))
        seen = {
            verdict.status
            for limit in range(1, 60)
            for verdict in assay.verify(certificate, model, X, y, limit=limit).verdicts
        }
        assert seen <= {"PROVED", "PROVED-GIVEN", "REFUSED"}
        assert "REFUSED" in seen

    @pytest.mark.parametrize("limit", [0, -1.0, float("nan"), "1"])
    def test_a_limit_is_a_positive_number(self, limit):
        X, y = labelled()
        model = LogisticRegression().fit(X, y)
        with pytest.raises(ValueError, match="limit must be a number of seconds"):
            assay.verify(model.certify(X, y), model, X, y, limit=limit)

    def test_too_little_memory_is_no_proof_of_anything(self, monkeypatch):
        X, y = labelled()
        model = LogisticRegression().fit(X, y)
        certificate = model.certify(X, y)

        def without_memory(self, view):
            raise MemoryError

        monkeypatch.setattr(TrainErrors, "block", without_memory)
        verdict = verdict_on(assay.verify(certificate, model, X, y), "train.errors")
        assert verdict.status == "REFUSED"
        assert "too little memory" in verdict.reason


class TestSources:
    @pytest.mark.parametrize("kept", [0, 2**23])
    def test_a_file_that_is_replaced_between_passes_proves_nothing(self, kept, tmp_path, monkeypatch):
        """holdout.empirical-bernstein takes its mean from one pass and its variance from the next; few rows are kept
        and not read again."""
        monkeypatch.setattr(verify_module, "_KEPT", kept)
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2000, 2))
        y = X[:, 0] + rng.normal(size=2000) * 3
        model = LinearRegression().fit(X[:1000], y[:1000])
        held = (X[1000:], y[1000:])
        certificate = model.certify(X[:1000], y[:1000], holdout=held, clip=10.0)
        losses = np.minimum(np.abs(held[1] - model.predict(held[0])), 10.0)
        right = concentration.empirical_bernstein_upper(losses, 0.05, high=10.0)
        params = {"clip": 10.0, "rows": 1000}
        wrong = claim("holdout.empirical-bernstein", 0.98 * right, params, "holdout", "0.05")
        forged = replace(certificate, claims=(*(one for one in certificate.claims if one.is_fact), wrong))
        path = tmp_path / "held.parquet"
        still = model.predict(held[0]) + np.abs(y[1000:] - model.predict(held[0])).mean()

        def write(target):
            columns = {"a": held[0][:, 0], "b": held[0][:, 1], "y": target}
            pyarrow.parquet.write_table(pa.table(columns), path)

        class Replaced:
            """Rows of a file that is another one from the second pass on: every row errs by the mean error."""

            n_rows, passes = 1000, 0

            def blocks(self):
                write(held[1] if self.passes == 0 else still)
                self.passes += 1
                yield from scan.rows(str(path), "y").blocks()

        assert not assay.verify(forged, model, X[:1000], y[:1000], holdout=held).holds
        source = Replaced()
        report = assay.verify(forged, model, X[:1000], y[:1000], holdout=(source, None))
        verdict = verdict_on(report, "holdout.empirical-bernstein")
        assert verdict.status == "REJECTED"
        assert source.passes == (1 if kept else 2)
        assert "fingerprint differs" in verdict.reason or kept


class TestValues:
    def test_targets_and_weights_beyond_doubles_are_refused(self):
        X, large = labelled()[0], np.arange(120) + 2**53
        model = LinearRegression().fit(X, large)
        with pytest.raises(ValueError, match=r"y has integers beyond 2\^53"):
            model.certify(X, large)
        with pytest.raises(ValueError, match=r"sample_weight has integers beyond 2\^53"):
            model.certify(X, large.astype(float), sample_weight=large)
        small = large - 2**53
        model = LinearRegression().fit(X, small)
        certificate = model.certify(X, small)
        assert assay.verify(certificate, model, X, small).holds
        assert "y has integers beyond 2^53" in assay.verify(certificate, model, X, large).reason
        report = assay.verify(certificate, model, X, small, sample_weight=large)
        assert "sample_weight has integers beyond 2^53" in report.reason

    def test_labels_that_differ_by_a_last_nul_are_two(self):
        X, y = labelled()
        words = ["no" if label else "yes" for label in y]
        model = LogisticRegression().fit(X, words)
        certificate = model.certify(X, words)
        assert assay.verify(certificate, model, X, words).holds
        other = [word + "\0" for word in words]
        assert not assay.verify(certificate, model, X, other).holds
        with pytest.raises(ValueError, match="ends in a NUL character"):
            LogisticRegression().fit(X, other)
        with pytest.raises(ValueError, match="ends in a NUL character"):
            model.certify(X, other)

    def test_the_other_model_is_taken_as_given(self):
        X, y = labelled(400)
        model = LogisticRegression().fit(X[:200], y[:200])
        held = (X[200:], y[200:])
        certificate = model.certify(X[:200], y[:200], holdout=held, against=held[1])
        assert "taken as given" in certificate.find("holdout.paired").statement
        assert "hold-out labels in sight" in certificate.find("holdout.paired").statement


def copied(kind, X):
    """Return training rows that are given out as hold-out rows, and the training rows."""
    rng = np.random.default_rng(1)
    if kind == "one row twice":
        return X, np.vstack([X, X[:1]])
    if kind == "scaled":
        return X * (1 + 1e-12), X
    if kind == "nine":
        return X[:9], X
    if kind == "noise":
        return X * (1 + 1e-6 * rng.normal(size=X.shape)), X
    if kind == "some noise":
        return X + 1e-4 * np.abs(X) * rng.normal(size=X.shape), X
    return X[rng.permutation(len(X))], X


class TestCopies:
    @pytest.mark.parametrize("kind", ["one row twice", "scaled", "nine", "noise", "some noise", "shuffled"])
    def test_training_rows_again_are_not_held_out(self, kind):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 3 if kind == "some noise" else 40)), rng.integers(0, 2, 200)
        again, train = copied(kind, X)
        target = np.append(y, y[:1])[: len(train)]
        model = LogisticRegression(C=1e4).fit(train, target)
        held = (again, model.predict(again))
        certificate = model.certify(train, target, holdout=held)
        report = assay.verify(certificate, model, train, target, holdout=held)
        assert not report.holds
        assert "training rows again" in report.reason

    def test_without_the_training_rows_nobody_can_tell(self):
        X, y = labelled(200)
        model = LogisticRegression().fit(X, y)
        held = (X, y)
        certificate = model.certify(X, y, holdout=held)
        report = assay.verify(certificate, model, holdout=held)
        assert not report.holds
        assert "the training rows are needed too" in report.reason
        without = replace(certificate, data={"holdout": certificate.data["holdout"]})
        without = replace(without, claims=tuple(claim for claim in without.claims if claim.data == ("holdout",)))
        assert not assay.verify(without, model, holdout=held).holds

    def test_few_copies_are_counted_and_told(self):
        X, y = labelled(60)
        held = (np.vstack([X[:1], labelled(60, seed=1)[0]]), np.append(y[:1], labelled(60, seed=1)[1]))
        model = LogisticRegression().fit(X, y)
        certificate = model.certify(X, y, holdout=held)
        told = certificate.find("data.identity", set="holdout")
        assert told.params["near"] == 1
        assert "1 of them are training rows again" in told.statement
        assert assay.verify(certificate, model, X, y, holdout=held).holds
        lie = replace(told, params={**told.params, "near": 0})
        forged = replace(certificate, claims=tuple(lie if claim is told else claim for claim in certificate.claims))
        assert not assay.verify(forged, model, X, y, holdout=held).holds
