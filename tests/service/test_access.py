"""Who may do what, how much, and what every answer has."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

import serving
from priorshift.errors import InputError
from priorshift.service.command import run
from priorshift.service.keys import SCOPES
from priorshift.service.server import ROUTES
from priorshift.service.sqlite import FILE

OPEN = {"/v2/health/live", "/v2/health/ready"}


@pytest.fixture(scope="module")
def keys(served, tmp_path_factory):
    """A folder with a key of each scope."""
    folder = tmp_path_factory.mktemp("keys")
    found = {}
    for scope in SCOPES:
        found[scope] = make_key(folder, scope, scope)
    return folder, found


def make_key(folder: Path, name: str, scope: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run(serving.options([], folder, "--add-key", name, "--scope", scope))
    return out.getvalue().strip()


@pytest.fixture(scope="module")
def client(served, keys):
    with serving.client(served.path, keys[0]) as found:
        yield found


def needed(spec) -> str | None:
    """What each route needs, written down once more: by what it does."""
    if spec.path in OPEN or spec.path in ("/", "/openapi.json", "/docs") or "static" in spec.path:
        return None
    if spec.path.endswith("/state") or spec.method == "DELETE":
        return "admin"
    if spec.path.endswith("/infer"):
        return "predict"
    return "read" if spec.method == "GET" else "adapt"


@pytest.mark.parametrize("spec", ROUTES, ids=lambda spec: f"{spec.method} {spec.path}")
@pytest.mark.parametrize("scope", [None, "wrong", *SCOPES])
def test_every_route_with_every_scope(client, keys, spec, scope):
    path = spec.path.format(id="none", name="none", version="1", file="none")
    headers = {}
    if scope is not None:
        headers["authorization"] = f"Bearer {keys[1].get(scope, 'psk_wrong')}"
    assert spec.scope == needed(spec)
    if spec.path == "/v1/events" and scope in SCOPES:
        with client.stream(spec.method, path, headers=headers) as found:
            assert found.status_code == 200
        return
    found = client.request(spec.method, path, headers=headers)
    if spec.scope is None:
        assert found.status_code not in (401, 403)
    elif scope not in SCOPES:
        assert (found.status_code, found.json()["code"]) == (401, "unauthorized")
        assert found.headers["www-authenticate"] == "Bearer"
    elif SCOPES.index(scope) < SCOPES.index(spec.scope):
        assert (found.status_code, found.json()["code"]) == (403, "forbidden")
    else:
        assert found.status_code not in (401, 403)
        assert found.status_code < 500


def test_adapting_through_inference_needs_the_scope(client, keys):
    rows = serving.batches(1)[0]
    tensor = {"name": "p", "shape": list(rows.shape), "datatype": "FP64", "data": rows.tolist()}
    body = {"id": "b", "inputs": [tensor], "parameters": {"stream": "s", "adapt": True}}
    for scope, status in (("predict", 403), ("adapt", 200)):
        headers = {"authorization": f"Bearer {keys[1][scope]}"}
        found = client.post("/v2/models/animals/infer", json=body, headers=headers)
        assert found.status_code == status


def test_keys_are_stored_as_digests_and_can_be_removed(served, tmp_path, capsys):
    key = make_key(tmp_path, "on-call", "read")
    assert key.startswith("psk_")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert key.encode() not in stored
    with pytest.raises(InputError, match="on-call"):
        make_key(tmp_path, "on-call", "admin")
    run(serving.options([], tmp_path, "--list-keys"))
    assert capsys.readouterr().out == "on-call\tread\n"
    run(serving.options([], tmp_path, "--remove-key", "on-call"))
    with pytest.raises(InputError, match="no key"):
        run(serving.options([], tmp_path, "--remove-key", "on-call"))
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_keys_are_noticed_while_the_service_runs(served, tmp_path):
    with serving.client(served.path, tmp_path) as client:
        assert client.get("/v1/streams").status_code == 200
        key = make_key(tmp_path, "late", "read")
        client.service.keys._at = 0.0  # two seconds have passed
        assert client.get("/v1/streams").status_code == 401
        headers = {"authorization": f"Bearer {key}"}
        assert client.get("/v1/streams", headers=headers).status_code == 200


def test_without_its_last_key_a_service_stays_closed(served, tmp_path):
    make_key(tmp_path, "only", "admin")
    with serving.client(served.path, tmp_path) as client:
        run(serving.options([], tmp_path, "--remove-key", "only"))
        client.service.keys._at = 0.0  # two seconds have passed
        assert client.get("/v1/streams").status_code == 401
        assert client.put("/v1/streams/x").status_code == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_beyond_this_machine_only_with_keys(served, tmp_path, host):
    with pytest.raises(InputError, match="API keys"):
        run(serving.options(served.path, tmp_path, "--host", host, "--port", "0"))


def test_pages_of_other_sites_are_kept_out(served, tmp_path):
    with serving.client(served.path, tmp_path) as client:
        body = serving.body("b", serving.batches(1)[0])
        path = "/v1/streams/shop/batches"
        for headers in (
            {"host": "evil.example"},
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"host": "["},
            {"origin": "http://["},
        ):
            found = client.post(path, json=body, headers=headers)
            assert (found.status_code, found.json()["code"]) == (403, "forbidden"), headers
        own = {"origin": str(client.base_url)}
        found = client.post(path, json=body, headers=own)
        assert found.status_code == 200
        assert "access-control-allow-origin" not in found.headers
        assert client.options(path, headers=own).status_code == 405


def test_every_answer_has_safe_headers_and_an_id(served, tmp_path):
    with serving.client(served.path, tmp_path) as client:
        for path in ("/v2/health/ready", "/nowhere", "/v1/streams/none"):
            found = client.get(path, headers={"x-request-id": "mine-1"})
            assert found.headers["x-request-id"] == "mine-1"
            assert found.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in found.headers["content-security-policy"]
            assert found.headers["cache-control"] == "no-store"
            assert "server" not in found.headers or "uvicorn" in found.headers["server"]
        odd = client.get("/v2/health/ready", headers={"x-request-id": "a b"})
        assert len(odd.headers["x-request-id"]) == 16
        wrong = client.delete("/v1/streams")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")


def test_rate(served, tmp_path):
    with serving.client(served.path, tmp_path, "--rate", "3") as client:
        found = [client.get("/v1/streams").status_code for _ in range(6)]
        assert found[:3] == [200] * 3
        assert 429 in found
        limited = client.get("/v1/streams")
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) >= 1
        assert client.get("/v2/health/ready").status_code == 200
