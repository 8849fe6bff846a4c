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
    return Settings(("127.0.0.1", "localhost"), PORT, most_bytes=2**20, patience=120.0)


@pytest.fixture
def door(settings: Settings) -> Iterator[TestClient]:
    """A client that was not let in."""
    with TestClient(studio(settings), base_url=HERE, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def person(door: TestClient, settings: Settings) -> Person:
    door.get(f"/open?token={settings.token}")
    return Person(door)


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
