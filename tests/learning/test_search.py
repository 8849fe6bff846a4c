"""The rounds of the search: when it ends, who goes on, what is left to finish, and workers that are replaced."""

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

import assay
from assay.learning import jobs
from assay.learning import search as search_module
from assay.learning.events import Note
from assay.learning.jobs import Answer, Compiling
from assay.learning.problem import hold_out, usual_share
from assay.learning.search import Budget, Candidate, Search
from assay.theory.concentration import clopper_pearson_upper


def search(thorough=False, seconds=60.0):
    made = Search.__new__(Search)
    made.thorough, made.budget, made.all = thorough, Budget(seconds, None, None), []
    return made


def candidate(losses, **more):
    return Candidate("A", losses=list(losses), step=1, **more)


def test_a_round_counts_only_beyond_noise():
    """Gains on ten folds of mean 0.01: beyond two standard errors if they agree, within them if they do not."""
    old = candidate(np.full(10, 0.3))
    steady, noisy = candidate(np.full(10, 0.29)), candidate(0.29 + 0.05 * np.array([1, -1] * 5))
    rounds, asked = search(), search(thorough=True)
    assert rounds._improves(steady, old)
    assert not rounds._improves(noisy, old)
    assert asked._improves(noisy, old)
    assert not asked._improves(old, old)
    assert rounds._improves(old, None)
    assert not rounds._improves(None, None)


def test_who_is_clearly_behind_does_not_go_on():
    best, level = candidate(np.full(10, 0.2)), candidate(0.21 + 0.05 * np.array([1, -1] * 5))
    behind = candidate(0.3 + 0.05 * np.array([1, -1] * 5))
    assert search()._may_be_best(level, best)
    assert not search()._may_be_best(behind, best)


def test_a_learner_outside_the_first_list_must_be_better_beyond_noise():
    usual = candidate(np.full(10, 0.2))
    lucky = candidate(0.19 + 0.05 * np.array([1, -1] * 5), late=True)  # standard error 0.0167
    better = candidate(0.15 + 0.05 * np.array([1, -1] * 5), late=True)
    rounds = search()
    rounds.all = [lucky, usual]
    assert rounds.ranked() == [usual, lucky]
    rounds.all = [usual, lucky, better]
    assert rounds.ranked() == [better, usual, lucky]
    rounds.all = [lucky]
    assert rounds.ranked() == [lucky]


@pytest.mark.parametrize("n", [2_500, 14_000, 500_000])
def test_the_usual_share_has_nearly_the_least_bound_of_all(n):
    """Exact bounds of a learner that errs in 10 % of cases with all rows, and more with fewer."""

    def bound(share):
        held = round(share * n)
        return clopper_pearson_upper(round(held * 0.1 * (1 - share) ** -0.3), held, 0.05)

    assert bound(usual_share(n)) <= 1.005 * min(bound(share) for share in np.linspace(0.01, 0.25, 49))
    assert bound(usual_share(n)) < bound(0.25)


def test_of_groups_their_number_counts():
    group = np.repeat(np.arange(40), 2_000)
    held = hold_out(len(group), None, 0, group, None)
    assert len(np.unique(group[held])) == 10
    assert len(hold_out(len(group), None, 0, None, None)) < 0.1 * len(group)


def test_the_best_that_can_be_finished_comes_first(monkeypatch):
    rounds = search(seconds=10.0)
    slow, quick, slower = candidate([0.1], seconds=50.0), candidate([0.2], seconds=1.0), candidate([0.05], seconds=90.0)
    rounds.all = [slow, quick, slower]
    monkeypatch.setattr(Search, "finishing", lambda self, one: one.seconds)
    assert rounds.finishable() == [quick, slow, slower]
    assert rounds.reserve() == pytest.approx(0.3 + 1.4 * 1.0)


def test_at_the_end_of_the_time_the_best_is_still_first(monkeypatch):
    """All of a small table are finished at once: being the fastest is no merit."""
    rounds = search(seconds=10.0)
    rounds.budget.began -= 9.9
    best, quickest = candidate([0.1], seconds=0.2), candidate([0.2], seconds=0.01)
    rounds.all = [quickest, best]
    monkeypatch.setattr(Search, "finishing", lambda self, one: one.seconds)
    assert rounds.finishable() == [best, quickest]


def test_a_fit_timed_on_a_small_part_is_shared_by_all_threads_where_it_grows_with_the_rows():
    """Boosting of 475,000 rows was taken to last 38 s, by .5 s for 10,000 rows on one thread; it lasts 6 s on two."""
    from assay.ensemble import HistGradientBoostingClassifier
    from assay.svm import SVC

    rounds = search()
    rounds.pool = SimpleNamespace(size=2)
    rounds.rungs = [[SimpleNamespace(fit=range(rows))] for rows in (10_000, 400_000)]
    boosted, machine = (candidate([0.1], kind=kind) for kind in (HistGradientBoostingClassifier, SVC))
    boosted.step = machine.step = 0
    assert rounds._growth(boosted, 400_000) == pytest.approx(40 / 1.75)
    assert rounds._growth(boosted, 12_500) == pytest.approx(1.25**1.1)
    assert rounds._growth(machine, 400_000) == pytest.approx(40**1.1)
    boosted.step = 1
    assert rounds._growth(boosted, 475_000) == pytest.approx((475 / 400) ** 1.1)


def test_a_certificate_asks_for_no_more_answers_than_time_is_reserved_for(monkeypatch):
    """Of the learners that are fitted in no time and slow to answer: neighbours are looked for at each answer, among
    rows that are more than those of the fold."""
    from assay.neighbors import KNeighborsClassifier, _base, _k_neighbors, _search

    asked, made, look = [], [], _search.nearest
    for module in (_base, _k_neighbors):
        monkeypatch.setattr(module, "nearest", lambda engine, Q, *more: asked.append(len(Q)) or look(engine, Q, *more))
    run = Search.run

    def counted(self, *given):
        run(self, *given)
        made.append(self)
        asked.clear()

    monkeypatch.setattr(Search, "run", counted)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    table = {"a": x[:, 0], "b": x[:, 1], "y": np.where(x.sum(axis=1) > 0, "yes", "no")}
    assay.learn(table, "y", learners=["KNeighborsClassifier"], trials=1, workers=0)
    one = Candidate("A", seconds=0.0, per_row=1.0, kind=KNeighborsClassifier)
    assert sum(asked) * 300 / 240 <= made[0].finishing(one)  # 300 training rows, 240 of which were fitted
    assert made[0].finishing(one) < 2 * sum(asked)


def test_the_scores_of_pairs_of_classes_are_computed_once_for_a_certificate(monkeypatch):
    """An SVC of 26 classes was asked for all its scores again for each claim about each of 325 pairs."""
    from assay.svm import _claims

    asked, scores = [], _claims.computed_scores
    monkeypatch.setattr(_claims, "computed_scores", lambda m, block: asked.append(len(block.X)) or scores(m, block))
    table = assay.datasets.load("iris")
    study = assay.learn(table, "species", learners=["SVC"], trials=1, workers=0)
    made = [one.name for one in study.certificate.claims]
    assert made.count("kkt.residual") == 3
    assert 0 < sum(asked) <= 150


class Job:
    """A job that does what it is told in a worker."""

    def __init__(self, what):
        self.what = what

    class recipe:
        kind = "room.Job"

    def run(self):
        if self.what == "die":
            os._exit(9)
        if self.what == "sleep":
            time.sleep(600)
        return {"seconds": [0.0], "number": os.getpid()}


@pytest.mark.skipif(not jobs.can_fork(), reason="no workers here")
def test_a_worker_that_dies_or_takes_too_long_is_replaced():
    answers: dict[int, Answer] = {}
    begun = []
    with jobs.Pool(1) as pool:
        pool.run([Job("work")], answers.__setitem__, lambda place: None)
        first = answers[0].result["number"]
        pool.run(
            [Job("die"), Job("sleep"), Job("work")],
            answers.__setitem__,
            begun.append,
            limit=lambda: 0.5 if begun[-1] == 1 else None,  # the others may take as long as the machine does
        )
    assert "its process ended" in answers[0].note
    assert "stopped after" in answers[1].note
    assert answers[2].result["number"] not in (first, os.getpid())


class Clock:
    """A clock that goes on when workers are waited for."""

    now = 0.0

    def monotonic(self):
        return self.now


class Told:
    """A worker, and its pipe, that says what it is told to."""

    def __init__(self, home):
        self.pipe, self.place, self.aside, self.compiling, self.said = self, None, None, False, []

    def send(self, job):
        self.said = list(job[0])

    def recv(self):
        return self.said.pop(0)[1]

    def end(self):
        pass

    close = end


def waiting(clock):
    """Return a `wait` after which the clock is at the next thing that is said, or a tenth of the whole later."""

    def wait(pipes, timeout):
        first = min((one for one in pipes if one.said), key=lambda one: one.said[0][0])
        clock.now = min(first.said[0][0], clock.now + 10.0)
        return [one for one in pipes if one.said[0][0] <= clock.now]

    return wait


def test_the_time_does_not_run_out_while_workers_compile(monkeypatch):
    """Two workers compile for 100 s, one of them 40 s longer than the other, before 60 s of which they need 20."""
    clock, answers = Clock(), {}
    for module in (jobs, search_module):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(jobs, "wait", waiting(clock))
    monkeypatch.setattr(jobs, "_Worker", Told)
    pool = jobs.Pool(0)
    pool.size, pool._home = 2, True
    budget = Budget(60.0, None, None, lambda: pool.compiling)
    compiling = [(0.0, Compiling(True)), (100.0, Compiling(False)), (120.0, Answer({}))]
    longer = [(0.0, Compiling(True)), (140.0, Compiling(False)), (150.0, Answer({}))]
    pool.run(
        [compiling, longer], answers.__setitem__, lambda place: None,
        limit=lambda: 60.0, over=lambda: budget.left() == 0,
    )  # fmt: skip
    assert all(answers[place].result == {} for place in (0, 1))
    assert pool.compiling == pytest.approx(100 + 20 / 2 + 20)  # one of two, then the only one that has a job
    assert budget.spent() == pytest.approx(150 - 130)
    assert budget.left() == pytest.approx(40)


class Compile(Job):
    def run(self):
        import numba

        import assay.jit  # noqa: F401  (as every module of loops does)

        return {"seconds": [0.0], "number": numba.njit(lambda x: x + 1)(self.what)}


@pytest.mark.parametrize("size", [0, 1])
def test_a_pool_knows_that_its_workers_compile(size):
    answers: dict[int, Answer] = {}
    with jobs.Pool(size) as pool:
        pool.run([Compile(1)], answers.__setitem__, lambda place: None)
        assert answers[0].result["number"] == 2
        assert pool.compiling > 0


def test_a_time_begins_to_run_when_loops_are_there(monkeypatch):
    """Compiling for the first list of learners is told once and does not count, with a time that is asked for neither;
    for the learners tried after it, it does."""
    told, spent = [], []

    def judge(self, candidates, step):
        if not spent:
            self.pool._say_compiling()
            self.pool._say_compiling()
        self.pool.compiling += 1000.0 * self.pool.waits_for_loops
        spent.append(self.pool.compiling)

    monkeypatch.setattr(Search, "_judge", judge)
    monkeypatch.setattr(Search, "_is_over", lambda self: False)
    table = {"a": [1.0, 2.0] * 50, "y": ["a", "b"] * 50}
    with pytest.raises(ValueError, match="nothing was fitted"):
        assay.learn(table, "y", time=60.0, workers=0, tell=told.append)
    assert [one.text.code for one in told if isinstance(one, Note) and one.passing] == ["compiling"]
    rounds = len(spent) - 4  # then other learners, and combinations of the best
    assert spent == [1000.0 * (place + 1) for place in range(rounds)] + [1000.0 * rounds] * 4


def test_members_of_votes_are_ones_that_certificates_read():
    """With an MLP among the best, the vote is made of the others, so that it can be certified."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 2))
    table = {"a": x[:, 0], "b": x[:, 1], "y": np.where(x.sum(axis=1) + rng.normal(size=240) > 0, "yes", "no")}
    names = ["LogisticRegression", "MLPClassifier", "LinearDiscriminantAnalysis"]
    study = assay.learn(table, "y", learners=names, trials=40, workers=0)
    votes = [one for one in study.candidates if one.recipe is not None and one.recipe.members]
    assert votes
    assert all("MLPClassifier" not in one.name and one.status != "left out" for one in votes)


def test_equal_losses_are_ranked_by_order_not_by_who_was_done_first():
    rounds = search()
    late, early = candidate([0.2], number=1), candidate([0.2], number=2)
    rounds.all = [early, late]
    assert rounds.ranked() == [late, early]


def test_boosting_begins_with_leaves_that_fit_few_rows():
    """On 90 rows leaves of 20 leave a tree four of them: such boosting was taken for the worst learner of Servo."""
    from assay.ensemble import HistGradientBoostingRegressor
    from assay.linear_model import Ridge

    begin = HistGradientBoostingRegressor.card.begin
    assert begin(87) == {"min_samples_leaf": 2}
    assert begin(600) == {"min_samples_leaf": 15}
    assert begin(5_000) == {} == Ridge.card.begin(87)


def test_only_the_first_list_is_loaded_unless_learners_are_named():
    from assay.learning import spaces

    first, slow = spaces.suitable("classify", [], ["SVC"], 500, False)
    others = {kind.__name__ for kind in spaces.others("classify", [], ["SVC"], 500, first)}
    names = {kind.__name__ for kind in first}
    assert not slow
    assert "SVC" not in others | names
    assert "QuadraticDiscriminantAnalysis" in others
    assert not others & names
    assert spaces.others("classify", ["SVC"], [], 500, []) == []
    with pytest.raises(ValueError, match="is not a learner for classification"):
        spaces.suitable("classify", [], ["Ridge"], 500, False)


def test_votes_of_a_quick_search_have_members_that_were_judged_on_what_votes_read():
    """A forest reads nominal columns as they are, and a vote does not: it was judged on other columns."""
    rng = np.random.default_rng(1)
    x, word = rng.normal(size=240), rng.choice(["a", "b", "c"], size=240)
    table = {"x": x, "word": word, "y": np.where(x + (word == "a") + rng.normal(size=240) > 0, "yes", "no")}
    names = ["RandomForestClassifier", "LogisticRegression", "LinearDiscriminantAnalysis"]
    study = assay.learn(table, "y", learners=names, trials=30, workers=0)
    votes = [one for one in study.candidates if one.recipe is not None and one.recipe.members]
    assert votes
    assert all("RandomForest" not in one.name for one in votes)
