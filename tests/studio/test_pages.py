"""Every page does what a person came for, without JavaScript."""

import re
import string
import time
from html import unescape
from importlib.resources import files
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay import persist
from assay.report.env import LANGUAGES, translator
from assay.studio.app import studio
from assay.studio.security import Settings
from assay.studio.tasks.trying import predict
from tests.studio.conftest import HERE, PORT, Person


def test_a_table_is_opened_and_summed_up(person: Person) -> None:
    rows = "\n".join(f"{i},{i % 7},{'yes' if i % 3 else 'no'},same" for i in range(60))
    page = person.upload(f"id,size,good,fixed\n{rows}\n".encode())
    assert page.status_code == 200
    assert page.url.path.startswith("/tables/")
    assert "60 rows, 4 columns" in page.text
    assert "identifier?" in page.text
    assert "constant" in page.text


def test_types_and_target_are_corrected(person: Person) -> None:
    rows = "\n".join(f"{i % 5},{i % 2},{'abc'[i % 3]}" for i in range(60))
    table = person.upload(f"code,y,size\n{rows}\n".encode()).url.path
    page = person.post(f"{table}/look", {"target": "y", "kind0": "nominal", "kind2": "ordered", "levels2": "c, b, a"})
    assert "Predict “y”" in page.text
    seen = next(iter(person.workspace.tables.values())).seen
    assert [one["kind"] for one in seen["columns"]] == ["nominal", "numeric", "ordered"]


def test_columns_of_a_bundled_table_are_corrected_left_out_and_taken_back(person: Person) -> None:
    table = person.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
    entry = next(iter(person.workspace.tables.values()))
    names = [one["name"] for one in entry.seen["columns"]]
    late, age = names.index("late"), names.index("age")
    person.post(f"{table}/look", {f"kind{late}": "nominal", f"kind{age}": "out"})
    kinds = {one["name"]: one["kind"] for one in entry.seen["columns"]}
    assert kinds["late"] == "nominal"
    assert kinds["history"] == "ordered"
    assert "age" not in kinds
    run = person.learn(table, learners="GaussianNB")
    assert "age" not in [one["name"] for one in person.workspace.runs[run.rsplit("/", 1)[1]].found["columns"]]
    assert "The certificate holds" in person.post(f"{run}/verify").text
    page = person.post(f"{table}/look", {"back": "age"}).text
    assert "age" in [one["name"] for one in entry.seen["columns"]]
    assert "Left out by you" not in page


def test_one_button_learns_what_the_table_of_columns_says(person: Person) -> None:
    """The target and the types that are chosen count although nobody pressed the button that applies them."""
    table = person.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
    entry = next(iter(person.workspace.tables.values()))
    age = [column["name"] for column in entry.seen["columns"]].index("age")
    chosen = {"target": "income", f"kind{age}": "out", "metric": "balanced", "learners": "Ridge"}
    run = person.workspace.runs[person.learn(table, **chosen).rsplit("/", 1)[1]]
    assert (run.target, run.found["target"], run.found["task"]) == ("income", "income", "regress")
    columns = [column["name"] for column in run.found["columns"]]
    assert "age" not in columns
    assert "default" in columns


def test_a_target_that_is_left_out_begins_no_study(person: Person) -> None:
    table = person.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
    entry = next(iter(person.workspace.tables.values()))
    place = [column["name"] for column in entry.seen["columns"]].index("income")
    page = person.post(f"{table}/learn", {"target": "income", f"kind{place}": "out"})
    assert page.url.path == table
    assert not person.workspace.runs


@pytest.mark.long
def test_wide_tables_show_columns_by_search_and_pages_with_the_target_always(person: Person) -> None:
    names = [f"x{i:03d}" for i in range(180)] + ["goal"]
    rows = "\n".join(",".join(str((i * 7 + j * j) % (3 + j % 5)) for j in range(181)) for i in range(40))
    table = person.upload(f"{','.join(names)}\n{rows}\n".encode()).url.path
    first = person.get(table).text
    assert "x049" in first
    assert 'name="kind50"' not in first
    page = person.post(f"{table}/look", {"kind3": "out", "from": "150"})
    assert page.url.query == b"from=150"
    assert 'name="kind179"' in page.text
    assert 'value="goal" aria-label' in page.text
    found = person.post(f"{table}/look", {"q": "X17"}).text
    assert "10 columns match" in found
    assert sum(f'name="kind{i}"' in found for i in range(181)) == 11


def test_a_page_is_shown_before_its_answer_and_filled_in() -> None:
    """Nobody waits for a process that loads: the page says that it is being worked out, and asks again by itself."""
    known = Settings(("127.0.0.1",), PORT, patience=0.0)
    with TestClient(studio(known, "iris"), base_url=HERE) as client:
        client.get(f"/open?token={known.token}")
        places = ["/plan", "/learn", "/learn?name=SVC", *re.findall(r'href="(/tables/[^"]+)"', client.get("/").text)]
        for place in places:
            first = client.get(place).text
            assert "data-wait" in first
            assert '<noscript><meta http-equiv="refresh" content="1">' in first
        end = time.monotonic() + 300  # for the test that fails: the answers take a second or two
        for place in places:
            while "data-wait" in (page := client.get(place).text):
                assert 'role="alert"' not in page
                assert time.monotonic() < end, f"{place} is never filled in"
        assert "species" in page


def test_a_column_that_gives_the_answer_away_is_named(person: Person) -> None:
    rows = "\n".join(f"{i % 13},{i % 2},{'yes' if i % 2 else 'no'}" for i in range(200))
    assert "gives the target away?" in person.upload(f"a,copy,y\n{rows}\n".encode()).text


def test_the_run_page_has_the_leaderboard_and_its_baseline(learnt: Any) -> None:
    page = learnt.person.get(learnt.run).text
    rows = next(iter(learnt.person.workspace.runs.values())).found["leaderboard"]
    assert page.count('<th scope="row">') == sum(not row["more"] for row in rows) >= 4
    assert "Baseline" in page
    assert "chosen" in page
    ended = learnt.person.get(f"{learnt.run}/events").text
    assert "event: end" in ended


def test_the_stop_button_keeps_the_best_so_far(person: Person) -> None:
    """A study with minutes to go is stopped at its first certified or ranked row: it ends with a model all the same."""
    table = person.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
    path = person.post(f"{table}/learn", {"time": "600"}).url.path
    run = person.workspace.runs[path.rsplit("/", 1)[1]]
    seen = 0
    while not any(event["kind"] == "finished" for event in run.job.events):
        assert person.client.portal.call(run.job.changed, seen, 120.0)
        seen = run.job.version
    page = person.post(f"{path}/stop").text
    assert "Stopping" in page or "Done" in page
    person.client.portal.call(run.job.done)
    assert run.job.status == "done", run.job.refusal
    assert run.job.stopping
    assert run.found["claims"]
    assert persist.load(run.folder / "model.assay").certificate is not None


def test_the_tree_is_drawn_in_the_words_of_the_table(person: Person) -> None:
    table = person.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
    path = person.learn(table, learners="DecisionTreeClassifier")
    page = unescape(person.get(f"{path}/model").text)
    run = person.workspace.runs[path.rsplit("/", 1)[1]]
    drawn = run.found["figures"]["structure"]["tree"]
    conditions = [node["condition"] for node in drawn[1:]]
    names = [column["name"] for column in run.found["columns"]]
    assert 2 <= len(conditions) <= 14
    assert all(any(one.startswith(f"{name} ") for name in names) for one in conditions)
    assert all(one[:22].rstrip() in page for one in conditions)
    assert all(node["parent"] < i for i, node in enumerate(drawn))
    assert len({line[0] for line in run.found["figures"]["hardest"]}) == 10
    assert "Where it is wrong" in page
    for column, name, *_ in run.found["figures"]["subgroups"]:
        assert column in page
        assert name in page


@pytest.mark.long
def test_support_vectors_are_ringed(person: Person) -> None:
    table = person.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
    path = person.learn(table, learners="SVC")
    shown = person.workspace.runs[path.rsplit("/", 1)[1]].found["figures"]["structure"]
    share = len(shown["vectors"]["rings"]) / len(shown["vectors"]["points"])
    assert share == pytest.approx(shown["support"][0] / shown["support"][1], abs=0.1)
    assert person.get(f"{path}/model").text.count('class="ring"') == len(shown["vectors"]["rings"])


def test_model_and_report_are_downloaded(learnt: Any, tmp_path: Any) -> None:
    answer = learnt.person.get(f"{learnt.run}/files/model.assay")
    assert "attachment" in answer.headers["content-disposition"]
    (tmp_path / "m.assay").write_bytes(answer.content)
    assert persist.load(tmp_path / "m.assay").certificate is not None
    report = learnt.person.get(f"{learnt.run}/files/report.html").text
    assert "What is certified" in report
    own = r'<style>.*</style>|<link rel="icon" href="data:[^"]*">'
    assert not re.search(r"https?:|//", re.sub(own, "", report, flags=re.DOTALL))


def test_the_model_page_explains_every_claim(learnt: Any) -> None:
    page = learnt.person.get(f"{learnt.run}/model").text
    found = next(iter(learnt.person.workspace.runs.values())).found
    said = unescape(page)
    for claim in found["claims"]:
        assert claim["says"] in said
        assert translator("en")(claim["means"]) in said
    assert page.count("What this means") == len(found["claims"])


def test_the_certificate_is_verified_again_with_its_audit(learnt: Any) -> None:
    page = learnt.person.post(f"{learnt.run}/verify").text
    assert "The certificate holds" in page
    assert "checker/verify.py" in page


def test_the_band_holds_at_every_threshold_and_the_cost_follows(learnt: Any) -> None:
    curve = next(iter(learnt.person.workspace.runs.values())).found["figures"]["threshold"]
    assert curve["missed"][0] == 0
    assert curve["missed"][100] + curve["called"][0] >= 0.99  # every row but those of probability 1
    assert all(a <= b for a, b in zip(curve["missed"], curve["missed"][1:]))
    for what in ("missed", "called"):
        limits = zip(curve[f"{what}_low"], curve[what], curve[f"{what}_high"], strict=True)
        assert all(low <= seen <= high for low, seen, high in limits)
    page = unescape(learnt.person.get(f"{learnt.run}/model?threshold=0.2&miss=10&alarm=1").text)
    i = 20
    cost = 10 * curve["missed"][i] + curve["called"][i]
    assert f"{cost:.4g}" in page


def test_a_row_is_tried(learnt: Any) -> None:
    form = learnt.person.get(f"{learnt.run}/try").text
    assert "<select" in form
    usual = dict(re.findall(r'name="(c\d+)" type="text"[^>]*value="([^"]*)"', form))
    page = learnt.person.post(f"{learnt.run}/try", usual)
    assert page.status_code == 200, page.text
    assert "Probabilities" in page.text
    assert "What would change it" in page.text
    refused = learnt.person.post(f"{learnt.run}/try", {"c0": "twelve"})
    assert refused.status_code == 400
    assert "needs a number" in refused.text or "is not a value" in refused.text


def test_what_would_change_a_prediction_is_the_nearest_value_that_does(learnt: Any) -> None:
    """Each value named alters the prediction, and for a number one that is closer by three hundredths does not."""
    run = learnt.person.workspace.runs[learnt.run.rsplit("/", 1)[1]]
    columns = run.found["columns"]
    typed = {column["name"]: str(column["usual"]) for column in columns}
    found = predict(run.model, typed, columns, [], "0.95")
    numbers = {column["name"] for column in columns if column["kind"] == "numeric"}
    assert any(change["column"] in numbers for change in found["changes"])
    for change in found["changes"]:
        name, to = change["column"], change["to"]
        assert predict(run.model, typed | {name: to}, columns, [], "0.95")["prediction"] == change["prediction"]
        assert change["prediction"] != found["prediction"]
        if name in numbers:
            old, new = float(typed[name]), float(to)
            back = new - (0.03 * abs(new) + 1e-9) * (1 if new > old else -1)
            closer = typed | {name: repr(back)}
            if (back - old) * (new - old) > 0:
                assert predict(run.model, closer, columns, [], "0.95")["prediction"] == found["prediction"]


def test_numbers_outside_the_training_rows_are_said(learnt: Any) -> None:
    run = learnt.person.workspace.runs[learnt.run.rsplit("/", 1)[1]]
    age = next(i for i, column in enumerate(run.found["columns"]) if column["name"] == "age")
    page = learnt.person.post(f"{learnt.run}/try", {f"c{age}": "-40"}).text
    assert "“age” is -40; the training rows lie between" in unescape(page)
    usual = learnt.person.post(f"{learnt.run}/try", {f"c{age}": run.found["columns"][age]["usual"]}).text
    assert "“age” is" not in unescape(usual)


def test_errors_on_unseen_rows_are_not_explained_as_a_fact_about_rows_that_were_fitted_to(learnt: Any) -> None:
    run = learnt.person.workspace.runs[learnt.run.rsplit("/", 1)[1]]
    means = {
        claim["means"]
        for claim in run.found["claims"]
        if claim["says"].startswith("On the") and "hold-out" in claim["says"]
    }
    assert means == {"means.counted"}


@pytest.mark.parametrize(("signal", "proved"), [pytest.param(True, True, marks=pytest.mark.long), (False, False)])
def test_the_headline_says_whether_anything_is_proved(person: Person, signal: bool, proved: bool) -> None:
    rows = "\n".join(
        f"{i % 7},{(i * i) % 11},{'yes' if (i % 7 > 3 if signal else i * 37 % 64 < 30) else 'no'}" for i in range(400)
    )
    table = person.upload(f"a,b,y\n{rows}\n".encode()).url.path
    run = person.learn(table, learners="DecisionTreeClassifier", trials="1")
    page = person.get(run).text
    assert ("Done, and proved to beat the baseline." in page) is proved
    assert ("It is not proved to beat the baseline." in page) is not proved
    assert ("message good" in page) is proved


def test_two_models_are_compared(learnt: Any) -> None:
    assert "Two finished studies" in learnt.person.get("/compare").text
    learnt.person.learn(learnt.table, learners="GaussianNB")
    page = learnt.person.get("/compare").text
    assert "proved better" in page
    assert "with 95 % confidence" in page


def test_rows_are_planned(learnt: Any) -> None:
    from assay.theory.plan import holdout_rows

    page = learnt.person.get("/plan?error=10&width=2&confidence=95&candidates=3").text
    assert f"{holdout_rows(0.02, 0.05, error=0.1, candidates=3).safe:,}" in page
    assert learnt.person.get("/plan?error=abc&width=-5&dimension=1e99").status_code == 200


def test_methods_have_cards_and_pages(learnt: Any) -> None:
    assert "LogisticRegression" in learnt.person.get("/learn").text
    page = learnt.person.get("/learn?name=LogisticRegression").text
    assert "逻辑" in page or "对数几率" in page or "斯谛" in page
    assert learnt.person.get("/learn?name=os.system").status_code == 400


@pytest.mark.parametrize("which", ["perceptron", "kmeans", "adaboost", "smo", "em", "backprop"])
def test_algorithms_are_followed_step_by_step(learnt: Any, which: str) -> None:
    first = learnt.person.get(f"/learn/{which}")
    assert first.status_code == 200
    assert "Step 0 of" in first.text
    assert 'role="alert"' not in first.text
    second = learnt.person.get(f"/learn/{which}?step=1").text
    assert re.search(r'data-step="1">', second)


def test_pages_speak_chinese(learnt: Any) -> None:
    learnt.person.post("/language", {"language": "zh", "back": "/plan"})
    try:
        of_run = (learnt.run, f"{learnt.run}/model", f"{learnt.run}/try")
        for path in ("/", learnt.table, *of_run, "/compare", "/plan", "/learn"):
            page = learnt.person.get(path)
            assert page.status_code == 200
            assert '<html lang="zh">' in page.text
        assert "需要多少行" in learnt.person.get("/plan").text
        model = unescape(learnt.person.get(f"{learnt.run}/model").text)
        for claim in learnt.person.workspace.runs[learnt.run.rsplit("/", 1)[1]].found["claims"]:
            assert claim["says_zh"] in model
            assert set(re.findall(r"\d+\.?\d*", claim["says_zh"])) <= set(re.findall(r"\d+\.?\d*", claim["says"]))
    finally:
        learnt.person.client.cookies.delete("assay_language")


def test_every_key_exists_in_both_languages_with_the_same_blanks() -> None:
    tables = [words for _, words in LANGUAGES.values()]
    assert tables[0].keys() == tables[1].keys()
    for key in tables[0]:
        blanks = [{name for _, name, _, _ in string.Formatter().parse(words[key]) if name} for words in tables]
        assert blanks[0] == blanks[1], key


def test_every_key_that_a_template_names_exists() -> None:
    named = set()
    for room in ("report", "studio"):
        for place in (files(f"assay.{room}") / "templates").iterdir():
            texts = [place] if place.is_file() else list(place.iterdir())
            for one in texts:
                named |= set(re.findall(r"""\bt\(["']([a-zA-Z_.]+)["'][,)]""", one.read_text(encoding="utf-8")))
    assert named
    assert named <= LANGUAGES["en"][1].keys()
