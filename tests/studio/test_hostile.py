"""Ten hostile inputs and their relatives: each is refused, or shown as text."""

import asyncio
import gzip
import io
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from assay.studio.app import studio
from assay.studio.security import Settings
from assay.studio.workspace import display_name
from tests.studio.conftest import HERE, ORIGIN, PORT, Person

SCRIPT = "<script>alert(1)</script>"
NASTY = [SCRIPT, '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}", "javascript:alert(1)", "\u202egnp.exe", "a\x1b[31mb"]


def nasty_table() -> bytes:
    head = ",".join('"' + name.replace('"', '""') + '"' for name in [*NASTY, "y"])
    numbers = [[str((k * (j + 2)) % 11) for j in range(1, len(NASTY))] for k in range(80)]
    rows = [",".join([f'"{SCRIPT}{k % 3}"', *row, f'"{SCRIPT}{k % 2}"']) for k, row in enumerate(numbers)]
    return "\n".join([head, *rows]).encode()


def harmless(page: str) -> None:
    """Check that nothing of the table became markup: every script is ours, no attribute holds one."""
    scripts = re.findall(r"<script[^>]*>", page)
    assert scripts in ([], ['<script type="module" src="/static/studio.js">'])
    assert "<img" not in page
    assert not re.search(r"<[^>]*\son\w+\s*=\s*[a-z]", re.sub(r'"[^"]*"|\'[^\']*\'', '""', page))
    assert "style=" not in re.sub(r'"[^"]*"', '""', page)
    assert "\u202e" not in page
    assert "\x1b" not in page


def test_script_in_names_and_labels_is_text_on_every_page(person: Person) -> None:
    opened = person.upload(nasty_table(), name=f"{SCRIPT}.csv")
    assert opened.status_code == 200
    harmless(opened.text)
    assert "&lt;script&gt;" in opened.text
    assert "{{ 7 * 7 }}" in opened.text
    run = person.learn(opened.url.path, learners="LogisticRegression GaussianNB")
    paths = (run, f"{run}/live", f"{run}/model", f"{run}/try", "/compare", "/", "/learn/em")
    answers = [person.get(path) for path in paths]
    answers += [person.post(f"{run}/try"), person.post(f"{run}/verify")]
    person.post("/language", {"language": "zh"})
    answers += [person.get(path) for path in (opened.url.path, *paths)]
    for answer in answers:
        assert answer.status_code == 200, answer.url
        harmless(answer.text)


def test_a_report_of_a_nasty_table_has_no_script(person: Person) -> None:
    run = person.learn(person.upload(nasty_table()).url.path, learners="GaussianNB")
    for language in ("en", "zh"):
        person.post("/language", {"language": language})
        answer = person.get(f"{run}/files/report.html")
        assert answer.headers["content-disposition"] == 'attachment; filename="report.html"'
        assert f'<html lang="{language}">' in answer.text
        assert "<script" not in answer.text
        assert "<img" not in answer.text
        assert "default-src 'none'" in answer.text


def test_an_upload_that_declares_two_gigabytes_is_refused_unread(person: Person) -> None:
    headers = {**ORIGIN, "content-length": str(2 * 2**30), "content-type": "multipart/form-data; boundary=x"}
    assert person.client.post("/tables", content=b"", headers=headers).status_code == 413


def test_an_upload_that_grows_beyond_the_limit_is_refused(person: Person) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(40):
            yield b"1,2,3\n" * 10_000

    headers = {**ORIGIN, "content-type": "multipart/form-data; boundary=x"}
    answer = person.client.post("/tables", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert not list((person.workspace.project.folder / "tables").iterdir())
    assert [path.name for path in person.workspace.folder.iterdir()] == ["project"]


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "", f"127.0.0.1:{PORT}.evil"]
)
def test_another_host_is_refused(person: Person, host: str) -> None:
    assert person.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", f"https://127.0.0.1:{PORT}", "http://127.0.0.1"])
def test_another_origin_is_refused(person: Person, origin: str) -> None:
    data = {"csrf": person.csrf(), "bundled": "iris"}
    assert person.client.post("/tables", data=data, headers={"origin": origin}).status_code == 403
    assert person.client.post("/tables", data=data).status_code == 403
    assert not person.workspace.tables


def test_what_a_foreign_page_fetches_is_refused(person: Person) -> None:
    for site in ("cross-site", "same-site"):
        assert person.get("/", headers={"sec-fetch-site": site}).status_code == 403


def test_a_form_without_the_sessions_secret_is_refused(person: Person) -> None:
    for secret in ("", "guess"):
        answer = person.client.post("/language", data={"csrf": secret, "language": "zh"}, headers=ORIGIN)
        assert answer.status_code == 403
    assert person.client.post("/language", content=b"{}", headers=ORIGIN).status_code == 415


def test_a_token_works_once(door: TestClient, settings: Settings) -> None:
    assert door.get("/").status_code == 403
    assert door.get("/open?token=guess").status_code == 403
    first = door.get(f"/open?token={settings.token}", follow_redirects=False)
    assert first.status_code == 200
    assert 'content="0;url=/"' in first.text
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    door.cookies.clear()
    assert door.get(f"/open?token={settings.token}").status_code == 403
    assert door.get("/", headers={"cookie": f"{settings.cookie}=guess"}).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/static/../security.py", "/static/..%2f..%2fsecurity.py", "/static/%2e%2e/%2e%2e/setup.py",
        "/static//etc/passwd",
        "/tables/..%2f..%2fetc%2fpasswd", "/runs/../../etc/passwd", "/static/style.css%00.js", "/learn/..%2f..",
    ],
)  # fmt: skip
def test_no_path_leaves_its_folder(person: Person, path: str) -> None:
    answer = person.get(path)
    assert answer.status_code in (200, 400, 403, 404)
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_names_of_uploads_are_never_paths(person: Person) -> None:
    for name in ("../../../etc/cron.d/x", "..\\..\\x.csv", "/etc/passwd", "C:\\x", "\0", "." * 300):
        assert "/" not in display_name(name)
        assert "\\" not in display_name(name)
    person.upload(b"a,b\n1,2\n3,4\n", name="../../../evil.csv")
    for entry in person.workspace.tables.values():
        assert re.fullmatch(r"[0-9a-f]{16}\.csv", entry.source["file"].rsplit("/", 1)[1])


def test_ten_thousand_columns_are_shown_in_parts(person: Person) -> None:
    person.client.app.settings.most_bytes = 2**24
    head = ",".join(f"c{i}" for i in range(10_000))
    row = ",".join("1" for _ in range(10_000))
    page = person.upload(f"{head}\n{row}\n{row}\n".encode())
    assert page.status_code == 200
    assert "10000 columns" in page.text
    assert len(page.text) < 400_000
    assert "c9999" in person.get(f"{page.url.path}?from=9900").text
    assert person.get(f"{page.url.path}?from=-1e99").status_code == 200


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "content",
    [
        b"", b"\0\1\2\3", b"PAR1 not a parquet file PAR1", b"a,a\n1,2\n", b"a,b\n1\n", b"\xff\xfe\xff",
        gzip.compress(b"a,b\n" + b"1,2\n" * 100_000), b"PK\x03\x04" + bytes(100),
    ],
)  # fmt: skip
def test_a_broken_table_is_refused_in_words(person: Person, content: bytes) -> None:
    page = person.upload(content)
    assert page.status_code in (200, 400)
    assert 'role="alert"' in page.text
    assert "Traceback" not in page.text
    assert str(person.workspace.folder) not in page.text


def test_a_small_file_that_unpacks_to_too_much_is_refused(person: Person) -> None:
    """Eighty million equal cells are less than a megabyte of Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    person.workspace.most_bytes = 2**30
    packed = io.BytesIO()
    same = pa.chunked_array([pa.array(np.zeros(10_000_000, dtype=bool))] * 4)
    parquet.write_table(pa.table({"a": same, "b": same}), packed)
    assert len(packed.getvalue()) < 2**20
    assert "not enough memory" in person.upload(packed.getvalue()).text


def test_an_error_tells_no_paths(person: Person, monkeypatch: Any) -> None:
    from assay.studio.workspace import Workspace

    def broken(self: Workspace, *_: Any) -> None:
        raise FileNotFoundError(f"no file {self.folder}/x\x1b[2J")

    monkeypatch.setattr(Workspace, "add", broken)
    answer = person.upload(b"a,b\n1,2\n")
    assert answer.status_code == 500
    assert "FileNotFoundError" in answer.text
    assert str(person.workspace.folder) not in answer.text


def test_a_table_that_is_gone_is_refused_without_its_path(person: Person) -> None:
    from pathlib import Path

    from assay.studio.jobs import Refused

    table = person.upload(nasty_table()).url.path
    entry = person.workspace.tables[table.rsplit("/", 1)[1]]
    Path(entry.source["file"]).unlink()
    path = person.post(f"{table}/learn", {"learners": "GaussianNB"}).url.path
    run = person.workspace.runs[path.rsplit("/", 1)[1]]
    person.client.portal.call(run.job.done)
    assert "no file" in run.job.refusal
    assert str(person.workspace.folder) not in run.job.refusal
    with pytest.raises(Refused, match=r"there is no file table\.csv") as told:
        person.client.portal.call(person.workspace._look, entry)
    assert str(person.workspace.folder) not in str(told.value)


def test_what_anybody_may_send_is_small() -> None:
    settings = Settings(("10.0.0.5",), PORT, password="correct horse battery")
    here = f"http://10.0.0.5:{PORT}"
    with TestClient(studio(settings), base_url=here) as client:
        answer = client.post("/login", content=b"a=1&" * 10_000, headers={"origin": here})
        assert answer.status_code == 413


def test_the_log_shows_codes_and_runs_none() -> None:
    import logging

    from assay.web import Shown

    record = logging.LogRecord("uvicorn", logging.ERROR, "", 1, "x\x1b[2J\r%s", ("\x9b",), None)
    assert Shown().format(record) == r"x\x1b[2J\r\x9b"


def test_names_of_learners_run_nothing(person: Person) -> None:
    table = person.upload(nasty_table()).url.path
    path = person.post(f"{table}/learn", {"learners": f"os.system {SCRIPT} __import__('os') ../../x"}).url.path
    run = person.workspace.runs[path.rsplit("/", 1)[1]]
    person.client.portal.call(run.job.done)
    assert run.job.status == "failed"
    harmless(person.get(path).text)
    assert "os.system" in person.get(path).text


def test_without_the_cookie_there_is_nothing(door: TestClient) -> None:
    for path in ("/runs/x/events", "/runs/x/live", "/runs/x/files/model.assay", "/tables/x", "/plan"):
        assert door.get(path).status_code == 403, path


def test_questions_do_not_pile_up() -> None:
    from assay.studio.jobs import Desk, Refused

    class Silent:
        async def ask(self, task: str, seconds: float, **arguments: Any) -> Any:
            await asyncio.Event().wait()

        async def end(self) -> None: ...

    async def many() -> None:
        desk = Desk(Silent())
        asked = [desk.ask("plan", 1.0, rows=n % 20) for n in range(60)]
        assert len(set(asked)) == 20
        with pytest.raises(Refused, match="at once"):
            desk.ask("plan", 1.0, rows=20)
        await desk.end()

    asyncio.run(many())


def test_the_last_forty_answers_are_kept() -> None:
    from assay.studio.jobs import Desk

    asked: list[int] = []

    class Quick:
        async def ask(self, task: str, seconds: float, *, rows: int) -> int:
            asked.append(rows)
            return rows

        async def end(self) -> None: ...

    async def one_by_one(numbers: range) -> None:
        for n in numbers:
            question = desk.ask("plan", 1.0, rows=n)
            await question.wait()
            assert question.result == n

    async def again() -> None:
        for numbers in (range(40), range(40), range(45), range(44, 4, -1)):
            await one_by_one(numbers)
        await desk.end()

    desk = Desk(Quick())
    asyncio.run(again())
    assert asked == list(range(45))


def test_a_question_that_is_given_up_is_not_answered_with_the_next(person: Person) -> None:
    """Whoever stops waiting leaves no answer behind that another page would take for its own."""
    from assay.studio.jobs import Question

    desk = person.workspace.desk

    async def given_up() -> Any:
        first = Question(desk.child.ask("methods", 60.0))
        await first.wait(0.05)
        await first.end()
        return await desk.child.ask("plan", 60.0, error=0.1, width=0.02, confidence=0.95, candidates=1, dimension=3)

    assert person.client.portal.call(given_up)["holdout"]["safe"] > 0


def test_every_answer_has_the_strict_headers(person: Person) -> None:
    for path in ("/", "/nowhere", "/static/style.css", "/plan"):
        headers = person.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("password", [None, "correct horse battery"])
def test_browsers_that_ask_for_an_icon_get_one_before_they_are_let_in(password: str | None) -> None:
    settings = Settings(("127.0.0.1",), PORT, password=password, patience=120.0)
    with TestClient(studio(settings), base_url=HERE, raise_server_exceptions=False) as client:
        answer = client.get("/favicon.ico")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
        assert answer.text.startswith("<svg")
        first = client.get(f"/open?token={settings.token}" if password is None else "/login")
        assert first.status_code == 200
        assert '<link rel="icon" href="/favicon.ico"' in first.text


def test_the_language_form_sends_nobody_away(person: Person) -> None:
    for back in ("https://evil.example", "//evil.example", "/\\evil.example", ""):
        answer = person.post("/language", {"language": "en", "back": back}, follow_redirects=False)
        assert answer.headers["location"] == "/"


def test_another_address_needs_its_password() -> None:
    settings = Settings(("10.0.0.5",), PORT, password="correct horse battery", patience=120.0)
    here = f"http://10.0.0.5:{PORT}"
    with TestClient(studio(settings), base_url=here, raise_server_exceptions=False) as client:
        assert client.get("/").url.path == "/login"
        assert client.get(f"/open?token={settings.token}").status_code == 403
        found = re.search(r'name="csrf" value="([^"]+)"', client.get("/login").text)
        assert found
        assert client.get("/runs/x/events").url.path == "/login"

        def enter(password: str, secret: str = found[1]) -> Any:
            return client.post("/login", data={"password": password, "csrf": secret}, headers={"origin": here})

        assert enter(settings.password, "").status_code == 403
        for _ in range(5):
            assert "not the password" in enter("guess").text
        assert enter(settings.password).status_code == 429
        client.app.tries.right("")
        assert enter(settings.password).url.path == "/"
        assert client.get("/login").url.path == "/"  # who is in is not asked again


def test_who_guesses_passwords_shuts_nobody_else_out() -> None:
    settings = Settings(("10.0.0.5",), PORT, password="correct horse battery", patience=120.0)
    app, here = studio(settings), f"http://10.0.0.5:{PORT}"
    with TestClient(app, base_url=here, client=("10.0.0.7", 1)) as owner:
        guesser = TestClient(app, base_url=here, client=("10.0.0.6", 1))
        found = re.search(r'name="csrf" value="([^"]+)"', owner.get("/login").text)
        assert found
        form = {"csrf": found[1], "password": "guess"}
        for _ in range(5):
            guesser.post("/login", data=form, headers={"origin": here})
        answer = guesser.post("/login", data=form, headers={"origin": here})
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        entered = owner.post("/login", data=form | {"password": settings.password}, headers={"origin": here})
        assert entered.url.path == "/"
        assert entered.status_code == 200


def test_another_address_without_a_password_is_refused(monkeypatch: Any) -> None:
    from assay.studio.app import serve

    monkeypatch.setenv("ASSAY_STUDIO_PASSWORD", "short")
    with pytest.raises(ValueError, match="password of at least 12"):
        serve("", "0.0.0.0", 0, browser=False)


def test_a_study_is_held_to_its_memory_and_time(person: Person) -> None:
    child = person.workspace.desk.child
    from assay.studio.jobs import Child, Refused

    small = Child(60 * 2**20)
    with pytest.raises(Refused):
        person.client.portal.call(lambda: small.ask("methods", 30))
    with pytest.raises(Refused, match="longer than"):
        person.client.portal.call(lambda: child.ask("methods", 0.0))


def test_the_child_ends_with_the_server() -> None:
    command = [sys.executable, "-m", "assay.studio.child", '{"bytes": 8589934592}']
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.communicate(timeout=300)
    assert process.returncode == 0


def test_who_comes_before_the_server_runs_waits_and_is_not_turned_away() -> None:
    from assay.web import listener

    with (
        listener("the studio", "127.0.0.1", 0) as found,
        socket.create_connection(found.getsockname(), timeout=5) as early,
    ):
        assert early.getpeername() == found.getsockname()
