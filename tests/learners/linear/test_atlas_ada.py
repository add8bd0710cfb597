from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from priorshift.errors import InputError
from priorshift.learners import ATLAS, AtlasAda
from priorshift.learners.linear.hints import HINTS, Periodic
from priorshift.risk import ImplicitSolver, LinearisedSolver, PaperSolver, rewritten_risk

EXACT = ImplicitSolver(tolerance=1e-5, max_steps=500)


def by_scipy(reference, source, centre, step, mix):
    """``argmin_w H(w) + ||w - centre||^2 / (2 step)`` in the ball, by a general optimiser."""
    X, y = source.risk.XT.T.astype(np.float64), source.labels

    def objective(flat):
        w = flat.reshape(centre.shape)
        value, gradient = reference.value_and_gradient("softmax", X, y, w, mix)
        away = w - centre
        return value + (away**2).sum() / (2 * step), (gradient + away / step).ravel()

    inside = {
        "type": "ineq",
        "fun": lambda v: source.radius**2 - v @ v,
        "jac": lambda v: -2 * v,
    }
    found = minimize(
        objective,
        0.99 * centre.ravel(),
        jac=True,
        method="SLSQP",
        constraints=[inside],
        options={"ftol": 1e-13, "maxiter": 300},
    )
    w = found.x.reshape(centre.shape)
    return w, reference.value_and_gradient("softmax", X, y, w, mix)[0]


class Naive:
    """Algorithms 3 and 4 in float64, loops and a general optimiser."""

    def __init__(self, reference, source, steps):
        self.reference, self.source, self.steps = reference, source, steps
        self.X, self.y = source.risk.XT.T.astype(np.float64), source.labels
        self.centre = [source.head.astype(np.float64) for _ in steps]
        self.W = list(self.centre)
        self.losses, self.hinted = np.zeros(len(steps)), np.zeros(len(steps))
        self.past = np.zeros(len(steps))  # losses, each times the rate of its round
        self.gaps = 0.0

    def follow(self, hint):
        """Line 4 of Algorithm 3, second step, and the scores of Algorithm 4."""
        for i, step in enumerate(self.steps):
            self.W[i], self.hinted[i] = by_scipy(
                self.reference, self.source, self.centre[i], step, hint
            )
        self.scores = self.losses + self.hinted
        self.gaps_then = self.gaps

    def descend(self, mix):
        """Line 4 of Algorithm 3, first step."""
        risks = np.zeros(len(self.steps))
        for i, step in enumerate(self.steps):
            risks[i], slope = self.reference.value_and_gradient(
                "softmax", self.X, self.y, self.W[i], mix
            )
            free = self.centre[i] - step * slope
            self.centre[i] = free * min(1.0, self.source.radius / np.linalg.norm(free))
        self.losses = self.losses + risks
        self.risks = risks
        # Lemma 8's reference point: the first base learner.
        gap = (risks - risks[0]) - (self.hinted - self.hinted[0])
        self.gaps += np.abs(gap).max() ** 2

    def weights(self, rate):
        p = np.exp(-rate * (self.scores - self.scores.min()))
        return p / p.sum()

    def incremental_weights(self, rate):
        """Every loss with the rate of its own round; to be called once a round."""
        scores = self.past + rate * self.hinted
        self.past = self.past + rate * self.risks
        p = np.exp(-(scores - scores.min()))
        return p / p.sum()


def estimate(source, batch, clipped=True):
    mix = np.linalg.solve(source.confusion, [(batch.labels == k).mean() for k in range(3)])
    return np.maximum(mix, 0) if clipped else mix


@pytest.mark.parametrize("hedge", ["incremental", "cumulative"])
@pytest.mark.parametrize("rate", [3.0, "self-confident", None])
def test_adapt_first_against_algorithms_3_and_4(reference, source, batches, rate, hedge):
    """The hint of round t sees S_t: implicit step with h_t, then the gradient step on S_t."""
    steps = (0.05, 0.5, 4.0)
    learner = AtlasAda(hint="win", steps=steps, meta_rate=rate, solver=EXACT, hedge=hedge)
    naive, state, seen = Naive(reference, source, steps), learner.start(source), []
    for t, batch in enumerate(batches[:7], start=1):
        mix = estimate(source, batch)
        seen.append(mix)
        naive.follow(np.mean(seen[-10:], axis=0))
        naive.descend(mix)
        state = learner.adapt(source, state, batch)
        expected = {
            3.0: 3.0,
            "self-confident": np.sqrt(np.log(3) / (1 + naive.gaps_then)),
            None: min(1.0, 1 / (source.gradient_bound * source.diameter * np.sqrt(t))),
        }[rate]
        weights = naive.weights if hedge == "cumulative" else naive.incremental_weights
        p = weights(expected)
        assert state.rate == pytest.approx(expected, rel=1e-3)
        np.testing.assert_allclose(state.W, naive.W, atol=4e-3)
        np.testing.assert_allclose(state.centre, naive.centre, atol=4e-3)
        np.testing.assert_allclose(learner.weights(source, state), p, atol=3e-3)
        w = sum(p[i] * naive.W[i] for i in range(3))
        np.testing.assert_allclose(learner.model(source, state), w, atol=4e-3)


def test_predict_first_against_algorithms_3_and_4(reference, source, batches):
    """The hint of round t + 1 is a forecast: gradient step on S_t, then the implicit step."""
    steps = (0.05, 0.5, 4.0)
    learner = AtlasAda(
        hint="fwd", order="predict-first", preset="theory", steps=steps, solver=EXACT
    )
    naive, state = Naive(reference, source, steps), learner.start(source)
    np.testing.assert_allclose(learner.weights(source, state), 1 / 3)
    for batch in batches[:7]:
        mix = estimate(source, batch, clipped=False)
        naive.descend(mix)
        naive.follow(np.maximum(mix, 0))  # H has to be convex
        state = learner.adapt(source, state, batch)
        expected = np.sqrt((np.log(3) + 2) / (1 + naive.gaps))
        assert state.rate == pytest.approx(expected, rel=1e-3)
        np.testing.assert_allclose(state.W, naive.W, atol=4e-3)
        np.testing.assert_allclose(
            learner.weights(source, state), naive.weights(expected), atol=3e-3
        )


@pytest.mark.parametrize("preset", ["paper", "theory"])
def test_without_a_hint_predict_first_is_atlas(source, batches, preset):
    """Bit for bit: the same kernel on the same stack, and no implicit step."""
    rate = 0.3 if preset == "theory" else None
    shared = {"preset": preset, "horizon": 100, "steps": (0.01, 0.1, 1.0), "meta_rate": rate}
    hinted, plain = AtlasAda(hint="none", order="predict-first", **shared), ATLAS(**shared)
    first, second = hinted.start(source), plain.start(source)
    for batch in batches[:40]:
        assert (
            hinted.predict_proba(source, first, batch).tobytes()
            == plain.predict_proba(source, second, batch).tobytes()
        )
        first, second = hinted.adapt(source, first, batch), plain.adapt(source, second, batch)
        assert first.W.tobytes() == second.W.tobytes() == first.centre.tobytes()
        assert first.losses.tobytes() == second.losses.tobytes() == first.scores.tobytes()
        np.testing.assert_array_equal(hinted.weights(source, first), plain.weights(source, second))
        assert first.t == second.t


@pytest.mark.parametrize("preset", ["paper", "theory"])
def test_without_a_hint_adapt_first_is_atlas_one_round_behind(source, batches, preset):
    rate = 0.3 if preset == "theory" else None
    shared = {"preset": preset, "horizon": 100, "steps": (0.01, 0.1, 1.0), "meta_rate": rate}
    hinted, plain = AtlasAda(hint="none", order="adapt-first", **shared), ATLAS(**shared)
    first, before = hinted.start(source), plain.start(source)
    for batch in batches[:40]:
        first, after = hinted.adapt(source, first, batch), plain.adapt(source, before, batch)
        assert first.W.tobytes() == before.W.tobytes()
        assert first.scores.tobytes() == before.losses.tobytes()
        assert first.centre.tobytes() == after.W.tobytes()
        assert first.losses.tobytes() == after.losses.tobytes()
        assert (
            hinted.predict_proba(source, first, batch).tobytes()
            == plain.predict_proba(source, before, batch).tobytes()
        )
        before = after


def test_the_paper_pool_on_the_synthetic_problem(synthetic):
    learner = AtlasAda(gradient_bound=1.0, horizon=10_000)
    sigma = np.linalg.svd(synthetic.source.confusion)[1].min()
    smallest, steps = 10 * sigma / (2 * np.sqrt(3 * 10_000)), []
    while not steps or steps[-1] <= min(10 * np.sqrt(20_001), 49):
        steps.append(smallest * 2 ** len(steps))
    assert len(steps) == 12
    np.testing.assert_allclose(learner.pool(synthetic.source), steps)
    for t, expected in ((1, 0.1), (4, 0.05), (100, 0.01)):
        assert learner.rate(synthetic.source, t, 12, 7.0) == pytest.approx(expected)


@pytest.mark.parametrize("T", [5_000, 7_000, 10_000, 14_000, 20_000])
def test_the_paper_pool_of_other_horizons(synthetic, T):
    """Every place of the cut at 49 between two powers of two."""
    steps = [10 * synthetic.source.sigma_min / (2 * np.sqrt(3 * T))]
    while steps[-1] <= 49:
        steps.append(2 * steps[-1])
    np.testing.assert_allclose(
        AtlasAda(gradient_bound=1.0, horizon=T).pool(synthetic.source), steps
    )


def test_the_pool_of_a_small_ball_stops_at_its_own_end(source):
    T = 3
    pool = AtlasAda(horizon=T, gradient_bound=1.0).pool(source)
    end = min(source.diameter * np.sqrt(7), 49)
    assert pool[-2] <= end < pool[-1]
    assert pool[0] == pytest.approx(source.diameter * source.sigma_min / (2 * np.sqrt(9)))


def test_a_scaled_largest_step_is_the_papers_on_the_synthetic_problem(synthetic):
    pools = [
        AtlasAda(gradient_bound=1.0, largest_step=largest).pool(synthetic.source)
        for largest in (None, 49.0, "scaled")
    ]
    for pool in pools[1:]:
        np.testing.assert_array_equal(pool, pools[0])
    shorter = AtlasAda(gradient_bound=1.0, largest_step=3.2).pool(synthetic.source)
    np.testing.assert_array_equal(shorter, pools[0][: len(shorter)])
    assert shorter[-2] <= 3.2 < shorter[-1]


@given(st.floats(0.01, 100.0), st.floats(0.1, 50.0), st.floats(0.1, 50.0))
def test_a_scaled_pool_goes_with_the_scale_of_the_features(scale, diameter, steep):
    """Features times c: models, and the ball, are 1/c as large, gradients c times, steps 1/c^2."""
    assume(min(steep, steep * scale) > 0.05)  # else the pool's other end, Gamma sqrt(1 + 2T)

    def pool(diameter, steep):
        source = SimpleNamespace(
            diameter=diameter, sigma_min=0.4, n_classes=5, gradient_bound=steep
        )
        return AtlasAda(largest_step="scaled").pool(source)

    plain, scaled = pool(diameter, steep), pool(diameter / scale, steep * scale)
    inside = min(len(plain), len(scaled))
    # A cut that falls on a step may fall on its other side by rounding.
    assert abs(len(plain) - len(scaled)) <= 1
    np.testing.assert_allclose(scaled[:inside] * scale**2, plain[:inside])


def test_a_largest_step_that_nothing_would_read_is_refused():
    for wrong in ({"preset": "theory"}, {"steps": (0.1,)}):
        with pytest.raises(InputError, match="largest_step is for the pool"):
            AtlasAda(largest_step=1.0, **wrong)
    with pytest.raises(InputError, match="give a number or 'scaled'"):
        AtlasAda(largest_step="long")
    with pytest.raises(InputError, match="largest_step"):
        AtlasAda(largest_step=-1.0)


def test_the_theory_pool_and_rate_on_the_synthetic_problem(synthetic):
    """Proof of Theorem 3, and Lemma 8."""
    learner = AtlasAda(preset="theory", gradient_bound=1.0, horizon=10_000)
    sigma = np.linalg.svd(synthetic.source.confusion)[1].min()
    span = (1 + 20_000) * (1 + 4 * 10_000 * 3 / sigma**2)
    number = 1 + int(np.ceil(0.5 * np.log2(span)))
    smallest = 10 * sigma / np.sqrt(sigma**2 + 4 * 3 * 10_000)
    np.testing.assert_allclose(learner.pool(synthetic.source), smallest * 2.0 ** np.arange(number))
    for gaps in (0.0, 3.0, 400.0):
        expected = np.sqrt((np.log(number) + 2) / (1 + gaps))
        assert learner.rate(synthetic.source, 5, number, gaps) == pytest.approx(expected)


@pytest.mark.parametrize("T", [1, 10, 333, 10_000])
def test_the_theory_pool_covers_every_optimal_step(source, T):
    """``eta* = sqrt((Gamma^2 + 2 Gamma P_T)/(1 + G_T)) / 2``, whatever P_T and G_T may be."""
    pool = AtlasAda(preset="theory", horizon=T).pool(source)
    D, largest = source.diameter, 4 * T * source.gradient_bound**2 * 3 / source.sigma_min**2
    for path in np.linspace(0, D * T, 12):
        for gap in [0.0, *np.geomspace(1e-3, largest, 12)]:
            best = 0.5 * np.sqrt((D**2 + 2 * D * path) / (1 + gap))
            assert ((pool / 2 <= best * (1 + 1e-9)) & (best <= pool * (1 + 1e-9))).any()


@pytest.mark.parametrize("hint", sorted(set(HINTS) - {"none"}))
@pytest.mark.parametrize("order", ["adapt-first", "predict-first"])
def test_every_base_model_solves_its_implicit_step(reference, source, batches, hint, order):
    learner = AtlasAda(hint=hint, order=order, horizon=100, solver="exact")
    X, y, state = source.risk.XT.T.astype(np.float64), source.labels, learner.start(source)
    for batch in batches[:8]:
        before, state = state, learner.adapt(source, state, batch)
        centre = before.centre if order == "adapt-first" else state.centre
        for i, eta in enumerate(state.steps):
            w = state.W[i].astype(np.float64)
            slope = reference.value_and_gradient("softmax", X, y, w, state.hint_prior)[1]
            slope = slope + (w - centre[i]) / eta
            s = eta / (1 + eta)
            moved = w - s * slope
            moved *= min(1.0, source.radius / np.linalg.norm(moved))
            assert np.linalg.norm(w - moved) / s < 3e-4


@pytest.mark.parametrize("order", ["adapt-first", "predict-first"])
@pytest.mark.parametrize("step", [0.02, 0.5, 5.0])
def test_regret_of_the_base_learner(source, batches, order, step):
    """Lemma 9 with the gradients that really came, for comparators that stand still."""
    learner = AtlasAda(
        hint="win", order=order, preset="theory", prior_form="clipped", steps=(step,), solver=EXACT
    )
    state, paid, gaps = learner.start(source), 0.0, 0.0
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, *source.head.shape))
    points *= source.radius / np.linalg.norm(points.reshape(20, -1), axis=1)[:, None, None]
    for batch in batches[:40]:
        after = learner.adapt(source, state, batch)
        used = after if order == "adapt-first" else state  # whose W met this round's risk
        risk = rewritten_risk(source.risk, source.loss, used.W, after.estimate).gradient[0]
        hint = rewritten_risk(source.risk, source.loss, used.W, used.hint_prior).gradient[0]
        paid = paid + (risk * (used.W[0] - points)).sum(axis=(1, 2))
        gaps += float(((risk - hint).astype(np.float64) ** 2).sum())
        state = after
    bound = 2 * step * gaps + source.diameter**2 / (2 * step)
    assert paid.max() <= bound * (1 + 1e-3) + 1e-2


def test_the_prior_is_the_hint_s(source, batches):
    learner = AtlasAda(hint="win")
    state = learner.start(source)
    np.testing.assert_allclose(learner.prior(source, state), source.prior, atol=1e-12)
    for batch in batches[:4]:
        state = learner.adapt(source, state, batch)
    expected = np.mean([estimate(source, batch) for batch in batches[:4]], axis=0)
    assert learner.prior(source, state) == pytest.approx(expected / expected.sum(), abs=0.1)
    np.testing.assert_allclose(state.hint_prior, expected, atol=1e-9)


def test_predict_first_follows_the_forecast(source, batches):
    """With a period of 3 the hint of round t + 1 is what was seen in rounds t - 2, t - 5, ..."""
    learner = AtlasAda(hint=Periodic(3), order="predict-first", steps=(0.1, 1.0))
    state, seen = learner.start(source), []
    for batch in batches[:9]:
        state = learner.adapt(source, state, batch)
        seen.append(estimate(source, batch))
        expected = np.mean(seen[-3::-3], axis=0) if len(seen) > 2 else seen[-1]
        np.testing.assert_allclose(state.hint_prior, expected, atol=1e-9)


@pytest.mark.parametrize("hedge", ["incremental", "cumulative"])
def test_meta_weights_use_the_hint_loss(source, batches, hedge):
    """Algorithm 4: the score is the past risk and H_t at the base models."""
    learner = AtlasAda(hint="fwd", steps=(0.01, 5.0), meta_rate=2.0, hedge=hedge)
    state = learner.start(source)
    share = 2.0 if hedge == "incremental" else 1.0
    for batch in batches[:5]:
        before, state = state, learner.adapt(source, state, batch)
        hint = rewritten_risk(source.risk, source.loss, state.W, state.hint_prior).value
        np.testing.assert_allclose(state.scores, before.losses + share * hint, atol=1e-5)


def test_gaps_of_hint_and_risk_are_counted_up_to_a_limit(source, batches):
    free = AtlasAda(hint="win", steps=(0.01, 5.0), meta_rate="self-confident")
    tight = AtlasAda(hint="win", steps=(0.01, 5.0), meta_rate="self-confident", gap_limit=1e-3)
    counted, limited = free.start(source), tight.start(source)
    for batch in batches[:6]:
        counted, limited = free.adapt(source, counted, batch), tight.adapt(source, limited, batch)
    assert counted.gaps > 6e-6
    assert limited.gaps == pytest.approx(5e-6)  # the first hint is the batch's own estimate
    assert limited.rate > counted.rate
    with pytest.raises(InputError, match="gap_limit is for"):
        AtlasAda(gap_limit=0.1)


def test_presets_choose_the_solver():
    assert isinstance(AtlasAda().implicit, PaperSolver)
    assert isinstance(AtlasAda(preset="theory").implicit, ImplicitSolver)
    assert isinstance(AtlasAda(preset="anytime").implicit, ImplicitSolver)
    assert isinstance(AtlasAda(horizon=None).implicit, ImplicitSolver)
    assert isinstance(AtlasAda(solver="linearised").implicit, LinearisedSolver)
    assert isinstance(AtlasAda(preset="theory", solver="paper").implicit, PaperSolver)


def test_hints_that_see_the_batch_adapt_faster(source, blobs):
    """A jump of the class prior: the forward hint answers in the round itself, ATLAS one later."""
    rng = np.random.default_rng(0)
    before = blobs.population.draw(np.zeros(200, dtype=int), rng)
    after = blobs.population.draw(np.full(200, 2), rng)
    quick, slow = AtlasAda(hint="fwd", horizon=100), ATLAS(horizon=100)
    states = [quick.start(source), slow.start(source)]
    for _ in range(30):
        batch = source.read(before)
        states = [quick.adapt(source, states[0], batch), slow.adapt(source, states[1], batch)]
    jump = source.read(after)
    states[0] = quick.adapt(source, states[0], jump)
    right = [
        learner.predict_proba(source, state, jump)[:, 2].mean()
        for learner, state in zip((quick, slow), states, strict=True)
    ]
    assert right[0] > right[1] + 0.2


def test_the_protocol_of_a_run_is_the_order_of_the_learner():
    """Else ``evaluate`` would by default predict S_t with the model meant for S_t+1."""
    assert AtlasAda(order="adapt-first").protocol == "adapt-first"
    assert AtlasAda(order="predict-first").protocol == "predict-first"
