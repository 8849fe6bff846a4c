"""The page about the service: its block runs, and its table names the addresses that there are."""

import re
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
from starlette.testclient import TestClient

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")


def test_the_block_makes_a_service_that_has_the_addresses_of_the_table() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict = {}
    exec(block, names)
    with TestClient(names["app"]) as client:
        for path in re.findall(r"(?<=[ `])/[a-z.]+(?=`)", PAGE.split("## Is")[0]):
            assert client.get(path).status_code in (200, 405), path
        flower = {"sepal length": 5.1, "sepal width": 3.5, "petal length": 1.4, "petal width": 0.2}
        columns = [column.name for column in names["study"].model.columns]
        row = dict(zip(columns, flower.values(), strict=True))
        assert client.post("/predict", json=row).json()["predictions"][0]["prediction"] == "setosa"
