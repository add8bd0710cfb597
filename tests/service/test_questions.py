"""What is answered of a stream without labels is what the library says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import serving
from priorshift import load

SHOP = "/v1/streams/shop"
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def asked(served, tmp_path_factory):
    """A client of a stream of 30 batches, and the classifier that has seen the same."""
    alone = load(served.path)
    with serving.client(served.path, tmp_path_factory.mktemp("state")) as client:
        for number, rows in enumerate(serving.batches(30)):
            sent = serving.body(f"b{number}", rows, timestamp=100.0 + number)
            assert client.post(f"{SHOP}/batches", json=sent).status_code == 200
            alone.adapt(rows, timestamp=100.0 + number)
        yield client, alone


def test_prior(asked):
    client, alone = asked
    found = client.get(f"{SHOP}/prior", params={"level": 0.8}).json()
    low, high = alone.prior_interval(0.8)
    assert (found["prior"], found["low"], found["high"]) == (
        alone.prior_.tolist(), low.tolist(), high.tolist()
    )  # fmt: skip


def test_performance(asked):
    client, alone = asked
    found = client.get(f"{SHOP}/performance").json()
    report = alone.performance()
    assert found["level"] == 0.9
    for name in ("accuracy", "log_loss", "recall", "f1", "auc"):
        for given, known in ((found, report), (found["unadapted"], report.unadapted)):
            for end in ("value", "low", "high"):
                value = np.asarray(getattr(getattr(known, name), end), dtype=float)
                np.testing.assert_array_equal(np.asarray(given[name][end], dtype=float), value)


def test_shift_and_guard(asked):
    client, alone = asked
    found, shift = client.get(f"{SHOP}/shift").json(), alone.shift_
    assert (found["distance"], found["p_value"]) == (shift.distance, shift.p_value)
    assert found["source_prior"] == shift.source_prior.tolist()
    guard, report = client.get(f"{SHOP}/guard").json(), alone.guard_report_
    assert (guard["watching"], guard["alarm"], guard["p_value"]) == (
        True, report.alarm, report.p_value
    )  # fmt: skip


def test_history_in_pages(asked):
    client, alone = asked
    frame = alone.history_
    pages, after = [], 0
    while after is not None:
        page = client.get(f"{SHOP}/history", params={"after": after, "limit": 12}).json()
        pages.append(page["columns"])
        after = page["next"]
    assert [len(page["round"]) for page in pages] == [12, 12, 6]
    columns = {name: [one for page in pages for one in page[name]] for name in pages[0]}
    assert columns["round"] == list(range(1, 31)) == frame.index.tolist()
    for name in (
        "time",
        "rows",
        "accuracy",
        "accuracy_unadapted",
        "guard_p_value",
        "shift_p_value",
    ):
        np.testing.assert_array_equal(columns[name], frame[name].to_numpy(), err_msg=name)
    for end in ("prior", "low", "high"):
        expected = frame[[f"{end}_{label}" for label in alone.classes_]].to_numpy()
        np.testing.assert_array_equal(columns[end], expected)
    assert columns["received"] == sorted(columns["received"])
    last = client.get(f"{SHOP}/history", params={"last": "true", "limit": 5}).json()
    assert last["columns"]["round"] == [26, 27, 28, 29, 30]


def test_a_long_history_is_thinned_as_the_library_does(tmp_path):
    from priorshift.saving import stream_to_bytes

    path = tmp_path / "short.priorshift"
    serving.save_source(path, "fth", history=8)
    alone = load(path)
    for start in (0, 25):
        with serving.client(path, tmp_path / "state") as client:
            for number, rows in list(enumerate(serving.batches(50, rows=3)))[start : start + 25]:
                client.post(f"{SHOP}/batches", json=serving.body(f"b{number}", rows))
                alone.adapt(rows)
            found = client.get(f"{SHOP}/history").json()["columns"]
            assert found["round"] == alone.history_.index.tolist()
            assert None not in found["received"]
            state = client.get(f"{SHOP}/state").content
            assert state == stream_to_bytes(alone.deployment_, alone.stream_)


def test_metrics(asked):
    client, alone = asked
    text = client.get("/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    for label, share in zip(alone.classes_, alone.prior_, strict=True):
        name = f'priorshift_prior_ratio{{class="{label}",stream="shop"}}'
        other = f'priorshift_prior_ratio{{stream="shop",class="{label}"}}'
        assert float(lines.get(name, lines.get(other))) == pytest.approx(share)
    assert float(lines["priorshift_batches_total"]) == 30
    assert float(lines["priorshift_samples_total"]) == 600
    assert float(lines["priorshift_adapt_duration_seconds_count"]) == 30
    assert float(lines['priorshift_stream_version{stream="shop"}']) == 30
    assert float(lines['priorshift_guard_evidence{stream="shop"}']) >= 0
    assert float(lines['priorshift_guard_alarm{stream="shop"}']) == 0
    assert float(lines["priorshift_streams_in_alarm"]) == 0
    updated = client.get(SHOP).json()["updated"]
    line = 'priorshift_stream_updated_timestamp_seconds{stream="shop"}'
    assert float(lines[line]) == updated
    client.get("/v1/streams/none/prior")
    assert 'priorshift_errors_total{code="not_found"}' in client.get("/metrics").text


def test_every_metric_of_the_dashboard_is_there(asked):
    """Also every label that an expression names, and no metric is left out."""
    client, _ = asked
    client.get("/v1/streams/none/prior")  # an error to count
    text = client.get("/metrics").text
    there = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if line[0] != "#"}
    labels = set(re.findall(r'(\w+)="', text))
    page = json.loads((DOCS / "service-grafana.json").read_text(encoding="utf-8"))
    shown = [target["expr"] for panel in page["panels"] for target in panel["targets"]]
    shown.append(page["templating"]["list"][1]["query"]["query"])
    used = {name for one in shown for name in re.findall(r"priorshift_\w+", one)}
    assert used <= there
    by = {
        name
        for one in shown
        for names in re.findall(r"by \(([^)]*)\)", one)
        for name in names.split(", ")
    }
    assert by <= labels
    families = {re.sub("_(bucket|count|sum|total|created)$", "", name) for name in there}
    ours = {name for name in families if name.startswith("priorshift_")} - {"priorshift_info"}
    assert ours == {re.sub("_(bucket|count|sum|total)$", "", name) for name in used}


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A source with a guard, and how to draw rows without and with an alarm."""
    path = tmp_path_factory.mktemp("watched") / "points.priorshift"
    return path, *serving.save_watched(path)


def test_an_alarm_begins_and_ends(watched, tmp_path, caplog):
    """It is in the overview, in the metrics and in the log, also after a restart."""
    path, well, ill = watched
    caplog.set_level("INFO", "priorshift.service")

    def send(client, name, mark, rows, count):
        for number in range(count):
            sent = {"batch_id": f"{mark}{number}", "rows": rows(50).tolist()}
            assert client.post(f"/v1/streams/{name}/batches", json=sent).status_code == 200

    def logged(message):
        return [one for one in caplog.records if one.getMessage() == message]

    def gauge(client, name):
        text = client.get("/metrics").text
        found = [line for line in text.splitlines() if line.startswith(name)]
        return [float(line.rsplit(" ", 1)[1]) for line in found]

    with serving.client(path, tmp_path, "--metric-streams", "1") as client:
        for name in ("a", "broken", "c"):
            send(client, name, "well", well, 3)
        assert client.get("/v1/overview").json()["alarms"] == 0
        send(client, "broken", "ill", ill, 6)
        send(client, "c", "later", well, 1)
        assert client.get("/v1/streams/broken/guard").json()["now"]
        (begun,) = logged("guard alarm begins")
        assert (begun.levelname, begun.fields["stream"]) == ("WARNING", "broken")
        assert 4 <= begun.fields["batch"] <= 9
        assert begun.fields["batch"] == begun.fields["first_alarm"]
        assert gauge(client, 'priorshift_guard_alarm{stream="broken"}') == [1.0]
        assert gauge(client, 'priorshift_guard_alarm{stream="a"}') == [0.0]
        assert gauge(client, 'priorshift_guard_alarm{stream="c"}') == []
        assert gauge(client, "priorshift_streams_in_alarm") == [1.0]
    for again in range(2):  # what a new process says is read from the folder
        with serving.client(path, tmp_path) as client:
            found = client.get("/v1/overview").json()
            assert [one["stream"] for one in found["streams"]] == ["broken", "c", "a"]
            assert [one["alarm"] for one in found["streams"]] == [True, False, False]
            assert (found["found"], found["count"], found["alarms"]) == (3, 3, 1)
            few = client.get("/v1/overview", params={"limit": 1, "match": "C"}).json()
            assert [one["stream"] for one in few["streams"]] == ["c"]
            assert (few["found"], few["count"], few["alarms"]) == (1, 3, 1)
            one = client.get("/v1/streams/c").json()
            assert few["streams"][0] == {
                "stream": "c",
                "model": f"{one['model']}@{one['model_version']}",
                "version": 4,
                "updated": one["updated"],
                "alarm": False,
            }
            assert client.get("/v1/overview", params={"limit": 0}).status_code == 422
            guard = client.get("/v1/streams/broken/guard").json()
            assert (guard["now"], guard["own_model"]) == (True, 1.0)
            if again:
                send(client, "broken", "again", well, 60)
                assert client.get("/v1/overview").json()["alarms"] == 0
                guard = client.get("/v1/streams/broken/guard").json()
                assert (guard["now"], guard["alarm"], guard["own_model"] < 1) == (False, True, True)
                client.delete("/v1/streams/c")
                left = client.get("/v1/overview").json()
                assert {one["stream"] for one in left["streams"]} == {"a", "broken"}
    (ended,) = logged("guard alarm ends")
    assert (ended.levelname, ended.fields["stream"]) == ("INFO", "broken")
    assert len(logged("guard alarm begins")) == 1


def test_a_refusal_in_the_log_says_where(asked, caplog):
    client, _ = asked
    caplog.set_level("INFO", "priorshift.service")
    client.get("/v1/streams/somebody/prior")
    (refused,) = [one for one in caplog.records if one.getMessage() == "refused"]
    assert refused.fields["path"] == "/v1/streams/somebody/prior"


def test_metrics_of_many_streams_are_bounded(served, tmp_path):
    with serving.client(served.path, tmp_path, "--metric-streams", "2") as client:
        for name in "abc":
            client.put(f"/v1/streams/{name}")
        text = client.get("/metrics").text
    assert 'stream="b"' in text
    assert 'stream="c"' not in text
    assert "priorshift_streams 3" in text


def test_last_errors(asked):
    client, _ = asked
    wrong = client.get("/v1/streams/nobody/prior").json()
    newest = client.get("/v1/errors").json()["errors"][0]
    assert (newest["code"], newest["request_id"]) == ("not_found", wrong["request_id"])
    assert newest["path"] == "/v1/streams/nobody/prior"
