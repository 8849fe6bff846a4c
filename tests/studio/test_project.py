"""A project folder keeps tables, studies and models, whatever happens to the studio."""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay import persist
from assay.studio.app import studio
from assay.studio.security import Settings
from assay.studio.workspace import Project, StudyRecord, TableRecord
from tests.studio.conftest import HERE, PORT, Person

ROWS = "\n".join(f"{i % 7},{(i * 5) % 11},{'yes' if i % 7 > 3 else 'no'}" for i in range(120))
CSV = f"a,b,y\n{ROWS}\n".encode()


@contextmanager
def at_work(folder: Path) -> Iterator[Person]:
    settings = Settings(("127.0.0.1",), PORT, patience=120.0)
    with TestClient(studio(settings, folder=folder), base_url=HERE, raise_server_exceptions=False) as client:
        client.get(f"/open?token={settings.token}")
        yield Person(client)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a studio that ended after a study of an uploaded table was made, named and noted."""
    folder = tmp_path_factory.mktemp("project")
    with at_work(folder) as person:
        table = person.upload(CSV, "mine.csv").url.path
        run = person.learn(table, learners="GaussianNB DecisionTreeClassifier", trials="2")
        person.post(f"{run}/about", {"name": "First try", "note": "two learners"})
        person.upload(CSV.replace(b"yes", b"ja"), "idle.csv")
    return folder


def test_studies_models_and_their_tables_survive_the_end_of_the_studio(kept: Path) -> None:
    with at_work(kept) as person:
        home = person.get("/").text
        assert "First try" in home
        assert "two learners" in home
        assert "idle.csv" not in home, "an uploaded table without a study goes with the studio"
        (run,) = person.workspace.runs.values()
        assert "at most" in person.get(f"/runs/{run.key}").text
        assert "The certificate holds" in person.post(f"/runs/{run.key}/verify").text
        assert "Prediction of" in person.post(f"/runs/{run.key}/try", {"c0": "2", "c1": "3"}).text
    assert persist.load(kept / "studies" / run.key / "model.assay").certificate is not None
    assert len(list((kept / "tables").iterdir())) == 1


def test_all_of_a_study_is_exported(kept: Path) -> None:
    with at_work(kept) as person:
        (run,) = person.workspace.runs.values()
        archive = zipfile.ZipFile(io.BytesIO(person.get(f"/runs/{run.key}/files/study.zip").content))
        assert sorted(archive.namelist()) == ["model.assay", "report.html", "study.ipynb", "study.py"]
        assert archive.read("model.assay") == Path(run.model).read_bytes()


def test_the_script_of_a_study_gives_its_model_again(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script and the notebook are run beside the table, and predict what the study's model does, to the bit."""
    with at_work(kept) as person:
        (run,) = person.workspace.runs.values()
        page = person.get(f"/runs/{run.key}/code").text
        assert "to the bit" in page
        script = person.get(f"/runs/{run.key}/files/study.py").text
        cells = json.loads(person.get(f"/runs/{run.key}/files/study.ipynb").text)["cells"]
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_bytes(CSV)
    own = persist.load(kept / "studies" / run.key / "model.assay").model
    for text in (script, "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")):
        exec(compile(text, "study.py", "exec"), {})
        again = persist.load("model.assay").model
        rows = {"a": [0.0, 3.0, 6.0], "b": [1.0, 5.0, 10.0]}
        assert again.learner.get_params() == own.learner.get_params()
        assert (again.probabilities(again.encode(rows)[0]) == own.probabilities(own.encode(rows)[0])).all()


def test_a_study_is_deleted_with_its_model_and_its_uploaded_table(tmp_path: Path) -> None:
    with at_work(tmp_path) as person:
        table = person.upload(CSV, "mine.csv").url.path
        first, second = (person.learn(table, learners="GaussianNB", trials="1") for _ in range(2))
        person.post(f"{first}/delete")
        assert person.get(first).status_code == 404
        assert person.get(table).status_code == 200
        assert person.post(f"{second}/delete").url.path == "/"
        assert person.get(table).status_code == 404
    assert not list((tmp_path / "tables").iterdir())
    assert not list((tmp_path / "studies").iterdir())


def test_what_a_killed_studio_left_is_found(tmp_path: Path) -> None:
    project = Project(tmp_path)
    upload = project.table_file("ab" * 8, ".csv")
    upload.write_bytes(CSV)
    orphan = TableRecord("cd" * 8, "orphan.csv", {"file": str(project.table_file("cd" * 8, ".csv"))})
    Path(orphan.source["file"]).write_bytes(CSV)
    project.keep(orphan)
    project.keep(TableRecord("ab" * 8, "mine.csv", {"file": str(upload)}, target="y"))
    project.keep(StudyRecord("ef" * 8, "ab" * 8, "mine.csv: y", "y", {"certify": None}, {}))
    project.study_folder("ef" * 8).mkdir()
    project.table_file("01" * 8, ".csv").write_bytes(CSV[:100])  # an upload that ended half-way
    project.close()
    with at_work(tmp_path) as person:
        assert "The studio ended while this study ran" in person.get(f"/runs/{'ef' * 8}").text
        assert person.get(f"/tables/{'ab' * 8}").status_code == 200
        assert person.get(f"/tables/{'cd' * 8}").status_code == 404
    assert [path.name for path in (tmp_path / "tables").iterdir()] == [upload.name]


def test_one_studio_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    first = Project(tmp_path)
    with pytest.raises(ValueError, match="another studio works in the folder"):
        Project(tmp_path)
    first.close()
    Project(tmp_path).close()


@pytest.mark.parametrize("content", [b"no database at all" * 100, None])
def test_an_index_that_cannot_be_read_is_said(tmp_path: Path, content: Any) -> None:
    project = Project(tmp_path)
    if content is None:
        project._index.execute("PRAGMA user_version = 99")
    project.close()
    if content is not None:
        (tmp_path / "studio.sqlite").write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read|newer version"):
        Project(tmp_path)


@pytest.mark.long
def test_navigation_stays_in_the_study_that_one_is_in(tmp_path: Path) -> None:
    with at_work(tmp_path) as person:
        runs = []
        for name in ("iris", "credit"):
            table = person.post("/tables", {"bundled": name}, files={"file": ("", b"")}).url.path
            runs.append((table, person.learn(table, learners="GaussianNB", trials="1")))
        table, run = runs[0]
        for place in (run, f"{run}/model", f"{run}/try", f"{run}/code"):
            page = person.get(place).text
            nav = page[page.index("<nav") : page.index("</nav>")]
            assert f'href="{table}"' in nav
            assert f'href="{run}/model"' in nav
            assert f'href="/compare?a={run.rsplit("/", 1)[1]}"' in nav
            assert runs[1][1] not in nav


def forged(folder: Path, record: TableRecord | StudyRecord) -> Path:
    """Write a record of any kind into the index of a project."""
    project = Project(folder)
    project.keep(record)
    project.close()
    return folder


def test_a_project_from_elsewhere_removes_nothing_outside_of_it(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "letter.txt").write_text("dear")
    for record in (StudyRecord("../../own", "t", "n", "y", {}, {}), TableRecord("../own", "n", {})):
        folder = forged(tmp_path / type(record).__name__, record)
        with pytest.raises(ValueError, match="cannot be read"):
            Project(folder)
    for name in ("tables", "studies"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).symlink_to(own)
        with pytest.raises(ValueError, match="cannot be read"):
            Project(tmp_path / name)
    assert (own / "letter.txt").read_text() == "dear"


def test_an_index_of_other_records_is_told(tmp_path: Path) -> None:
    for k, text in enumerate(("no JSON", "[]", '{"key": "a"}', '{"key": "other", "name": "n", "source": {}}')):
        project = Project(tmp_path / str(k))
        project._index.execute("INSERT INTO tables VALUES ('a', ?)", (text,))
        project.close()
        with pytest.raises(ValueError, match="cannot be read"):
            Project(tmp_path / str(k))


def test_a_folder_among_the_tables_is_left_alone(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "tables" / "more").mkdir()
    project.drop_files_but([])
    assert (tmp_path / "tables" / "more").is_dir()
    project.close()
