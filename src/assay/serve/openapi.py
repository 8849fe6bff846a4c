"""The description of the service for programs (OpenAPI 3.1) and for people."""

import json
from html import escape
from typing import Any

from assay.data import ColumnType
from assay.learning import TableModel

_MOST_LEVELS = 50
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code,pre{font:14px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.6rem;border:1px solid #8885}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}"
)


_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_COVERAGE = {
    "name": "coverage",
    "in": "query",
    "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "description": "Share of rows whose set or interval holds the truth.",
}


def description(model: TableModel, certificate: str | None, token: bool) -> dict[str, Any]:
    """Return the OpenAPI document of a model's service."""
    row = {
        "type": "object",
        "required": [column.name for column in model.columns],
        "properties": {column.name: _cell(column) for column in model.columns},
    }
    target = {"properties": {model.target.name: _cell(model.target)}, "required": [model.target.name]}
    rows = {"oneOf": [{"$ref": "#/components/schemas/Row"}, _list_of("rows", {"$ref": "#/components/schemas/Row"})]}
    known = {"allOf": [{"$ref": "#/components/schemas/Row"}, {"type": "object", **target}]}
    by_id = {"type": "object", "required": ["id", "outcome"], "properties": {"id": _TEXT, "outcome": {}}}
    outcomes = {"oneOf": [_list_of("outcomes", by_id), _list_of("rows", known)]}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": f"Predictions of {model.target.name}",
            "version": (certificate or "none")[:12],
            "description": f"Certificate {certificate}." if certificate else "The model carries no certificate.",
        },
        "paths": {
            "/predict": {"post": _posted("Predict the target of rows.", rows, "Answer", [_COVERAGE])},
            "/outcome": {"post": _posted("Tell what came true.", outcomes, "Monitor", [])},
            "/monitor": {"get": _got("Whether the promise is kept, and whether rows look as they did.", "Monitor")},
            "/model": {"get": _got("Columns and certificate of the model.", "Model")},
            "/health": {"get": _got("Whether the service runs.", "Health")},
        },
        "components": {"schemas": {"Row": row, **_replies(model)}},
    }
    if token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _list_of(name: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": [name], "properties": {name: {"type": "array", "minItems": 1, "items": item}}}


def _cell(column: ColumnType) -> dict[str, Any]:
    if column.kind == "numeric":
        return {"type": ["number", "string", "null"]}
    if column.kind == "date":
        return {"type": ["string", "null"], "description": f"written like {', '.join(column.written) or 'ISO 8601'}"}
    examples = {"examples": list(column.levels[:_MOST_LEVELS])} if column.levels else {}
    return {"type": ["string", "number", "boolean", "null"], **examples}


def _replies(model: TableModel) -> dict[str, Any]:
    classes = model.task == "classify"
    value = {"type": ["string", "number"]} if classes else _NUMBER
    more: dict[str, Any] = {"low": _NUMBER, "high": _NUMBER}
    if classes:
        more = {
            "probabilities": {"type": "object", "additionalProperties": _NUMBER},
            "set": {"type": "array", "items": value},
        }
    prediction = {
        "type": "object",
        "required": ["id", "prediction"],
        "properties": {"id": _TEXT, "prediction": value, **more},
    }
    answer = {
        "certificate": {"type": ["string", "null"]},
        "predictions": {"type": "array", "items": prediction},
        "notes": {"type": "array", "items": _TEXT},
    }
    return {
        "Answer": {"type": "object", "required": list(answer), "properties": answer},
        "Monitor": {"type": "object", "required": ["promise", "drift"],
                    "properties": {"promise": {"type": "object"}, "drift": {"type": "object"}}},
        "Model": {"type": "object"},
        "Health": {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}},
        "Refusal": {"type": "object", "required": ["error"], "properties": {"error": _TEXT}},
    }  # fmt: skip


def _reply(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _got(summary: str, reply: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "As asked.", "content": _reply(reply)}}}


def _posted(summary: str, body: dict[str, Any], reply: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    result = _got(summary, reply)
    refusals = {"400": "The rows cannot be read.", "401": "The token is missing or wrong.",
                "413": "Too large.", "415": "Neither JSON nor CSV.", "503": "Too much waits."}  # fmt: skip
    for code, refusal in refusals.items():
        result["responses"][code] = {"description": refusal, "content": _reply("Refusal")}
    content = {"application/json": {"schema": body}, "text/csv": {"schema": _TEXT}}
    return {**result, "parameters": parameters, "requestBody": {"required": True, "content": content}}


def page(document: dict[str, Any]) -> str:
    """Return the description as a page that loads nothing."""
    info, row = document["info"], document["components"]["schemas"]["Row"]
    parts = [f"<h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"]
    for path, methods in document["paths"].items():
        for method, item in methods.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(item['summary'])}</p>")
            for parameter in item.get("parameters", ()):
                parts.append(f"<p><code>?{parameter['name']}=</code> {escape(parameter['description'])}</p>")
    example = {name: (cell.get("examples") or [0])[0] for name, cell in row["properties"].items()}
    parts.append(f"<h2>A row</h2><pre>{escape(json.dumps(example, ensure_ascii=False, indent=1))}</pre>")
    cells = "".join(f"<tr><td>{escape(name)}<td>{_said(cell)}" for name, cell in row["properties"].items())
    parts.append(f"<table><tr><th>Column<th>Holds{cells}</table>")
    parts.append('<p>For programs: <a href="openapi.json">openapi.json</a>; counters: <a href="metrics">metrics</a>.')
    return (
        f'<!doctype html><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f'<link rel="icon" href="favicon.ico" type="image/svg+xml"><style>{_STYLE}</style>' + "".join(parts)
    )


def _said(cell: dict[str, Any]) -> str:
    known = ", ".join(cell.get("examples", ())) or cell.get("description", "")
    return escape(f"{', '.join(cell['type'])}" + (f": {known}" if known else ""))
