"""Calibration where it is used: source, classifier, files, evaluation, command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import priorshift
from checks import CHECKS
from priorshift._numerics import reweight
from priorshift.calibration import IdentityMap, MatrixScaling, NoCalibration, ScaledMap, Temperature
from priorshift.classifier import LabelShiftClassifier, load
from priorshift.cli.main import build_parser
from priorshift.errors import FileFormatError, InputError, PriorshiftWarning
from priorshift.experiments.perform import calibration_of
from priorshift.experiments.planning import make_plan
from priorshift.learners import FIX, FTH, LEARNERS
from priorshift.saving import Saved, load_parts, save_parts
from priorshift.simulation.evaluate import evaluate
from priorshift.simulation.streams import SimulatedStream
from priorshift.source import Batch, build_source
from priorshift.source.model import ProbabilityModel
from priorshift.stream import Deployment


@dataclass(frozen=True)
class Tracker(FTH):
    """A learner that wants f0 calibrated."""

    calibration: ClassVar[str] = "matrix"


@pytest.fixture(scope="module")
def naive(blobs):
    """A bold f0: every feature twice, which naive Bayes takes for twice the evidence."""
    twice = lambda X: np.hstack([X, X])  # noqa: E731
    model = GaussianNB().fit(twice(blobs.train_X), blobs.train_y)
    return model, twice(blobs.X), blobs.y


@pytest.fixture(scope="module")
def pair(naive):
    model, X, y = naive
    return build_source(model, X, y), build_source(model, X, y, calibration="matrix")


def test_without_calibration_nothing_changes(naive, pair):
    model, X, y = naive
    plain, _ = pair
    for name in (None, "none"):
        source = build_source(model, X, y, calibration=name)
        assert source.calibration is None
        assert source.proba.tobytes() == plain.proba.tobytes()
        batch = source.read(X[:5])
        assert batch.raw is None
        assert batch.f0_proba is batch.proba


def test_learners_read_the_calibrated_and_f0s_own_stays(naive, pair):
    _, X, _ = naive
    plain, source = pair
    before, batch = plain.read(X[:9]), source.read(X[:9])
    np.testing.assert_array_equal(batch.f0_proba, before.proba)
    np.testing.assert_array_equal(batch.proba, source.calibration(before.proba))
    assert (batch.proba != batch.raw).any()
    piece = batch.rows(slice(2, 5))
    np.testing.assert_array_equal(piece.raw, batch.raw[2:5])
    np.testing.assert_array_equal(piece.proba, batch.proba[2:5])
    np.testing.assert_array_equal(FIX().predict_proba(source, None, batch), before.proba)


def test_the_sources_own_rows_are_cross_fitted(pair):
    plain, source = pair
    assert source.calibration.name == "matrix"
    assert (source.proba != source.calibration(plain.proba)).any()
    np.testing.assert_allclose(source.proba, source.calibration(plain.proba), atol=0.2)
    C = np.zeros((3, 3))
    np.add.at(C, (source.proba.argmax(axis=1), source.labels), 1.0)
    np.testing.assert_array_equal(source.confusion, C / source.counts)


def test_calibrated_f0_has_less_log_loss_and_the_priors_mean(pair, naive):
    plain, source = pair
    rows = np.arange(len(source.labels))
    loss = lambda P: -np.log(np.maximum(P[rows, source.labels], 1e-12)).mean()  # noqa: E731
    assert loss(source.proba) < loss(plain.proba)
    mean = source.read(naive[1]).proba.mean(axis=0)
    np.testing.assert_allclose(mean, source.prior, atol=1e-6)


def test_a_calibrated_source_is_not_calibrated_again(pair):
    plain, source = pair
    assert source.calibrated("none") is source
    with pytest.raises(InputError, match="calibrated already"):
        source.calibrated("vector")
    again = plain.calibrated("matrix")
    assert again.proba.tobytes() == source.proba.tobytes()


def test_a_prior_that_is_told_is_the_one_calibrated_for(naive):
    model, X, y = naive
    prior = np.full(3, 1 / 3)
    source = build_source(model, X, y, prior=prior, calibration="vector")
    order = np.argsort(y, kind="stable")
    weights = prior[source.labels] / source.counts[source.labels]
    np.testing.assert_allclose(weights @ source.read(X[order]).proba, prior, atol=1e-6)


def test_an_unfitted_model_is_calibrated_on_its_cross_fitted_rows(blobs):
    source = build_source(GaussianNB(), blobs.X, blobs.y, calibration=Temperature())
    assert source.calibration.name == "temperature"


def test_bad_calibrations_are_refused_before_any_work(blobs, fitted):
    with pytest.raises(InputError, match="no calibration is called 'platt'"):
        build_source(fitted, blobs.X, blobs.y, calibration="platt")
    with pytest.raises(ValueError, match="pass a name"):
        LabelShiftClassifier(fitted, calibration=7).fit(blobs.X, blobs.y)


def test_the_papers_learners_ask_for_none():
    for name in ("fix", "rogd", "uogd", "atlas", "atlas-ada"):
        assert LEARNERS[name]().calibration == "none"
    for name in ("fth", "ftfwh"):
        assert LEARNERS[name](preset="paper").calibration == "none"


def test_the_classifier_takes_the_learners_own_unless_told(naive):
    model, X, y = naive
    fit = lambda **s: LabelShiftClassifier(model, **s).fit(X, y)  # noqa: E731
    assert fit(learner=FTH(preset="paper")).source_.calibration is None
    assert fit(learner=Tracker()).source_.calibration.name == "matrix"
    assert fit(learner=Tracker(), calibration="none").source_.calibration is None
    assert fit(learner="fth", calibration="vector").source_.calibration.name == "vector"
    recipe = MatrixScaling(strength=0.05)
    assert fit(learner="fth", calibration=recipe).source_.calibration.name == "matrix"
    assert clone(LabelShiftClassifier(model, calibration=recipe)).calibration == recipe


def test_fix_stays_the_model_to_the_last_bit(naive):
    model, X, y = naive
    clf = LabelShiftClassifier(model, learner="fix", calibration="matrix").fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    plain = LabelShiftClassifier(model, learner="fix").fit(X, y)
    assert clf.predict_proba(X).tobytes() == plain.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    "calibration", ["temperature", "vector", "isotonic", "auto", MatrixScaling(strength=0.02)]
)
def test_saving_keeps_every_bit_of_it(naive, tmp_path, calibration):
    model, X, y = naive
    clf = (
        LabelShiftClassifier(model, learner="fth", calibration=calibration).fit(X, y).adapt(X[:30])
    )
    clf.save(tmp_path / "file")
    again = load(tmp_path / "file")
    assert again.calibration == calibration
    assert again.source_.calibration.name == clf.source_.calibration.name
    assert again.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
    assert again.adapt(X[30:60]).prior_.tobytes() == clf.adapt(X[30:60]).prior_.tobytes()


def fresh(source):
    deployment = Deployment(source, FIX())
    return Saved(deployment, deployment.start(), {})


def test_a_map_for_other_classes_is_refused(pair, tmp_path):
    _, source = pair
    wrong = replace(source, calibration=ScaledMap("vector", np.ones(4), np.zeros(4), 1e-12))
    with pytest.raises(InputError, match="for 4 classes, the source has 3"):
        save_parts(tmp_path / "file", fresh(wrong))


def test_a_map_of_ones_own_is_not_saved_but_refused(naive, tmp_path):
    model, X, y = naive

    class Own:
        name = "own"

        def fit(self, proba, labels, *, prior=None, classes=None):
            return lambda P: P[:, ::-1]

    source = build_source(model, X, y, calibration=Own())
    np.testing.assert_array_equal(source.read(X).proba, source.read(X).raw[:, ::-1])
    with pytest.raises(InputError, match="cannot be saved"):
        save_parts(tmp_path / "file", fresh(source))
    clf = LabelShiftClassifier(model, learner="fth", calibration=Own()).fit(X, y)
    with pytest.raises(InputError, match="cannot be saved"):
        clf.save(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_file_from_before_calibration_still_loads(pair, tmp_path):
    plain, _ = pair
    save_parts(tmp_path / "file", fresh(plain))
    assert load_parts(tmp_path / "file").deployment.source.calibration is None


def test_something_else_in_the_place_of_the_recipe_is_refused():
    from priorshift.saving import decode_setting

    with pytest.raises(FileFormatError, match="something else"):
        decode_setting({"object": "prior/bbse", "fields": {}}, "calibration")


class TwicePopulation:
    """The blobs' population with every feature twice."""

    def __init__(self, population):
        self.population = population
        self.n_classes = 3

    def draw(self, labels, rng):
        X = self.population.draw(labels, rng)
        return np.hstack([X, X])


def test_evaluation_has_f0s_own_errors_and_the_calibrated_floor(blobs, pair):
    plain, source = pair
    priors = np.tile([0.05, 0.15, 0.8], (40, 1))
    stream = SimulatedStream(TwicePopulation(blobs.population), priors, batch_size=50, seed=3)
    before, after = evaluate(FTH(), plain, stream), evaluate(FTH(), source, stream)
    np.testing.assert_array_equal(before.fix_errors, after.fix_errors)
    np.testing.assert_array_equal(before.oracle_errors, after.oracle_errors)
    np.testing.assert_array_equal(before.calibrated_oracle_errors, before.oracle_errors)
    fix = evaluate(FIX(), source, stream)
    np.testing.assert_array_equal(fix.errors, fix.fix_errors)
    for t, (X, y) in enumerate(stream):
        ratio = priors[t] / source.prior
        guess = reweight(source.calibration(plain.read(X).proba), ratio).argmax(axis=1)
        assert after.calibrated_oracle_errors[t] == pytest.approx(np.mean(guess != y))
    assert after.calibrated_oracle_error < after.oracle_error


def test_on_the_command_line_each_learner_has_its_own(monkeypatch):
    monkeypatch.setitem(LEARNERS._things, "tracker", Tracker)
    parse = build_parser().parse_args
    base = ["run", "--data", "digits", "--shift", "lin", "--learner"]
    prepared, rows = make_plan(parse([*base, "fth,tracker"]))
    fth, tracker = (row[0] for row in rows)
    assert [calibration_of(run).name for run in (fth, tracker)] == ["none", "matrix"]
    assert prepared.source(fth).calibration is None
    assert prepared.source(tracker).calibration.name == "matrix"
    assert prepared.source(tracker).risk is prepared.source(fth).risk
    prepared, rows = make_plan(parse([*base, "fth,tracker", "--calibration", "none"]))
    fth, tracker = (row[0] for row in rows)
    assert {calibration_of(run).name for run in (fth, tracker)} == {"none"}
    assert prepared.source(tracker) is prepared.source(fth, NoCalibration())


def test_the_command_line_calibrates_probabilities_too(tmp_path, naive, capsys):
    import json

    model, X, y = naive
    P = model.predict_proba(X)
    np.savez(tmp_path / "p.npz", P0=P, y0=y, P1=P, y1=y)
    words = f"run --data {tmp_path / 'p.npz'} --shift lin --learner fix,fth --rounds 20 --seeds 1"
    priorshift.cli.main([*words.split(), "--calibration", "temperature", "--json", "-"])
    records = json.loads(capsys.readouterr().out)
    assert {r["calibration"] for r in records} == {"temperature"}
    assert {r["calibration_map"] for r in records} == {"temperature"}
    assert records[0]["error_mean"] == records[0]["fix_error"]
    priorshift.cli.main([*words.split(), "--calibration", "temperature", "--quiet"])
    assert "f0 by temperature, true mix" in capsys.readouterr().out


def test_an_auto_that_finds_nothing_to_do_says_none():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 15)
    model = ProbabilityModel(classes=[0, 1, 2])
    with pytest.warns(PriorshiftWarning, match="20 are needed"):
        source = build_source(model, P, np.arange(15) % 3, calibration="auto")
    assert isinstance(source.calibration, IdentityMap)
    batch = source.read(P)
    np.testing.assert_array_equal(batch.proba, batch.raw)


def test_a_batch_is_what_it_was_without_a_third_part():
    batch = Batch(np.array([[0.2, 0.8]]), np.zeros((1, 3)))
    assert batch.raw is None
    assert batch.f0_proba is batch.proba


def test_a_logistic_regression_that_overfits_is_mended_on_the_hold_out(blobs):
    model = LogisticRegression(C=1e6).fit(blobs.train_X[:60], blobs.train_y[:60])
    plain = build_source(model, blobs.X, blobs.y)
    source = plain.calibrated("auto")
    rows = np.arange(len(source.labels))
    losses = [-np.log(s.proba[rows, s.labels]).mean() for s in (plain, source)]
    assert losses[1] < losses[0]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_obeys_the_checks_with_a_calibrated_source(name, check, calibrated, batches):
    check(LEARNERS[name](), calibrated, [calibrated.read(b.features[:, :4]) for b in batches[:20]])


@pytest.fixture(scope="module")
def calibrated(source):
    return source.calibrated(MatrixScaling(strength=0.01))
