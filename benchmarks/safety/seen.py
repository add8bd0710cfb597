"""Part seen: single cases of the kind in which adapting was seen to do harm, one line each.

Nothing shifts in them (but for the sensor, which is no label shift, and labels alone, where one
class has 70 % of the stream): what the classifier should do is nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.beyond.verdicts import below, close, show
from benchmarks.safety.grid import error
from benchmarks.safety.problems import PROBLEMS, Problem
from benchmarks.safety.report import grouped
from benchmarks.safety.running import Options, collect
from benchmarks.safety.subject import quiet, subject
from priorshift.source.model import ProbabilityModel

_TITLE = """\
Error in % of the model as it is and of the classifier, means of {seeds} seeds, {rows:,} rows of a
stream. No class prior shifts, but under "labels alone", where the true one changes no answer.
"""


class Case(NamedTuple):
    """A model, its held-out set and the rows of a stream, batch by batch."""

    model: Any
    X_hold: Any
    y_hold: np.ndarray
    X: Any
    y: np.ndarray
    batch: int = 20


Draw = Callable[[np.ndarray], np.ndarray]


def drawn(problem: Problem, rng: np.random.Generator) -> Draw:
    """A way to draw rows of given classes."""
    centres = problem.centres(rng)
    return lambda y: problem.draw(centres, y, rng)


def few_positives(model: Any, negatives: int) -> Callable[[int, int], Case]:
    """Two classes, 3 % positives, 4 of them held out."""

    def case(seed: int, rows: int) -> Case:
        problem, rng = PROBLEMS["binary"], np.random.default_rng(seed)
        draw = drawn(problem, rng)
        y_train, y = (rng.choice(2, n, p=problem.prior) for n in (2000, rows))
        y_hold = np.repeat([0, 1], [negatives, 4])
        return Case(
            model().fit(draw(y_train), y_train), draw(y_hold), y_hold, draw(y), y
        )  # fmt: skip

    return case


def boosting() -> Any:
    """LightGBM where it is installed; scikit-learn's of the same kind where not."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        return HistGradientBoostingClassifier(random_state=0)
    return LGBMClassifier(verbose=-1, random_state=0)


def name_all(labels: np.ndarray, classes: int) -> None:
    """Put each class that is missing in the place of a row of the most frequent one."""
    for missing in np.setdiff1d(np.arange(classes), labels):
        labels[labels.tolist().index(np.bincount(labels).argmax())] = missing


def zipf(every_class: bool) -> Callable[[int, int], Case]:
    """200 Zipf classes, 2,000 held-out rows: one or two of many classes, or none of some."""

    def case(seed: int, rows: int) -> Case:
        problem, rng = PROBLEMS["zipf"], np.random.default_rng(seed)
        draw = drawn(problem, rng)
        y_train = problem.train_labels(rng)
        y_hold, y = (rng.choice(200, n, p=problem.prior) for n in (2000, rows))
        if every_class:
            name_all(y_hold, 200)
        model = LogisticRegression(max_iter=200).fit(draw(y_train), y_train)
        return Case(model, draw(y_hold), y_hold, draw(y), y)

    return case


def single_rows(seed: int, rows: int) -> Case:
    """Ten classes that overlap, 1,000 single rows."""
    problem, rng = replace(PROBLEMS["ten"], spread=1.5), np.random.default_rng(seed)
    draw = drawn(problem, rng)
    y_train, y_hold, y = (rng.integers(0, 10, n) for n in (2000, 500, 1000))
    model = LogisticRegression(max_iter=300).fit(draw(y_train), y_train)
    return Case(model, draw(y_hold), y_hold, draw(y), y, batch=1)


def sensor(seed: int, rows: int) -> Case:
    """Temperatures in kelvin, of which one is read 5 % too high after a tenth of the stream."""
    problem = replace(PROBLEMS["ten"], latent=8, copies=1, spread=2.5)
    rng = np.random.default_rng(seed)
    draw = drawn(problem, rng)
    y_train, y_hold, y = (rng.integers(0, 10, n) for n in (2000, 1000, rows))
    X_train, X_hold, X = (300 + 3 * draw(labels) for labels in (y_train, y_hold, y))
    X[rows // 10 :, 0] *= 1.05
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
    return Case(model, X_hold, y_hold, X, y)


def without_bias(rare: int) -> Callable[[int, int], Case]:
    """A model that favours some classes; a class with few held-out rows leaves a temperature."""

    def case(seed: int, rows: int) -> Case:
        rng = np.random.default_rng(seed)
        prior = np.array([0.4, 0.3, 0.295, 0.005])
        y_hold, y = np.repeat(np.arange(4), [200, 150, 146, rare]), rng.choice(4, rows, p=prior)
        centres, bias = 2.4 * rng.normal(size=(4, 4)), np.array([0.0, 1.2, -1.2, 1.5])

        def proba(labels: np.ndarray) -> np.ndarray:
            X = centres[labels] + rng.normal(size=(len(labels), 4))
            right = X @ centres.T - 0.5 * (centres**2).sum(axis=1) + np.log(prior)
            return softmax(2.5 * (right + bias), axis=1)

        return Case(ProbabilityModel(np.arange(4)), proba(y_hold), y_hold, proba(y), y)

    return case


def texts(seed: int, rows: int) -> Case:
    """200 classes of short texts, one held-out row in some; the classifier reads probabilities."""
    rng = np.random.default_rng(seed)
    prior = PROBLEMS["zipf"].prior ** 0.5
    prior /= prior.sum()
    words = rng.dirichlet(np.full(600, 0.03), 200) * 0.35 + rng.dirichlet(np.ones(600)) * 0.65
    vocabulary = np.array([f"word{i}" for i in range(600)])

    def write(labels: np.ndarray) -> list[str]:
        return [" ".join(rng.choice(vocabulary, 12, p=words[label])) for label in labels]

    y_train, y_hold, y = (rng.choice(200, n, p=prior) for n in (6000, 1000, rows))
    for labels in (y_train, y_hold):
        name_all(labels, 200)
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=200))
    model.fit(write(y_train), y_train)
    hold, stream = (model.predict_proba(write(labels)) for labels in (y_hold, y))
    return Case(ProbabilityModel(np.arange(200)), hold, y_hold, stream, y)


def labels_alone(classes: int, right: float, rows_held: int) -> Callable[[int, int], Case]:
    """A model that gives labels and nothing else; one class has 70 % of the stream."""

    def case(seed: int, rows: int) -> Case:
        rng = np.random.default_rng(seed)
        spread = np.full((classes, classes), (1.0 - right) / (classes - 1))
        np.fill_diagonal(spread, right)
        prior = np.where(np.arange(classes) == 0, 0.7, 0.3 / (classes - 1))

        def called(labels: np.ndarray) -> np.ndarray:
            return np.eye(classes)[[rng.choice(classes, p=spread[label]) for label in labels]]

        y_hold = np.arange(rows_held) % classes
        y = rng.choice(classes, rows, p=prior)
        return Case(ProbabilityModel(np.arange(classes)), called(y_hold), y_hold, called(y), y)

    return case


CASES: dict[str, Callable[[int, int], Case]] = {
    "naive Bayes, 4 + 130 held-out rows": few_positives(GaussianNB, 130),
    "naive Bayes, 4 + 300 held-out rows": few_positives(GaussianNB, 300),
    "boosting, 4 + 300 held-out rows": few_positives(boosting, 300),
    "200 Zipf classes, 1 or 2 rows of many": zipf(every_class=True),
    "200 Zipf classes, some without a row": zipf(every_class=False),
    "1,000 single rows": single_rows,
    "one sensor 5 % too high": sensor,
    "a model with a bias, 4 rows of a class": without_bias(4),
    "a model with a bias, 5 rows of a class": without_bias(5),
    "200 classes of texts, 1 row of some": texts,
    "labels alone, 4 classes, 200 rows": labels_alone(4, 0.88, 200),
    "labels alone, 8 classes, 1,000 rows": labels_alone(8, 0.8, 1000),
}


class Part(NamedTuple):
    """A case with a seed."""

    name: str
    seed: int
    rows: int
    safety: str

    def __str__(self) -> str:
        return f"seen: {self.name}, seed {self.seed}"

    def run(self) -> list[dict[str, Any]]:
        """One record."""
        with quiet():
            case = CASES[self.name](self.seed, self.rows)
            own = np.asarray(case.model.predict_proba(case.X))
            names = {"part": "seen", "case": self.name, "seed": self.seed, "safety": self.safety}
            try:
                classifier = subject(case.model, self.safety).fit(case.X_hold, case.y_hold)
            except ValueError as refusal:
                found = {"error": None, "refusal": str(refusal)}
                return [{**names, "fix_error": error(own, case.y), **found}]
            parts = np.split(np.arange(len(case.y)), range(case.batch, len(case.y), case.batch))
            adapted = np.concatenate([classifier.adapt_predict_proba(case.X[p]) for p in parts])
        return [{**names, "fix_error": error(own, case.y), "error": error(adapted, case.y)}]


def table(options: Options) -> None:
    """Run, print, judge."""
    seeds = (1 if options.quick else 5) if options.seeds is None else options.seeds
    rows = 400 if options.quick else 4000
    parts = [Part(name, seed, rows, options.safety) for name in CASES for seed in range(seeds)]
    records = collect("seen", parts, options)
    if not records:
        print("(seen) no run\n")
        return
    lines, verdicts = [], []
    for (name,), group in grouped(records, ("case",)).items():
        fix = np.array([r["fix_error"] for r in group])
        if any(r["error"] is None for r in group):
            lines.append([name, f"{fix.mean():.2f}", "refused", "-", "-"])
            verdicts.append(f"{name}: refused: {group[0].get('refusal', '')}")
            continue
        own = np.array([r["error"] for r in group])
        excess = own - fix
        worst = f"{excess.max():+.2f}"
        lines.append(
            [name, f"{fix.mean():.2f}", f"{own.mean():.2f}", f"{excess.mean():+.2f}", worst]
        )
        verdicts.append(below(f"{name}: worst run, points", float(excess.max()), 1.0))
    title = _TITLE.format(seeds=seeds, rows=rows)
    show("seen", title, ("case", "unadapted", "adapted", "excess", "worst"), lines)
    close(verdicts)
