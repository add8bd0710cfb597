"""The report on a stream: what it says is what is there, and the page is sound."""

from __future__ import annotations

import re
import warnings
from copy import copy

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

import browser
from priorshift import LabelShiftClassifier, report
from priorshift.errors import InputError
from priorshift.experiments.report.stream.advice import advise
from priorshift.experiments.report.stream.page import _few_ticks
from priorshift.files.audit import Audit
from priorshift.insight import Gains, past_gains
from priorshift.learners import Careful, Tracker
from stream_files import CLASSES, draw, write_csv

SOURCE, LATER = [0.4, 0.3, 0.3], [0.05, 0.15, 0.8]


@pytest.fixture(scope="module")
def clf():
    P, y = draw(np.random.default_rng(0), 900, SOURCE)
    return LabelShiftClassifier.from_probabilities(P, np.array(CLASSES)[y], learner="auto")


def stream(*priors, rows=1500, seed=1):
    rng = np.random.default_rng(seed)
    parts = [draw(rng, rows, prior) for prior in priors]
    P, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    return P, np.array(CLASSES)[y]


@pytest.fixture(scope="module")
def moved(clf):
    P, y = stream(SOURCE, LATER)
    times = 1767225600.0 + 60.0 * np.arange(len(y))
    return report(clf, P, y, timestamps=times)


@pytest.fixture(scope="module")
def still(clf):
    return report(clf, stream(SOURCE)[0])


@pytest.fixture(scope="module")
def strange(clf):
    """A new class: rows that say the same of two classes, which the held-out set never did."""
    P, _ = stream(SOURCE)
    P[500:] = [0.495, 0.495, 0.01]
    return report(clf, P)


def answers(found):
    return {answer.question.split("?")[0]: answer for answer in found.answers}


def test_a_stream_that_moved(clf, moved):
    assert clf.n_rounds_ == 0  # the classifier itself is left alone
    found = answers(moved)
    assert found["Did the class mix move"].short == "Yes"
    assert re.search(r"Class (cat|ape) was \d", found["Did the class mix move"].long)
    minutes = re.findall(r"2026-01-0(\d) (\d+):(\d+) UTC", found["Since when"].short)
    before, end = (1440 * (int(d) - 1) + 60 * int(h) + int(m) for d, h, m in minutes)
    assert before <= 1499 < end <= before + 500  # row 1500 is the first of the other mix
    (first, last) = re.findall(
        r"began with batch(?:es)? (\d+)(?: to (\d+))?", found["Since when"].long
    )[0]
    last = last or first
    assert moved.findings.history["time"].loc[int(last)] == 1767225600.0 + 60.0 * end
    assert (int(first), int(last)) == ((before + 1) // 100 + 1, (end + 1) // 100)
    assert found["Only the mix, or the classes too"].short == "Nothing speaks against the mix alone"
    assert "a broken sensor or a new class" in found["Only the mix, or the classes too"].long
    assert found["What to do next"].short == "Adapt"


def test_how_far_it_moved_is_told_by_rows_where_the_learner_lags():
    """A learner that never adapts: the mix of the rows at the end is told all the same."""
    P, y = draw(np.random.default_rng(0), 900, SOURCE)
    clf = LabelShiftClassifier.from_probabilities(P, y, learner="tracker")
    still = type(clf.deployment_)(clf.source_, Careful(Tracker(), np.inf), history=512)
    clf.deployment_ = still
    clf.reset()
    found = answers(report(clf, stream(SOURCE, LATER)[0]))["Did the class mix move"]
    assert found.short == "Yes"
    most, end = map(int, re.findall(r"up to (\d+) had .* (\d+) at the end", found.long)[0])
    assert 35 <= end <= most <= 60  # half of the moves from SOURCE to LATER add up to 50


def test_what_is_measured_is_right(clf, moved):
    """By hand: the same batches through a copy of the classifier, and the labels."""
    P, y = stream(SOURCE, LATER)
    again = copy(clf).reset()
    proba = np.concatenate([again.adapt_predict_proba(P[i : i + 100]) for i in range(0, 3000, 100)])
    adapted = again.classes_[proba.argmax(axis=1)]
    alone = np.array(CLASSES)[P.argmax(axis=1)]
    audit = moved.findings.audit
    assert audit.adapted.accuracy == pytest.approx(np.mean(adapted == y))
    assert audit.alone.accuracy == pytest.approx(np.mean(alone == y))
    assert audit.changed == int((adapted != alone).sum())
    gain = answers(moved)["Would they be right more often"]
    assert gain.short == f"{100 * (np.mean(adapted == y) - np.mean(alone == y)):+.2f} points"


def test_the_estimate_is_near_what_labels_say(moved):
    adapted, alone = moved.findings.estimated
    audit = moved.findings.audit
    assert adapted == pytest.approx(audit.adapted.accuracy, abs=0.03)
    assert alone == pytest.approx(audit.alone.accuracy, abs=0.03)


def test_a_stream_that_did_not_move(still):
    found = answers(still)
    assert found["Did the class mix move"].short == "Not shown"
    assert "Since when" not in found
    assert found["What to do next"].short == "Keep watching"
    assert "Estimated without labels" in found["Would they be right more often"].long


def test_a_stream_of_something_else(strange):
    found = answers(strange)
    assert found["Only the mix, or the classes too"].short == "Not only the mix"
    assert found["What to do next"].short == "Find the cause first"


def test_batches_are_counted_as_in_the_history(moved):
    rounds = moved.findings.history.index.tolist()
    assert [part.batch for part in moved.findings.audit.parts] == rounds


def test_the_estimated_gain_is_that_of_the_history(moved, still):
    """Its interval is one of the held-out rows, and has what labels say in it here."""
    for found in (moved.findings, still.findings):
        adapted, alone = found.estimated
        value, low, high = found.gains.accuracy
        assert value == pytest.approx(adapted - alone)
        assert low <= value <= high
    gains, audit = moved.findings.gains, moved.findings.audit
    assert gains.accuracy[1] < audit.gain.value < gains.accuracy[2]
    assert gains.log_loss[1] < audit.alone.log_loss - audit.adapted.log_loss < gains.log_loss[2]
    assert (
        past_gains(moved.findings.clf.deployment_, moved.findings.clf.deployment_.start()) is None
    )
    assert (
        "90 % interval of the difference" in answers(still)["Would they be right more often"].long
    )


@pytest.mark.parametrize(
    ("accuracy", "log_loss", "says"),
    [
        ((0.01, 0.005, 0.015), (0.1, 0.05, 0.15), "Adapt"),
        ((0.01, -0.005, 0.025), (0.1, 0.05, 0.15), "Use today's mix"),
        ((0.0, -0.001, 0.001), (0.1, -0.05, 0.25), "Keep the model as it is"),
        ((-0.01, -0.02, 0.0), (-0.1, -0.2, -0.05), "Keep the model as it is"),
        ((-0.01, -0.02, -0.001), (0.1, 0.05, 0.15), "Do not adapt"),
    ],
)
def test_advice_follows_from_the_intervals(clf, accuracy, log_loss, says):
    found = report(clf, stream(SOURCE, LATER)[0]).findings
    object.__setattr__(found, "gains", Gains(accuracy, log_loss))
    assert advise(found).short == says


def test_labels_that_say_adapting_does_harm(clf):
    """The rows move to cat as far as the model can see; the labels say that they do not."""
    P, _ = stream(LATER, seed=3)
    wrong = np.array(CLASSES)[P.argmax(axis=1)]
    found = report(clf, P, wrong)
    assert answers(found)["What to do next"].short == "Do not adapt"


@pytest.mark.parametrize("labelled", [1, 5, 60])
def test_a_few_labels_do_not_take_the_place_of_the_estimate(clf, labelled):
    P, y = stream(SOURCE, LATER)
    some = np.full(len(y), None, dtype=object)
    some[:labelled] = y[:labelled]  # while nothing had moved: no answer differs
    found = report(clf, P, some)
    gain = found.findings.audit.gain
    assert -1 <= gain.low <= 0 <= gain.high <= 1
    assert (
        answers(found)["What to do next"].short == answers(report(clf, P))["What to do next"].short
    )


def test_the_measured_loss_has_the_interval_of_its_rows(moved):
    audit = moved.findings.audit
    value, low, high = audit.loss_gain
    assert value == pytest.approx(audit.alone.log_loss - audit.adapted.log_loss)
    rng = np.random.default_rng(0)
    one, rows = Audit(2), rng.dirichlet([1, 1], (2, 400))
    y = rng.integers(0, 2, 400)
    one.see(1, 0, *rows, y)
    less = np.log(rows[1, np.arange(400), y] / rows[0, np.arange(400), y])
    assert one.loss_gain.high - less.mean() == pytest.approx(1.96 * less.std(ddof=1) / 20)
    assert low < value < high


def test_without_an_estimate_and_without_labels_nothing_is_said_of_intervals(clf):
    P, y = draw(np.random.default_rng(0), 900, SOURCE)
    plain = LabelShiftClassifier.from_probabilities(P, np.array(CLASSES)[y], learner="atlas")
    found = answers(report(plain, stream(SOURCE, LATER)[0]))
    assert found["What to do next"].short == "Label some rows"
    assert "interval" not in found["What to do next"].long


def test_without_times_a_batch_is_named_once(clf):
    page = report(clf, stream(LATER, SOURCE, SOURCE, SOURCE)[0])
    since = answers(page)["Since when"]
    assert (since.short, since.long.count("batch")) == ("It is over", 1)


def test_a_class_that_is_found_less_often_is_named(clf):
    steps = report(clf, stream([0.02, 0.03, 0.95])[0]).html
    assert "Adapted answers find fewer rows of class" in steps


def test_what_a_file_holds_is_text_on_the_page(tmp_path):
    P, y = stream(SOURCE, LATER)
    nasty = [f"<script>alert({i})</script>" for i in range(len(y))]
    names = ["id", *(f"p_{c}" for c in CLASSES), "y"]
    path = write_csv(tmp_path / "log.csv", names, [nasty, *P.T.tolist(), y.tolist()])
    hold, y0 = draw(np.random.default_rng(0), 900, SOURCE)
    hold_names = [*(f"p_{c}" for c in CLASSES), "y"]
    columns = [*hold.T.tolist(), np.array(CLASSES)[y0].tolist()]
    held = write_csv(tmp_path / "hold.csv", hold_names, columns)
    from priorshift.cli import main

    page = tmp_path / "report.html"
    words = ["report", "--hold", held, "--stream", path, "--label", "y", "--keep", "id"]
    more = ["--proba-columns", "p_*", "-o", page, "--learner", "em", "--safety", "off", "--quiet"]
    assert main([str(word) for word in (*words, *more)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "&lt;script&gt;alert(" in text
    assert "priorshift fit --hold" in text
    assert re.search(r"<b>\+\d\.\d\d points</b>", text)


def test_a_file_is_reported_on_as_arrays_are(clf, tmp_path, moved):
    P, y = stream(SOURCE, LATER)
    times = [f"{1767225600 + 60 * i}" for i in range(len(y))]
    names = ["ts", *(f"p_{c}" for c in CLASSES), "y"]
    path = write_csv(tmp_path / "log.csv", names, [times, *P.T.tolist(), y.tolist()])
    found = report(clf, path, "y", timestamps="ts", path=tmp_path / "page.html")
    assert [a[:3] for a in found.answers] == [a[:3] for a in moved.answers]
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == found.html


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A file with a column that the model does not read."""
    P, y = stream(SOURCE, LATER)
    names = ["id", "ts", *(f"p_{c}" for c in CLASSES), "y"]
    columns = [range(len(y)), range(0, 60 * len(y), 60), *P.T.tolist(), y.tolist()]
    return write_csv(tmp_path_factory.mktemp("log") / "log.csv", names, columns)


@pytest.mark.parametrize("more", [{"drop": "id"}, {"drop": ["id"]}, {"keep": "id"}])
def test_columns_of_a_file_that_are_not_for_the_model(clf, log, moved, more):
    found = report(clf, log, "y", timestamps="ts", **more)
    assert found.findings.audit.adapted.accuracy == moved.findings.audit.adapted.accuracy
    assert found.findings.kept == (("id",) if "keep" in more else ())
    with pytest.raises(InputError, match=r"leave the others out with --drop \(drop= in Python\)"):
        report(clf, log, "y", timestamps="ts")


@pytest.mark.parametrize("window", ["5h", 18000.0])
def test_windows_of_time_of_files_and_of_arrays(clf, log, window):
    P, y = stream(SOURCE, LATER)
    times = np.datetime64(0, "s") + 60 * np.arange(len(y))
    kinds = [
        report(clf, P, y, timestamps=times, window=window),
        report(clf, P, y, timestamps=times.astype(float), window=window),
        report(clf, log, "y", timestamps="ts", window=window, drop="id"),
        report(clf, P, y, timestamps=60.0 * np.arange(len(y)), batch_size=300),
        report(clf, P, y, timestamps=np.datetime_as_string(times), window=window),
        report(clf, P, y, timestamps=[f"{t} +00:00" for t in times], batch_size=300),
    ]
    assert [found.findings.batches for found in kinds[:3]] == ["windows of 5 hours"] * 3
    assert {len(found.findings.history) for found in kinds} == {10}
    assert len({str(found) for found in kinds}) == 1


def test_who_has_labelled_rows_is_not_told_to(clf):
    P, y = stream(SOURCE, LATER)
    some = np.full(len(y), None, dtype=object)
    some[::30] = y[::30]
    asked = [
        any("Label a few hundred" in step for step in advise(report(clf, P, labels).findings).steps)
        for labels in (None, some, y)
    ]
    assert asked == [True, True, False]


def test_what_will_not_do(clf, log, tmp_path):
    for more, says in (
        ({"window": "1h"}, "needs the time of a row"),
        ({"window": "soon", "timestamps": [0] * 5}, "give a span of time as"),
        ({"window": 0, "timestamps": [0] * 5}, "window"),
        ({"drop": "id"}, "columns of a file"),
    ):
        with pytest.raises(InputError, match=says):
            report(clf, np.full((5, 3), 1 / 3), **more)
    with pytest.raises(InputError, match=r"'when' \(time\)"):
        report(clf, log, timestamps="when", drop=["id", "ts", "y"])
    with pytest.raises(InputError, match="2 entries for 5 rows"):
        report(clf, np.full((5, 3), 1 / 3), timestamps=[1, 2])
    with pytest.raises(InputError, match="timestamps, row 4: holds 'noon', not a time; give ISO"):
        report(clf, np.full((5, 3), 1 / 3), timestamps=["0", "1", "2", "noon", "4"], window="1h")
    with pytest.raises(InputError, match="timestamps, row 5: holds 'nan', not a time"):
        report(clf, np.full((5, 3), 1 / 3), timestamps=[0, 1, 2, 3, np.nan])
    with pytest.raises(InputError, match="batch_size"):
        report(clf, np.full((5, 3), 1 / 3), batch_size=0)
    with pytest.raises(InputError, match="which the model does not know"):
        report(clf, np.full((2, 3), 1 / 3), ["ape", "dog"])
    (tmp_path / "log.csv").write_text("p_ape,p_bee,p_cat\n")
    with pytest.raises(InputError, match="has no rows"):
        report(clf, tmp_path / "log.csv")


@pytest.mark.parametrize("hours", [0.01, 1.0, 4.0, 69.4, 83.3, 24.0 * 60, 24.0 * 1157])
def test_any_span_of_time_has_a_few_dates(hours):
    axes = Figure().subplots()
    axes.set_xlabel("time (UTC)")
    axes.plot(np.datetime64("2026-01-01T01:02") + np.array([0, int(3600 * hours)], "m8[s]"), [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _few_ticks(axes)
        assert 2 <= len(axes.get_xticks()) <= 8


@pytest.mark.parametrize("dark", [False, True])
def test_pages_in_a_browser(moved, still, strange, tmp_path, dark):
    if browser.missing() is not None:
        pytest.skip(browser.missing())
    with browser.open_browser(dark=dark) as driver:
        for name, found in (("moved", moved), ("still", still), ("strange", strange)):
            path = tmp_path / f"{name}.html"
            found.save(path)
            if name == "moved" or not dark:
                widths = (1280, 820, 390) if name == "moved" else (390,)
                assert browser.check_page(path, widths, driver) == []
        colours = driver.execute_script(
            "return [getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.body).color]"
        )
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
    assert (light[0] < light[1]) is dark


def test_refusals_of_the_command(tmp_path, capsys):
    from priorshift.cli import main

    (tmp_path / "log.csv").write_text("a\n1\n")
    log, page = str(tmp_path / "log.csv"), str(tmp_path / "r.html")
    for words, says in (
        (["--stream", log], "--output"),
        (["--stream", log, "-o", page], "give --source, or --hold"),
        (["--stream", log, "-o", page, "--source", log], "not a priorshift file"),
        (["--stream", log, "-o", "/no/such/r.html", "--source", log], "/no/such"),
    ):
        assert main(["report", *words, "--quiet"]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1


def test_no_more_is_said_of_the_classes_than_was_seen(clf, still):
    """Without a change that shows there is no mix to speak of; with a model rows themselves are."""
    assert answers(still)["Only the mix, or the classes too"].short == "Nothing shown"
    few = answers(report(clf, stream(LATER, rows=5)[0]))
    assert few["Did the class mix move"].short == "Not shown"
    assert few["Only the mix, or the classes too"].short == "Nothing shown"
    (P0, y0), (P, _) = draw(np.random.default_rng(0), 900, SOURCE), stream(SOURCE, LATER)
    model = LogisticRegression().fit(np.log(P0), y0)
    ours = LabelShiftClassifier(model).fit(*(np.log(P0), y0))
    seen = answers(report(ours, np.log(P)))["Only the mix, or the classes too"]
    assert (seen.short, seen.tone) == ("Nothing speaks against the mix alone", "good")
    assert "sensor" not in seen.long


def test_advice_from_probabilities_alone_says_what_it_assumes(clf):
    P, y = stream(SOURCE, LATER)
    advice = advise(report(clf, P).findings)
    assert advice.short == "Adapt"
    assert "if nothing but the mix has changed" in advice.long
    assert any("no sensor is broken" in step for step in advice.steps)
    assert "if nothing but" not in advise(report(clf, P, y).findings).long  # labels have measured


def test_a_class_prior_that_was_given_is_called_so(clf):
    P, y = draw(np.random.default_rng(0), 900, SOURCE)
    given = LabelShiftClassifier.from_probabilities(P, y, learner="em", prior=[0.8, 0.1, 0.1])
    told = answers(report(given, stream(LATER)[0]))["Did the class mix move"].long
    assert re.search(r"was \d+\.0% in the class prior that was given .* than that mix would", told)


@pytest.mark.parametrize("more", [{}, {"window": "1h"}])
def test_rows_that_come_newest_first_are_refused(clf, more):
    P, _ = stream(SOURCE, rows=500)
    times = 1767225600.0 + 60.0 * np.arange(500)
    with pytest.raises(InputError, match=r"X row \d+: is older .*: sort the rows by .*time"):
        report(clf, P, timestamps=times[::-1], **more)
    with pytest.raises(InputError, match=r"timestamps, row \d+: .* milliseconds, divide"):
        report(clf, P, timestamps=1000.0 * times, **more)
