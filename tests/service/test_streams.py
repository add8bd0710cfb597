"""The routes of streams."""

from __future__ import annotations

import numpy as np
import pytest

import serving
from priorshift import load
from priorshift.saving import stream_to_bytes

SHOP = "/v1/streams/shop"


def post(client, batch_id, rows, stream=SHOP, **more):
    return client.post(f"{stream}/batches", json=serving.body(batch_id, rows, **more))


def refusal(response, status, code):
    """Check a refusal, and return its sentence."""
    found = response.json()
    assert (response.status_code, found["code"]) == (status, code), found
    assert set(found) == {"error", "code", "request_id"}
    assert found["request_id"] == response.headers["x-request-id"]
    return found["error"]


def test_answers_are_those_of_the_library_to_the_last_bit(client, served):
    alone = load(served.path)
    for number, rows in enumerate(serving.batches(12), 1):
        found = post(client, f"b{number}", rows).json()
        proba = alone.adapt_predict_proba(rows)
        assert set(found) == {
            "stream", "batch_id", "version", "labels", "probabilities", "prior"
        }  # fmt: skip
        assert (found["stream"], found["batch_id"], found["version"]) == (
            "shop",
            f"b{number}",
            number,
        )
        assert found["probabilities"] == proba.tolist()
        assert found["labels"] == alone.classes_[proba.argmax(axis=1)].tolist()
        assert found["prior"] == alone.prior_.tolist()
    state = client.get(f"{SHOP}/state")
    assert state.content == stream_to_bytes(alone.deployment_, alone.stream_)
    assert state.headers["etag"] == '"12"'


def test_the_same_batch_again_changes_nothing(client):
    first, second = serving.batches(2)
    answers = [post(client, "b1", first).content, post(client, "b2", second).content]
    state = client.get(f"{SHOP}/state").content
    assert [post(client, "b1", first).content, post(client, "b2", second).content] == answers
    message = refusal(post(client, "b1", second), 409, "batch_conflict")
    assert "another batch" in message
    assert client.get(f"{SHOP}/state").content == state


def test_the_body_is_known_by_its_numbers_not_by_its_text(client):
    (rows,) = serving.batches(1)
    first = post(client, "b1", rows)
    text = f'{{ "probabilities": {rows.tolist()},\n "batch_id": "b1"}}'
    assert client.post(f"{SHOP}/batches", content=text).content == first.content


def test_answers_expire_and_ids_are_kept_longer(served, tmp_path):
    keep = ("--keep-answers", "2", "--keep-ids", "4")
    with serving.client(served.path, tmp_path, *keep) as client:
        rows = serving.batches(6)
        for number, batch in enumerate(rows, 1):
            assert post(client, f"b{number}", batch).status_code == 200
        assert post(client, "b5", rows[4]).json()["version"] == 5
        assert "version 4" in refusal(post(client, "b4", rows[3]), 410, "answer_expired")
        refusal(post(client, "b4", rows[0]), 409, "batch_conflict")
        # What lies further back than the ids is forgotten, as the documents say.
        assert post(client, "b1", rows[0]).json()["version"] == 7


def test_prior_comes_with_an_interval(client):
    for number, rows in enumerate(serving.batches(5)):
        last = post(client, f"b{number}", rows).json()
    found = client.get(f"{SHOP}/prior").json()
    assert set(found) == {"version", "prior", "low", "high"}
    assert found["prior"] == last["prior"]
    assert found["version"] == 5
    narrow = client.get(f"{SHOP}/prior", params={"level": 0.5}).json()
    for wide, tight in (("low", "low"), ("high", "high")):
        assert len(found[wide]) == len(narrow[tight]) == 3
    widths = [np.subtract(one["high"], one["low"]) for one in (narrow, found)]
    assert (widths[0] < widths[1]).all()
    refusal(client.get(f"{SHOP}/prior", params={"level": "2"}), 422, "invalid_input")


def test_streams_are_made_listed_and_forgotten(client):
    assert client.get("/v1/streams").json() == {"streams": [], "next": None}
    made = client.put("/v1/streams/north", json={"model": "animals"})
    assert (made.status_code, made.json()["rounds"], made.json()["classes"]) == (
        201, 0, list(serving.CLASSES)
    )  # fmt: skip
    refusal(client.put("/v1/streams/north"), 409, "stream_exists")
    refusal(client.put("/v1/streams/west", json={"model": "none"}), 404, "not_found")
    for name in ("south", "east"):
        assert client.put(f"/v1/streams/{name}").status_code == 201
    page = client.get("/v1/streams", params={"limit": 2}).json()
    assert [one["stream"] for one in page["streams"]] == ["east", "north"]
    rest = client.get("/v1/streams", params={"after": page["next"]}).json()
    assert ([one["stream"] for one in rest["streams"]], rest["next"]) == (["south"], None)
    post(client, "b", serving.batches(1)[0], "/v1/streams/south")
    assert client.delete("/v1/streams/south").status_code == 204
    refusal(client.get("/v1/streams/south/prior"), 404, "not_found")
    # A stream of the same name begins anew, and knows no batch of the old one.
    again = post(client, "b", serving.batches(1)[0], "/v1/streams/south")
    assert again.json()["version"] == 1


def test_state_goes_out_and_in(client, served):
    rows = serving.batches(4)
    for number, batch in enumerate(rows[:3]):
        post(client, f"b{number}", batch)
    state = client.get(f"{SHOP}/state").content
    expected = post(client, "b3", rows[3]).json()
    assert client.put("/v1/streams/copy/state", content=state).json() == {
        "stream": "copy", "version": 1
    }  # fmt: skip
    found = post(client, "b3", rows[3], "/v1/streams/copy").json()
    assert found["probabilities"] == expected["probabilities"]
    refusal(client.put(f"{SHOP}/state", content=state[:-1]), 422, "invalid_input")
    wrong = client.put(f"{SHOP}/state", content=state, headers={"if-match": '"3"'})
    assert "version 4" in refusal(wrong, 409, "version_conflict")
    right = client.put(f"{SHOP}/state", content=state, headers={"if-match": '"4"'})
    assert right.json()["version"] == 5
    assert client.get(f"{SHOP}/state").content == state


def test_late_labels_are_those_of_the_library(client, served):
    alone = load(served.path)
    rows = serving.batches(5)
    for number, batch in enumerate(rows[:4]):
        follow = number in (1, 2)
        post(client, f"b{number}", batch, labels_follow=follow)
        alone.adapt_predict_proba(batch, batch_id=f"b{number}" if follow else None)
    labels = ["owl", None] * 10
    found = client.post(f"{SHOP}/labels", json={"batch_id": "b1", "labels": labels})
    assert found.json() == {"stream": "shop", "version": 5}
    alone.learn_labels("b1", labels)
    assert client.get(f"{SHOP}/prior").json()["prior"] == alone.prior_.tolist()
    assert client.get(f"{SHOP}/state").content == stream_to_bytes(alone.deployment_, alone.stream_)
    for batch, text in (("b0", "labels_follow"), ("none", "labels_follow")):
        wrong = client.post(f"{SHOP}/labels", json={"batch_id": batch, "labels": labels})
        assert text in refusal(wrong, 404, "not_found")
    for bad in (["bat"] * 20, ["owl"], [1] * 20):
        wrong = client.post(f"{SHOP}/labels", json={"batch_id": "b1", "labels": bad})
        refusal(wrong, 422, "invalid_input")


def test_labels_that_come_with_a_batch(client, served):
    alone = load(served.path)
    (rows,) = serving.batches(1)
    labels = ["cat", *[None] * 19]
    found = post(client, "b", rows, labels=labels).json()
    assert found["probabilities"] == alone.adapt_predict_proba(rows, labels).tolist()
    # The labels are a part of what was sent.
    refusal(post(client, "b", rows), 409, "batch_conflict")


def test_one_batch_for_many_streams(client, served):
    rows = serving.batches(1, rows=9)[0]
    names = ["a", "b", "a", "c", "b", "a", "c", "c", "a"]
    sent = {"batch_id": "t1", "streams": names, "probabilities": rows.tolist()}
    found = client.post("/v1/batches", json=sent)
    assert found.json()["versions"] == {"a": 1, "b": 1, "c": 1}
    for name in "abc":
        alone, own = load(served.path), [n for n, of in enumerate(names) if of == name]
        proba = alone.adapt_predict_proba(rows[own])
        assert [found.json()["probabilities"][n] for n in own] == proba.tolist()
        assert [found.json()["labels"][n] for n in own] == [
            serving.CLASSES[k] for k in proba.argmax(axis=1)
        ]
    assert client.post("/v1/batches", json=sent).content == found.content
    # One stream has seen the id with other rows: none of them learns.
    post(client, "t2", rows[:1], "/v1/streams/b")
    refusal(client.post("/v1/batches", json={**sent, "batch_id": "t2"}), 409, "batch_conflict")
    versions = {
        one["stream"]: one["version"] for one in client.get("/v1/streams").json()["streams"]
    }
    assert versions == {"a": 1, "b": 2, "c": 1}
    new = {
        "batch_id": "t3",
        "streams": ["new", "a"],
        "probabilities": [[0.2, 0.3, 0.5], [2.0, 0, 0]],
    }
    refusal(client.post("/v1/batches", json=new), 422, "invalid_input")
    refusal(client.get("/v1/streams/new"), 404, "not_found")
    short = {"batch_id": "t4", "streams": ["a"], "probabilities": rows.tolist()}
    refusal(client.post("/v1/batches", json=short), 422, "invalid_input")


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"no json", 400, "bad_request"),
        (b'{"probabilities":' + b"[" * 100_000, 400, "bad_request"),
        (b"\xff\xfe", 400, "bad_request"),
        (b"[]", 422, "invalid_input"),
        ({"probabilities": [[0.1, 0.2, 0.7]]}, 422, "invalid_input"),
        ({"batch_id": "", "probabilities": [[0.1, 0.2, 0.7]]}, 422, "invalid_input"),
        ({"batch_id": 5, "probabilities": [[0.1, 0.2, 0.7]]}, 422, "invalid_input"),
        ({"batch_id": "b"}, 400, "bad_request"),
        ({"batch_id": "b", "rows": [[1]], "probabilities": [[1]]}, 400, "bad_request"),
        ({"batch_id": "b", "probabilities": []}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[0.1, 0.9]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[0.1, 0.2, 0.7], [0.5, 0.5]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[0.1, 0.2, 0.9]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[0.1, 0.2, None]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [["0.1", "0.2", "0.7"]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[{}, 0.2, 0.7]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[10**400, 0.2, 0.7]]}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": "rows"}, 422, "invalid_input"),
        ({"batch_id": "b", "probabilities": [[0.1, 0.2, 0.7]], "more": 1}, 422, "invalid_input"),
        (
            {"batch_id": "b", "probabilities": [[0.1, 0.2, 0.7]], "labels": ["bat"]},
            422,
            "invalid_input",
        ),
    ],
)
def test_a_refused_batch_changes_nothing(client, sent, status, code):
    how = {"content": sent} if isinstance(sent, bytes) else {"json": sent}
    assert refusal(client.post(f"{SHOP}/batches", **how), status, code)
    assert client.get("/v1/streams").json()["streams"] == []
    post(client, "b1", serving.batches(1)[0])
    state = client.get(f"{SHOP}/state").content
    refusal(client.post(f"{SHOP}/batches", **how), status, code)
    assert client.get(f"{SHOP}/state").content == state


@pytest.mark.parametrize("name", ["a b", "%2e%2e", "-a", "a" * 129, "%00", "é", "..", "a%2fb"])
def test_names_that_no_stream_has(client, name):
    found = client.post(
        f"/v1/streams/{name}/batches", json=serving.body("b", serving.batches(1)[0])
    )
    assert found.status_code in (404, 422)
    assert client.get("/v1/streams").json()["streams"] == []


def test_limits(served, tmp_path):
    limits = ("--max-rows", "30", "--max-body", "5000", "--max-streams", "2")
    with serving.client(served.path, tmp_path, *limits) as client:
        rows = serving.batches(1, rows=31)[0]
        assert "31 rows" in refusal(post(client, "b", rows), 413, "too_large")
        large = post(client, "b", serving.batches(1, rows=300)[0])
        assert "5000 bytes" in refusal(large, 413, "too_large")

        def parts():
            for _ in range(10):
                yield b" " * 1000

        refusal(client.post(f"{SHOP}/batches", content=parts()), 413, "too_large")
        for name in ("a", "b"):
            assert post(client, "1", rows[:2], f"/v1/streams/{name}").status_code == 200
        message = refusal(post(client, "1", rows[:2], "/v1/streams/c"), 422, "invalid_input")
        assert "--max-streams" in message


def test_guard_says_what_it_sees(served, client):
    post(client, "b1", serving.batches(1)[0])
    found = client.get(f"{SHOP}/guard").json()
    assert found["version"] == 1
    assert found["watching"] is (served.classifier.deployment_.guard is not None)
    assert found["alarm"] is False


def test_times_may_be_text(client):
    """ISO 8601, as the library takes it; the digest of a text is that of the text."""
    rows = serving.batches(4)
    texts = ["2026-01-31T12:00", "2026-01-31T13:30:00+01:00", 1769864400, 1769864400.5]
    for number, time in enumerate(texts):
        sent = serving.body(f"b{number}", rows[number], timestamp=time)
        first, again = (client.post("/v1/streams/times/batches", json=sent) for _ in range(2))
        assert (first.status_code, again.content) == (200, first.content), first.text
    other = serving.body("b0", rows[0], timestamp="2026-01-31T12:00:00")
    found = client.post("/v1/streams/times/batches", json=other)
    assert (found.status_code, found.json()["code"]) == (409, "batch_conflict")
    history = client.get("/v1/streams/times/history").json()["columns"]["time"]
    assert history == [1769860800.0, 1769862600.0, 1769864400.0, 1769864400.5]
    for wrong in ("yesterday", "12.5", ""):
        sent = serving.body("wrong", rows[0], timestamp=wrong)
        found = client.post("/v1/streams/times/batches", json=sent)
        assert (found.status_code, found.json()["code"]) == (422, "invalid_input"), wrong


@pytest.mark.parametrize(
    ("more", "digest"),
    [
        ({}, "c33f9d7b4e3fabff5bb66da15a40e996"),
        ({"timestamp": 7}, "99fe49e335d6f7232e6174cb79cf31c2"),
        ({"labels": ["cat"]}, "86f66cc9400f2639c5b6136a496671a9"),
        ({"columns": ["p_cat", "p_dog", "p_owl"]}, "c33f9d7b4e3fabff5bb66da15a40e996"),
    ],
)
def test_a_batch_that_was_stored_before_is_known_again(client, more, digest):
    """Digests are those of the version that first wrote them."""
    rows = np.array([[0.5, 0.25, 0.25]])
    assert post(client, "b", rows, **more).status_code == 200
    engine = client.service.engine
    number = engine.committed("shop").row.number
    found = engine.read(lambda connection: connection.find_batch(number, "b"))
    assert found.digest.hex() == digest
