"""The interface as OpenAPI, made of the table of routes and of the schemas."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from priorshift import __version__
from priorshift.service.app import Spec
from priorshift.service.problems import CODES
from priorshift.service.schemas import ID, ErrorAnswer

_REF = "#/components/schemas/{name}"
_JSON, _BYTES = "application/json", "application/octet-stream"


def openapi(routes: Sequence[Spec], models: Sequence[str] = ()) -> dict[str, Any]:
    """The document; ``models`` are those that are served, as NAME@VERSION.

    Examples
    --------
    >>> openapi([])["info"]["title"]
    'priorshift'
    """
    types = {t for spec in routes for t in (spec.takes, spec.gives) if isinstance(t, type)}
    named = sorted(types - {bytes, str}, key=lambda t: t.__name__)
    _, components = msgspec.json.schema_components([*named, ErrorAnswer], ref_template=_REF)
    paths: dict[str, Any] = {}
    for spec in routes:
        paths.setdefault(spec.path, {})[spec.method.lower()] = _operation(spec, models)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "priorshift",
            "version": __version__,
            "description": "Streams that learn from unlabelled batches, and lose nothing of it.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(spec: Spec, models: Sequence[str]) -> dict[str, Any]:
    known = {
        "name": [m.partition("@")[0] for m in models],
        "version": [m.partition("@")[2] for m in models],
    }
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _one_of(name, known.get(name))}
        for name in re.findall(r"\{(\w+)\}", spec.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in spec.query.items()
    ]
    found: dict[str, Any] = {
        "summary": spec.summary,
        "operationId": spec.handler.__name__ + ("_version" if "{version}" in spec.path else ""),
        "parameters": parameters,
        "responses": {**_success(spec), **_refusals()},
    }
    if spec.takes is not None:
        required = spec.path.endswith(("batches", "labels", "infer", "state"))
        found["requestBody"] = {"required": required, "content": _content(spec.takes)}
    if spec.scope is not None:
        found["security"] = [{}, {"key": []}]
        found["description"] = f"Needs a key with scope {spec.scope}, where there are keys."
    return found


def _one_of(name: str, values: Sequence[str] | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if values:
        schema["enum"] = sorted(set(values))
    return {**schema, "pattern": ID} if name == "id" else schema


def _success(spec: Spec) -> dict[str, Any]:
    status = {"DELETE": "204", "PUT": "200" if spec.path.endswith("state") else "201"}
    found: dict[str, Any] = {"description": "Done"}
    if spec.method != "DELETE":
        found["content"] = _content(spec.gives)
    return {status.get(spec.method, "200"): found}


def _refusals() -> dict[str, Any]:
    content = {_JSON: {"schema": {"$ref": _REF.format(name="ErrorAnswer")}}}
    by_status: dict[int, list[str]] = {}
    for code, status in CODES.items():
        by_status.setdefault(status, []).append(code)
    return {
        str(status): {"description": ", ".join(codes), "content": content}
        for status, codes in sorted(by_status.items())
    }


def _content(kind: Any) -> dict[str, Any]:
    if kind is bytes:
        return {_BYTES: {"schema": {"type": "string", "format": "binary"}}}
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    if kind is None:
        return {_JSON: {"schema": {"type": "object"}}}
    return {_JSON: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


def as_page(document: dict[str, Any]) -> str:
    """The document for people, in HTML without anything else.

    Examples
    --------
    >>> "<h1>" in as_page(openapi([]))
    True
    """
    rows = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {})
            names = [_schema_name(content) for content in body.values()]
            cells = (
                f"<code>{method.upper()} {html.escape(path)}</code>",
                html.escape(operation["summary"]),
                html.escape(operation.get("description", "Open to all.")),
                " ".join(f'<a href="#{name}">{name}</a>' for name in names if name),
            )
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    parts = [
        f'<section id="{name}"><h2>{name}</h2><p>{html.escape(schema.get("description", ""))}</p>'
        f'<pre tabindex="0">'
        f"{html.escape(msgspec.json.format(msgspec.json.encode(schema)).decode())}</pre>"
        "</section>"
        for name, schema in sorted(document["components"]["schemas"].items())
    ]
    head = "<th>Route</th><th>What it does</th><th>Who may</th><th>Takes</th>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>priorshift: interface</title><link rel="stylesheet" href="/static/page.css">'
        '<link rel="icon" href="/static/icon.svg">'
        f'</head><body class="docs"><main><h1>Interface of priorshift {__version__}</h1>'
        '<p><a href="/">The page</a>. For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
        f"</table></div>{''.join(parts)}</main></body></html>"
    )


def _schema_name(content: dict[str, Any]) -> str:
    return str(content["schema"].get("$ref", "")).rpartition("/")[2]
