"""Claims about networks hold for honest fits; what is forged and sealed again is accepted only if it is true.

Truth is decided from the definitions, by code of this file and by formulas of `test_structure`.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import assay
from assay.bayes_net import BayesianNetwork, BayesianNetworkClassifier, ChowLiu
from assay.checker.audit import audit, sizes
from tests.bayes_net.networks import drawn, random_network
from tests.bayes_net.test_learners import with_gaps
from tests.bayes_net.test_structure import bdeu, log_likelihood, parameters
from tests.certificate import forge
from tests.certificate.forged_files import Parts, forgeries
from tests.certificate.test_forged_files import chosen, contradiction, opened, said, same


def sealed(certificate, model):
    """Return the certificate as one about this model, as whoever has the software can write it."""
    stored = model.stored()
    about = replace(certificate.model, learner=stored.learner, family=stored.family, digest=stored.digest())
    return replace(certificate, model=about)


def changed(certificate, code, **changes):
    claims = tuple(replace(c, **changes) if c.name == code else c for c in certificate.claims)
    return replace(certificate, claims=claims)


def verdict(certificate, model, X, code, y=None):
    report = assay.verify(certificate, model, X, y)
    position = [claim.name for claim in certificate.claims].index(code)
    return report.verdicts[position].status


def parents_of(model):
    return [tuple(model.edges_[model.edges_[:, 1] == i, 0].tolist()) for i in range(len(model.sizes_))]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "model",
    [
        BayesianNetwork(nominal="all"),
        BayesianNetwork(nominal="all", criterion="aic", max_parents=2, forbidden=[(0, 1)], required=[(2, 3)]),
        BayesianNetwork("exact", nominal="all", criterion="bdeu", alpha=0.0),
        BayesianNetwork("empty", nominal="all"),
        BayesianNetwork([(0, 1), (1, 2)], nominal="all", alpha=0.3),
        ChowLiu(nominal="all"),
        ChowLiu(2, nominal="all", alpha=0.0),
    ],
    ids=lambda model: repr(model).replace("\n", ""),
)
def test_honest_certificates_hold(model, seed):
    X = drawn(5, seed)
    certificate = model.fit(X).certify(X)
    report = assay.verify(certificate, model, X)
    assert report.holds, report.reason
    assert {"density.log-likelihood", "network.counts", "network.marginals"} <= {
        claim.name for claim in certificate.claims
    }
    assert certificate.find("network.counts").value == 0
    assert not assay.verify(certificate, model, X[::-1]).holds
    assert sizes(audit(certificate))[1] <= 500


def test_values_that_are_no_codes_and_frames():
    import pandas as pd

    X = np.array([-3.5, 10.0, 1e6])[drawn(4, 1) % 3]
    model = BayesianNetwork(nominal="all").fit(X)
    assert assay.verify(model.certify(X), model, X).holds
    frame = pd.DataFrame(np.array(["a", "b", "c"])[drawn(4, 1) % 3], columns=list("wxyz"))
    model = BayesianNetwork().fit(frame)
    assert assay.verify(model.certify(frame), model, model.codes(frame)).holds


def test_files(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.array(["x", "y"])[rng.integers(0, 2, 200)], "n": rng.normal(size=200)})
    model = BayesianNetwork().fit(frame)
    assay.save(model, tmp_path / "net.assay", certificate=model.certify(frame))
    again = assay.load(tmp_path / "net.assay").model
    assert np.array_equal(again.score_samples(frame), model.score_samples(frame))
    assert again.network_.names == ("a", "n")


def test_rows_with_gaps():
    X = with_gaps(drawn(5, 2), 0.15)
    for model in (BayesianNetwork(nominal="all"), ChowLiu(nominal="all", tol=1e-8)):
        certificate = model.fit(X).certify(X)
        report = assay.verify(certificate, model, X)
        assert report.holds, report.reason
        assert certificate.find("network.counts").value < 0.2
        assert not [
            claim for claim in certificate.claims if claim.name in ("chow-liu.optimal", "network.local-optimum")
        ]
        tight = changed(certificate, "network.counts", value=certificate.find("network.counts").value / 10)
        assert verdict(tight, model, X, "network.counts") == "REJECTED"
    y = (np.nan_to_num(X[:, 0]) > 0).astype(int)
    classifier = BayesianNetworkClassifier(nominal="all").fit(X, y)
    report = assay.verify(classifier.certify(X, y), classifier, X, y)
    assert report.holds, report.reason


def test_numbers_with_gaps():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    X = np.column_stack([kind, rng.normal(size=300) + 2 * kind, rng.normal(size=300)])
    X[::5, 2] = np.nan
    X[::7, 0] = np.nan
    for model in (BayesianNetwork(nominal=[0]), BayesianNetworkClassifier(nominal=[0])):
        y = kind if isinstance(model, BayesianNetworkClassifier) else None
        certificate = model.fit(X, y).certify(X, y)
        report = assay.verify(certificate, model, X, y)
        assert report.holds, report.reason
        other = X.copy()
        other[0, 1] = np.nan  # a column that has all its values
        moved = replace(certificate.data["train"], digest=forge.data_reference(other, y).digest)
        assert not assay.verify(replace(certificate, data={"train": moved}), model, other, y).holds
        model.gaps_ = model.gaps_ + 1
        assert not assay.verify(sealed(certificate, model), model, X, y).holds


@pytest.mark.parametrize("structure", ["greedy", "augmented", "naive"])
def test_classifiers(structure):
    X = drawn(5, 1)
    X, y = X[:, :4], X[:, 4]
    model = BayesianNetworkClassifier(structure, max_parents=2, nominal="all").fit(X, y)
    certificate = model.certify(X, y)
    report = assay.verify(certificate, model, X, y)
    assert report.holds, report.reason
    assert certificate.find("network.counts").value == 0
    if structure == "naive":
        assert not [claim for claim in certificate.claims if claim.name == "network.local-optimum"]
        return
    assert certificate.find("network.local-optimum").value < 1e-6
    assert len(certificate.find("network.local-optimum").witness["required"]) == (4 if structure == "augmented" else 0)
    model._keep(BayesianNetworkClassifier("naive", nominal="all").fit(X, y)._arrays())
    assert verdict(sealed(certificate, model), model, X, "network.local-optimum", y) == "REJECTED"


@pytest.mark.parametrize("seed", range(3))
def test_new_data(seed):
    net = random_network(5, seed)
    X, held = net.sample(400, random_state=0), net.sample(3000, random_state=1)
    model = BayesianNetwork(nominal="all").fit(X)
    certificate = model.certify(X, holdout=(held, None), clip=(0.0, 20.0))
    assert assay.verify(certificate, model, X, holdout=(held, None)).holds
    truth = -np.mean(model.score_samples(net.sample(200_000, random_state=2)))
    assert truth - 0.02 <= certificate.find("holdout.betting").value <= truth + 1


class TestForgeries:
    """Each is sealed with fingerprints that fit."""

    def certified(self, model, seed=0):
        X = drawn(5, seed)
        return model.fit(X), X, model.certify(X)

    def test_counts_of_other_rows(self):
        model, X, certificate = self.certified(BayesianNetwork(nominal="all"))
        model.counts_ = model.counts_.copy()
        model.counts_[0] += 1
        model._derive()
        forged = sealed(certificate, model)
        assert verdict(forged, model, X, "network.counts") == "REJECTED"
        honest = changed(forged, "network.counts", value=1.001)
        assert verdict(honest, model, X, "network.counts") == "PROVED"

    @pytest.mark.parametrize("criterion", ["bic", "bdeu"])
    @pytest.mark.parametrize("seed", range(3))
    def test_a_structure_that_one_change_would_better(self, criterion, seed):
        X = drawn(5, seed)
        greedy = BayesianNetwork(nominal="all", criterion=criterion).fit(X)
        certificate = greedy.certify(X)
        price = np.log(len(X)) / 2

        def cost(parents):
            if criterion == "bdeu":
                return bdeu(X, parents, 10.0)
            return price * parameters(X, parents) - log_likelihood(X, parents)

        for k in range(len(greedy.edges_)):
            fewer = np.delete(greedy.edges_, k, axis=0).tolist()
            other = BayesianNetwork(fewer, nominal="all").fit(X)
            model = BayesianNetwork(nominal="all", criterion=criterion).fit(X)
            model._keep(other._arrays())
            gain = cost(parents_of(model)) - cost(parents_of(greedy))  # at least this, by adding the edge again
            forged = sealed(certificate, model)
            assert verdict(forged, model, X, "network.local-optimum") == "REJECTED"
            assert (
                verdict(changed(forged, "network.local-optimum", value=0.99 * gain), model, X, "network.local-optimum")
                == "REJECTED"
            )

    def test_the_best_of_all_graphs(self):
        X = drawn(4, 1)
        exact = BayesianNetwork("exact", nominal="all").fit(X)
        certificate = exact.certify(X)
        empty = BayesianNetwork("empty", nominal="all").fit(X)
        lead = empty.score_ - exact.score_
        assert lead > 1
        exact._keep(empty._arrays())
        forged = sealed(certificate, exact)
        assert verdict(forged, exact, X, "network.optimum") == "REJECTED"
        assert verdict(changed(forged, "network.optimum", value=lead - 0.01), exact, X, "network.optimum") == "REJECTED"
        assert verdict(changed(forged, "network.optimum", value=lead + 0.01), exact, X, "network.optimum") == "PROVED"

    def test_the_best_tree(self):
        X = drawn(5, 3, n=1000)
        model = ChowLiu(nominal="all").fit(X)
        certificate = model.certify(X)
        best = model.information_ * len(X)
        rejected = 0
        for edges in (
            [(0, 1), (1, 2), (2, 3), (3, 4)],
            [(0, 4), (0, 3), (0, 2), (0, 1)],
            [(4, 1), (1, 0), (3, 2), (0, 3)],
        ):
            other = BayesianNetwork(edges, nominal="all").fit(X)
            gained = BayesianNetwork("empty", criterion="ll", nominal="all").fit(X).score_
            gained -= BayesianNetwork(edges, criterion="ll", nominal="all").fit(X).score_
            model._keep(other._arrays())
            forged = sealed(certificate, model)
            if gained < best - 1e-3:
                rejected += 1
                assert verdict(forged, model, X, "chow-liu.optimal") == "REJECTED"
                assert (
                    verdict(
                        changed(forged, "chow-liu.optimal", value=0.9 * (best - gained) / 4),
                        model,
                        X,
                        "chow-liu.optimal",
                    )
                    == "REJECTED"
                )
        assert rejected == 3

    @pytest.mark.parametrize(
        "edges", [[(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (1, 2), (3, 4)], [(0, 1), (2, 1), (3, 4), (1, 3)]]
    )
    def test_what_is_no_tree(self, edges):
        X = drawn(5, 3)
        model = ChowLiu(nominal="all").fit(X)
        certificate = model.certify(X)
        model._keep(BayesianNetwork(edges, nominal="all").fit(X)._arrays())
        assert verdict(sealed(certificate, model), model, X, "chow-liu.optimal") == "REJECTED"

    def test_marginals(self):
        model, X, certificate = self.certified(BayesianNetwork(nominal="all"))
        claim = certificate.find("network.marginals")
        told = claim.witness["marginals"]
        net = model.network_
        by_list = np.concatenate([net.infer(name, method="enumeration").table for name in net.names])
        assert told == pytest.approx(by_list, abs=1e-12)
        moved = told.copy()
        moved[0] += 1e-6
        forged = changed(certificate, "network.marginals", witness={"marginals": moved})
        assert verdict(forged, model, X, "network.marginals") == "REJECTED"
        assert verdict(changed(forged, "network.marginals", value=1.1e-6), model, X, "network.marginals") == "PROVED"

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("edges_", lambda a: np.vstack([a, [[a[0, 1], a[0, 0]]]])),  # a cycle of two
            ("edges_", lambda a: a[::-1]),
            ("edges_", lambda a: np.vstack([a, a[-1:]])),
            ("edges_", lambda a: a + 7),
            ("sizes_", lambda a: a + 1),
            ("sizes_", lambda a: -a),
            ("counts_", lambda a: -a),
            ("counts_", lambda a: a[:-1]),
            ("values_", lambda a: a[::-1]),
            ("values_", lambda a: a * 0),
            ("gaussians_", lambda a: np.ones(3)),
        ],
    )
    def test_arrays_that_are_no_network(self, name, change):
        model, X, certificate = self.certified(BayesianNetwork(nominal="all"))
        setattr(model, name, np.ascontiguousarray(change(getattr(model, name))))
        report = assay.verify(sealed(certificate, model), model, X)
        assert not report.holds

    def test_parameters_of_the_claim_are_read(self):
        model, X, certificate = self.certified(
            BayesianNetwork(nominal="all", max_parents=1, forbidden=[(0, 1)]), seed=4
        )
        claim = certificate.find("network.local-optimum")
        for params in (
            {"max_parents": 4},
            {"factor": 1e3},
            {"rows": 12},
            {"score": "aic"},
            {"n_forbidden": 0},
            {"more": 1},
        ):
            forged = changed(certificate, "network.local-optimum", params={**claim.params, **params})
            assert verdict(forged, model, X, "network.local-optimum") == "REJECTED", params

    def test_forged_with_the_old_seal(self):
        model, X, certificate = self.certified(BayesianNetwork(nominal="all"))
        model.counts_ = model.counts_ + 1
        assert not assay.verify(certificate, model, X).holds


def test_the_claim_of_a_case_is_bound_to_its_rows():
    X = drawn(4, 0)
    model = BayesianNetwork(nominal="all").fit(X)
    other = X.copy()
    other[0] = (other[0] + 1) % np.maximum(model.sizes_, 1)
    about = forge.data_reference(other.astype(float))
    certificate = model.certify(X)
    moved = replace(certificate, data={"train": replace(certificate.data["train"], digest=about.digest)})
    assert verdict(moved, model, other, "network.counts") == "REJECTED"


@pytest.mark.parametrize(
    "model", [BayesianNetwork(nominal="all"), BayesianNetworkClassifier(nominal="all")], ids=lambda m: type(m).__name__
)
def test_forged_files_of_networks_with_states(model, tmp_path):
    """The sweep over all learners fits numbers; here every stored item of a network with tables is forged."""
    X = np.array([2.0, 5.0, 7.5])[drawn(5, 3, n=120)]
    y = None if isinstance(model, BayesianNetwork) else drawn(5, 3, n=120)[:, 0]
    model.fit(X, y)
    assay.save(model, tmp_path / "net.assay", certificate=model.certify(X, y))
    parts = Parts.of((tmp_path / "net.assay").read_bytes())
    told, tried = said(model, X), 0
    for name, change in chosen(forgeries(parts), 120, 7):
        for seal in (False, True):
            forged = parts.copy()
            change(forged)
            try:
                if seal:
                    forged.seal()
            except ValueError:
                continue
            saved = opened(forged.content(), tmp_path / "file")
            tried += 1
            if saved and assay.verify(saved.certificate, saved.model, X, y).holds:
                assert same(said(saved.model, X), told) or (seal and not contradiction(saved.model, X)), name
    assert tried > 40


def test_a_family_costs_what_its_rows_cost_and_not_the_cells_of_its_table():
    """A table of 10^12 cells, nearly all of them empty: its cost is the one that the counts give, by hand."""
    from assay.checker.rules.bayes_nets import _occurring

    config = np.array([7, 7, 10**12 - 1, 10**12 - 2, 12])
    counts, rows = _occurring(config, 10**12, 10)
    assert counts.tolist() == [2, 1, 1, 1]
    assert rows.tolist() == [2, 1, 2]
    dense = np.random.default_rng(0).integers(0, 12, 200)
    for cells in (12, 10**6):
        counts, rows = _occurring(dense, cells, 3)
        assert counts.tolist() == np.bincount(dense).tolist()
        assert rows.tolist() == np.bincount(dense // 3).tolist()


class TestAnswers:
    """Claims about queries: what is most probable given evidence, and the probabilities of all states."""

    def model(self, seed=0):
        X = random_network(7, seed).sample(400, random_state=seed)
        return X, BayesianNetwork(nominal="all").fit(X)

    @pytest.mark.parametrize("seed", range(3))
    def test_honest_ones_hold(self, seed):
        X, model = self.model(seed)
        queries = [{}, {"x1": 0, "x4": 1.0}, (["x0", "x6"], {"x3": "1"})]
        certificate = model.certify(X, queries=queries)
        told = [claim for claim in certificate.claims if claim.name == "network.explanation"]
        assert [len(claim.params["states"]) for claim in told] == [7, 5, 2]
        assert all(claim.value < 1e-9 for claim in told)
        assert assay.verify(certificate, model, X).holds
        assert "Given x1 = 0, x4 = 1, no other states of 5 nodes" in str(certificate)
        assert "network.explanation" not in {one.name for one in model.certify(X).claims}

    @pytest.mark.parametrize(
        "params",
        [
            {"given": {"x9": "0"}},
            {"given": {"x1": "7"}},
            {"given": [0, 1]},
            {"states": {}},
            {"states": {"x1": "0"}},
            {"states": {"x0": 0}},
        ],
    )
    def test_forged_ones_do_not(self, params):
        X, model = self.model()
        certificate = model.certify(X, queries=[{"x1": 0, "x4": 1}])
        for code in ("network.explanation", "network.posterior"):
            told = certificate.find(code)
            if set(params) <= set(told.params):
                assert (
                    verdict(changed(certificate, code, params={**told.params, **params}), model, X, code) == "REJECTED"
                )

    def test_other_states_are_less_probable_by_what_the_checker_measures(self):
        X, model = self.model()
        given, net = {"x1": "0"}, model.network_
        certificate = model.certify(X, queries=[(["x0", "x2"], given)])
        best = net.map_query(["x0", "x2"], given)
        table = net.infer(["x0", "x2"], given, method="enumeration").table
        for a, b in product(range(net.sizes[0]), range(net.sizes[2])):
            params = {"given": given, "states": {"x0": str(a), "x2": str(b)}}
            gap = float(np.log(table.max() / table[a, b]))
            for value, wanted in ((gap + 1e-9, True), (gap - 1e-9, False)):
                if value >= 0:
                    forged = changed(certificate, "network.explanation", params=params, value=value)
                    assert (verdict(forged, model, X, "network.explanation") == "PROVED") is wanted
        assert best.log_probability == pytest.approx(np.log(table.max()))

    def test_probabilities_that_are_off(self):
        X, model = self.model()
        certificate = model.certify(X, queries=[{"x1": 0}])
        told = certificate.find("network.posterior")
        moved = told.witness["marginals"].copy()
        moved[:2] += [1e-6, -1e-6]
        assert (
            verdict(
                changed(certificate, "network.posterior", witness={"marginals": moved}), model, X, "network.posterior"
            )
            == "REJECTED"
        )
        other = changed(certificate, "network.posterior", params={"given": {"x1": "1"}})
        assert verdict(other, model, X, "network.posterior") == "REJECTED"
        by_hand = model.network_.infer("x6", {"x1": 0}, method="enumeration").table
        assert told.witness["marginals"][-len(by_hand) :] == pytest.approx(by_hand, abs=1e-12)

    def test_it_stands_beyond_the_range_of_doubles(self):
        """Of 1,500 children of one root, evidence about all of them has a probability of about e^-1000."""
        rng = np.random.default_rng(0)
        root = rng.integers(0, 2, 40)
        X = np.column_stack([root, *(np.where(rng.random(40) < 0.6, root, 1 - root) for _ in range(1500))])
        model = BayesianNetwork([(0, i) for i in range(1, 1501)], nominal="all").fit(X)
        given = {f"x{i}": i % 2 for i in range(1, 1501)}
        certificate = model.certify(X, queries=[given])
        assert model.network_.log_evidence(given) < -900
        assert assay.verify(certificate, model, X).holds
