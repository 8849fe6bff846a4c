"""A studio to talk to: a client that was let in, and forms filled in as a browser would."""

import re
from collections.abc import Iterator
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the studio's extra is not installed")
from starlette.testclient import TestClient

from assay.studio.app import studio
from assay.studio.security import Settings

PORT = 8123
HERE = f"http://127.0.0.1:{PORT}"
ORIGIN = {"origin": HERE}
_MOST_BYTES = 2**20


class Person:
    """Who uses the studio: opens pages, sends forms with their secret."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.client.get("/").text)
        assert found
        return unescape(found[1])

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> Any:
        fields = {"csrf": self.csrf(), **(data or {})}
        return self.client.post(path, data=fields, headers=ORIGIN, **more)

    def upload(self, content: bytes, name: str = "table.csv") -> Any:
        return self.post("/tables", files={"file": (name, content)})

    def learn(self, table: str, **asked: Any) -> str:
        """Run a study to its end; return its address."""
        path = self.post(f"{table}/learn", asked).url.path
        run = self.workspace.runs[path.rsplit("/", 1)[1]]
        self.client.portal.call(run.job.done)
        assert run.job.status == "done", run.job.refusal
        return path

    @property
    def workspace(self) -> Any:
        return self.client.app.app.state.workspace


@pytest.fixture
def settings() -> Settings:
    return Settings(("127.0.0.1", "localhost"), PORT, most_bytes=_MOST_BYTES, patience=120.0)


@pytest.fixture
def door(settings: Settings) -> Iterator[TestClient]:
    """A client that was not let in."""
    with TestClient(studio(settings), base_url=HERE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def shared() -> Iterator[TestClient]:
    """A studio for a file of tests: its processes take seconds to begin."""
    known = Settings(("127.0.0.1", "localhost"), PORT, most_bytes=_MOST_BYTES, patience=120.0)
    with TestClient(studio(known), base_url=HERE, raise_server_exceptions=False) as client:
        client.get(f"/open?token={known.token}")
        yield client


@pytest.fixture
def person(shared: TestClient) -> Iterator[Person]:
    """Somebody in a studio without tables and studies; what the test leaves there is removed."""
    someone = Person(shared)
    memory = someone.workspace.most_bytes
    yield someone
    shared.portal.call(_empty, someone.workspace)
    someone.workspace.most_bytes, shared.app.settings.most_bytes = memory, _MOST_BYTES
    shared.cookies.delete("assay_language") if "assay_language" in shared.cookies else None


async def _empty(held: Any) -> None:
    for run in list(held.runs.values()):
        if run.verdict is not None:
            await run.verdict.end()
        await held.delete(run)
    for entry in list(held.tables.values()):
        if entry.looked is not None:
            await entry.looked.end()
        held.drop(entry.key)


@pytest.fixture(scope="module")
def learnt() -> Iterator[Any]:
    """A person with a finished study of a small table with two classes."""
    known = Settings(("127.0.0.1",), PORT, patience=120.0)
    with TestClient(studio(known), base_url=HERE, raise_server_exceptions=False) as client:
        client.get(f"/open?token={known.token}")
        someone = Person(client)
        table = someone.post("/tables", {"bundled": "credit"}, files={"file": ("", b"")}).url.path
        run = someone.learn(table, learners="LogisticRegression GaussianNB DecisionTreeClassifier")
        yield SimpleNamespace(person=someone, table=table, run=run)
