"""From measured regrets to exponents, and from the lemmas' draws to a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import linregress, norm

from priorshift.errors import InputError
from priorshift.experiments.reproduce.parts import Claim

Results = Sequence[tuple[dict[str, Any], dict[str, Any]]]

REGIMES = (("lin", "constant"), ("squ", "constant"), ("squ", "sqrt"), ("ber", "sqrt"))
STATIC_REGIMES = (("half", "none"), ("squ", "paper"))
"""Where static regret is measured: nothing moves, or back and forth every 20 rounds."""
ESTIMATED, STATIC = "atlas-theory-estimated", "uogd-static"
"""The theory preset with B estimated; UOGD with the step of the static bound."""
# Theorem 2's V^(1/3) T^(2/3), with V constant and with V like the root of T.
RATES = {"constant": 2 / 3, "sqrt": 5 / 6}
_RATE_NAMES = {"constant": "2/3", "sqrt": "5/6"}
_GROWTHS = {"constant": "constant", "sqrt": "like sqrt(T)"}
_STATIC_WORDS = {"half": "a still class prior", "squ": "switches every 20 rounds"}
_TOLERANCE = 0.05
# Longer streams than can be run here.
_OUT_OF_REACH = 1e6
_CLOSE = 1.1
# Exponents are fitted over the larger T: down to this part of the largest.
_FITTED_PART = 16


class Fit(NamedTuple):
    """``log y = level + slope log x`` with the slope's standard error."""

    slope: float
    error: float
    level: float


class Series(NamedTuple):
    """Regret against T of one learner in one regime, where the theorems' assumptions hold.

    Attributes
    ----------
    learner, environment, variation : str
    batch_size : int
    rounds : list of int
        The T that were run; ``mean`` and ``std`` of the dynamic regret and the mean ``bound`` of
        the theorem have a number for each.
    seeds : int
        The fewest of any T.
    share : float
        The largest part of its bound that a regret reached.
    fit : Fit or None
        Over the ``fitted`` T; None where there are too few.
    rate : float
        The theorem's exponent.
    """

    learner: str
    environment: str
    variation: str
    batch_size: int
    rounds: list[int]
    seeds: int
    mean: list[float]
    std: list[float]
    bound: list[float]
    share: float
    fit: Fit | None
    fitted: list[int]
    rate: float


class Summary(NamedTuple):
    """What measured regrets and the lemmas' draws come to.

    ``ratios`` hold, for each setting, ATLAS's cumulative risk over that of the best single step:
    its ``mean`` and its ``worst``. ``lemma1`` and ``lemma2`` are None where nothing was measured;
    ``notes`` are sentences that explain the claims, with the numbers measured.
    """

    series: list[Series]
    ratios: list[dict[str, Any]]
    lemma1: dict[str, Any] | None
    lemma2: dict[str, Any] | None
    claims: list[Claim]
    notes: list[str]


def fit_exponent(T: Sequence[float], regret: Sequence[float]) -> Fit:
    """Least squares in log-log: slope, its standard error, and the level at T = 1.

    Equal T may occur several times, once for each seed.

    Examples
    --------
    >>> fit = fit_exponent([1, 10, 100], [2, 20, 200])
    >>> round(fit.slope, 6), round(fit.error, 6)
    (1.0, 0.0)
    """
    x, y = np.asarray(T, dtype=np.float64), np.asarray(regret, dtype=np.float64)
    if x.shape != y.shape or len(np.unique(x)) < 3:
        raise InputError(f"{len(np.unique(x))} different T: an exponent needs at least 3")
    if not (x > 0).all() or not (y > 0).all():
        raise InputError("a power law is fitted to positive numbers only")
    found = linregress(np.log(x), np.log(y))
    return Fit(float(found.slope), float(found.stderr), float(found.intercept))


def summarise(results: Results) -> Summary:
    """Exponents, ratios, the two lemmas, the claims that follow, and what the figures show."""
    regrets = [(s, r) for s, r in results if s["kind"] == "regret"]
    known = [(s, r) for s, r in regrets if s["offline"] == "known"]
    series = _series([(s, r) for s, r in known if s["learner"] != STATIC])
    ratios = _ratios(regrets)
    first, second = _lemma1(results), _lemma2(results)
    claims = [*_exponent_claims(series), *_bound_claims(series), *_ratio_claims(ratios)]
    claims += [*_standstill_claim(known), *_static_claims(known), *_function_claims(known)]
    claims += [*_lemma1_claims(first), *_lemma2_claims(second)]
    notes = [*_weight_notes(known), *_contrast_notes(series)]
    return Summary(series, ratios, first, second, claims, notes)


def _grouped(results: Results, *names: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Put together what has the same settings of these names, in the order of the first."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for s, r in results:
        groups.setdefault(tuple(s[name] for name in names), []).append({**r, "rounds": s["rounds"]})
    return [(dict(zip(names, key, strict=True)), rs) for key, rs in groups.items()]


def _by(name: str, runs: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Results by a number that they hold, the smallest first."""
    return {n: [r for r in runs if r[name] == n] for n in sorted({r[name] for r in runs})}


def _series(known: Results) -> list[Series]:
    found = []
    for setting, runs in _grouped(known, *Series._fields[:4]):
        by_length = _by("rounds", runs)
        lengths = list(by_length)
        fitted = [T for T in lengths if lengths[-1] / _FITTED_PART <= T]
        points = [(r["rounds"], r["dynamic"]) for r in runs if r["rounds"] in fitted]
        enough = len(fitted) >= 3 and all(regret > 0 for _, regret in points)
        regrets = [[r["dynamic"] for r in rs] for rs in by_length.values()]
        found.append(
            Series(
                **setting,
                rounds=lengths,
                seeds=min(map(len, regrets)),
                mean=list(map(_mean, regrets)),
                std=list(map(_std, regrets)),
                bound=[_mean(r["bound"] for r in rs) for rs in by_length.values()],
                share=max(r["share"] for r in runs),
                fit=fit_exponent(*zip(*points, strict=True)) if enough else None,
                fitted=fitted,
                rate=_rate(setting["variation"], by_length),
            )
        )
    return found


def _rate(variation: str, by_length: dict[int, list[dict[str, Any]]]) -> float:
    """The theorem's exponent; that of Theorem 3 with G_T as it was measured."""
    gaps = [_mean(r["reusability"] or 0.0 for r in rs) for rs in by_length.values()]
    if len(gaps) < 3 or min(gaps) <= 0:
        return RATES[variation]
    growth = fit_exponent(list(by_length), gaps).slope
    return (1.0 + growth + (0.5 if variation == "sqrt" else 0.0)) / 3.0


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _std(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _ratios(regrets: Results) -> list[dict[str, Any]]:
    names = ("learner", "offline", "environment", "variation", "batch_size", "rounds")
    pools = [(s, r["pool"]) for s, r in regrets if r["pool"] is not None]
    return [
        {
            **setting,
            "mean": _mean(pool["ratio"] for pool in some),
            "worst": max(ratio for pool in some for ratio in pool["ratios"]),
        }
        for setting, some in _grouped(pools, *names)
    ]


def _exponent_claims(series: list[Series]) -> list[Claim]:
    claims = []
    for one in series:
        if not one.learner.startswith("atlas-") or one.fit is None:
            continue
        limit, name = RATES[one.variation], _RATE_NAMES[one.variation]
        if one.learner == "atlas-ada-theory":
            limit, name = one.rate, f"{one.rate:.3f} (Theorem 3, measured G_T)"
        text = (
            f"{one.learner}, {one.environment}, V_T {_GROWTHS[one.variation]}, batches "
            f"of {one.batch_size}: dynamic regret grows in T with an exponent of at most "
            f"{name} + {_TOLERANCE}"
        )
        detail = (
            f"{one.fit.slope:.3f} +- {one.fit.error:.3f} over T = {one.fitted[0]} to "
            f"{one.fitted[-1]}, {one.seeds} seed(s)"
        )
        claims.append(Claim(text, one.fit.slope <= limit + _TOLERANCE, detail))
    return claims


def _bound_claims(series: list[Series]) -> list[Claim]:
    shares: dict[str, float] = {}
    for one in series:
        if "paper" not in one.learner:  # whose constants are not the theorem's
            shares[one.learner] = max(one.share, shares.get(one.learner, 0.0))
    text = "every measured regret lies below the bound of its theorem"
    return [
        Claim(f"{learner}: {text}", share < 1, f"at most {share:.2g} of it")
        for learner, share in shares.items()
    ]


def _ratio_claims(ratios: list[dict[str, Any]]) -> list[Claim]:
    """Over all settings, over the longest streams, and in the paper's own environments."""
    found = []
    for learner in dict.fromkeys(one["learner"] for one in ratios):
        mine = [one for one in ratios if one["learner"] == learner]
        grown = [one for one in mine if one["offline"] == "known"]
        longest = max((one["rounds"] for one in grown), default=0)
        parts = {
            "in every setting tried": mine,
            f"with T = {longest}": [one for one in grown if one["rounds"] == longest],
            "in the paper's own environments": [one for one in mine if one["offline"] != "known"],
        }
        found += [_ratio_claim(learner, where, part) for where, part in parts.items() if part]
    return found


def _ratio_claim(learner: str, where: str, part: list[dict[str, Any]]) -> Claim:
    worst = max(part, key=lambda one: float(one["mean"]))
    far = [one["rounds"] for one in part if one["mean"] > _CLOSE]
    after = [one["rounds"] for one in part if one["rounds"] > max(far, default=0)]
    since = f"; in all from T = {min(after)} on" if far and after else ""
    return Claim(
        f"{learner}: cumulative risk within 10 % of the best single step size of its pool {where}",
        not far,
        f"{len(part) - len(far)} of {len(part)} settings{since}; largest ratio "
        f"{worst['mean']:.3f} ({worst['environment']}, V_T {worst['variation']}, "
        f"T = {worst['rounds']}, batches of {worst['batch_size']}), of a single stream "
        f"{max(one['worst'] for one in part):.3f}",
    )


def _static_claims(known: Results) -> list[Claim]:
    """Lemma 3: the static regret of UOGD with a step of order ``T^(-1/2)``."""
    static = [(s, r) for s, r in known if s["learner"] == STATIC]
    claims = []
    for setting, runs in _grouped(static, "environment", "variation"):
        lengths = sorted({r["rounds"] for r in runs})
        fitted = [T for T in lengths if lengths[-1] / _FITTED_PART <= T]
        points = [(r["rounds"], r["static"]) for r in runs if r["rounds"] in fitted]
        if len(fitted) < 3:
            continue
        text = (
            f"{STATIC}, {_STATIC_WORDS[setting['environment']]}: static regret, against the best "
            f"fixed model, grows in T with an exponent of at most 1/2 + {_TOLERANCE} (Lemma 3)"
        )
        if min(regret for _, regret in points) <= 0:
            claims.append(Claim(text, None, "a regret is not positive, and has no exponent"))
            continue
        fit = fit_exponent(*zip(*points, strict=True))
        detail = f"{fit.slope:.3f} +- {fit.error:.3f} over T = {fitted[0]} to {fitted[-1]}"
        claims.append(Claim(text, fit.slope <= 0.5 + _TOLERANCE, detail))
    if static:
        share = max(r["static"] / r["static_bound"] for _, r in static)
        text = f"{STATIC}: every measured static regret lies below the bound of Lemma 3"
        claims.append(Claim(text, share < 1, f"at most {share:.2g} of it"))
    return claims


def _function_claims(known: Results) -> list[Claim]:
    """The appendix on minimax optimality: drift measured by the risks, V_T^R."""
    drifting = [(s, r) for s, r in known if r["function_variation"] > 0]
    if not drifting:
        return []
    # B from the bounds' own numbers: V_T^R <= B V_T is what turns one into the other.
    shares = [r["function_variation"] / (r["loss_bound"] * r["variation"]) for _, r in drifting]
    text = "V_T^R, the variation of the risks, is at most B V_T (proof of Theorem 1)"
    claims = [Claim(text, max(shares) <= 1, f"at most {max(shares):.2f} of it in any stream")]
    reached: dict[str, float] = {}
    for s, r in drifting:
        if r["function_share"] is not None and "paper" not in s["learner"]:
            reached[s["learner"]] = max(r["function_share"], reached.get(s["learner"], 0.0))
    text = "every measured regret lies below the bound with V_T^R (appendix on minimax optimality)"
    claims += [
        Claim(f"{learner}: {text}", share < 1, f"at most {share:.2g} of it")
        for learner, share in reached.items()
    ]
    return claims


def _weight_notes(known: Results) -> list[str]:
    """How far Hedge moves at the theorem's rate, with the theorem's B and with the estimate."""
    return [
        note for learner in ("atlas-theory", ESTIMATED) for note in _weight_note(known, learner)
    ]


def _weight_note(known: Results, learner: str) -> list[str]:
    runs = [(s["rounds"], s, r["pool"]) for s, r in known if s["learner"] == learner]
    if not runs:
        return []
    longest = max(rounds for rounds, _, _ in runs)
    last = [(s, pool) for rounds, s, pool in runs if rounds == longest]
    weights = np.array([pool["final_weights"] for _, pool in last])
    note = (
        f"{learner}: at the end of T = {longest} rounds the weights of the {weights.shape[1]} "
        f"base learners lie between {weights.min():.3f} and {weights.max():.3f}; even ones would "
        f"be {1 / weights.shape[1]:.3f}."
    )
    if learner == ESTIMATED:
        return [note + " Its B is the 95 % quantile of the losses on the way to f0."]
    return [
        note
        + " Lemma 7's rate is divided by B, the largest loss of the ball, so that Hedge hardly "
        "moves in so few rounds: what is measured is nearly the plain mean of the pool, best and "
        "worst steps alike."
    ]


def _standstill_claim(known: Results) -> list[Claim]:
    """Why the theorem's own B cannot show the theorem's exponent under a slow drift."""
    runs = [
        (s["rounds"], r["pool"])
        for s, r in known
        if (s["learner"], s["environment"], s["batch_size"]) == ("atlas-theory", "lin", 10)
    ]
    if not runs:
        return []
    longest = max(rounds for rounds, _ in runs)
    pools = [pool for rounds, pool in runs if rounds == longest]
    needed = _mean(
        rounds_to_move(pool["cumulative_risks"], pool["rate"], longest) for pool in pools
    )
    text = (
        "atlas-theory, lin, batches of 10: with the theorem's own B the rate of Lemma 7 is so "
        "small that Hedge does not take even the worst base learner to 1/e of the weight of the "
        "best before 10^6 rounds"
    )
    detail = (
        f"if base learners go on to differ by as much a round as in T = {longest}, the worst of "
        f"them falls to 1/e of the weight of the best after {needed:.1e} rounds"
    )
    return [Claim(text, needed >= _OUT_OF_REACH, detail)]


def rounds_to_move(risks: Sequence[float], rate: float, rounds: int) -> float:
    """T at which Hedge gives the worst base learner 1/e of the weight of the best.

    After ``rounds`` rounds at the ``rate`` of that T, weights are in proportion to ``exp(-rate *
    risks)``. Cumulative risks grow with T and Lemma 7's rate falls like its root, so that the
    logarithm of the ratio grows with the root of T.

    Examples
    --------
    >>> round(rounds_to_move([10.0, 12.0], rate=0.1, rounds=100))
    2500
    """
    moved = rate * (max(risks) - min(risks))
    return float(rounds / moved**2) if moved > 0 else float("inf")


# Two settings that differ in one thing, and what their exponents say of it.
_CONTRASTS = (
    (
        ("atlas-theory", "lin", "constant", 10),
        (ESTIMATED, "lin", "constant", 10),
        "atlas-theory under one slow drift has the exponent {:.3f} with the theorem's own B, "
        "{:.3f} with B estimated and all else the same.",
    ),
    (
        ("atlas-paper", "squ", "constant", 10),
        ("atlas-paper-raw", "squ", "constant", 10),
        "atlas-paper clips the estimate of the class prior, which makes it biased: with three "
        "switches its regret has the exponent {:.3f}, with the raw, unbiased estimate and all else "
        "the same {:.3f}. A bias costs in proportion to T; the theorems assume none.",
    ),
    (
        ("atlas-theory", "lin", "constant", 10),
        ("atlas-theory", "lin", "constant", 100),
        "atlas-theory under one slow drift: exponent {:.3f} with batches of 10, {:.3f} with "
        "batches of 100. Only the noise of the estimates differs between the two.",
    ),
)


def _contrast_notes(series: list[Series]) -> list[str]:
    """What the estimated B, the clipped estimate and larger batches do to the exponent."""
    slopes = {one[:4]: one.fit.slope for one in reversed(series) if one.fit is not None}
    return [
        text.format(slopes[first], slopes[second])
        for first, second, text in _CONTRASTS
        if first in slopes and second in slopes
    ]


def _lemma1(results: Results) -> dict[str, Any] | None:
    points = [
        {"mix": s["mix"], "batch_size": s["batch_size"], "draws": s["draws"], **point}
        for s, r in results
        if s["kind"] == "lemma1"
        for point in r["points"]
    ]
    if not points:
        return None
    for point in points:
        for form in ("raw", "clipped"):
            gap = point[form]["mean"] - point["true"]
            point[form] = {**point[form], "bias": gap, "z": gap / max(point[form]["error"], 1e-12)}
    # Two-sided, 1 % for all points together.
    return {"points": points, "critical": float(norm.isf(0.005 / len(points)))}


def _lemma1_claims(found: dict[str, Any] | None) -> list[Claim]:
    if found is None:
        return []
    points, critical = found["points"], found["critical"]
    raw = [abs(point["raw"]["z"]) for point in points]
    clipped = [point for point in points if abs(point["clipped"]["z"]) > critical]
    most = max(points, key=lambda point: abs(float(point["clipped"]["bias"])))
    return [
        Claim(
            "Lemma 1: the mean of the raw risk estimate is the true risk, within its error",
            max(raw) <= critical,
            f"{sum(z <= 2 for z in raw)} of {len(raw)} within 2 standard errors, largest "
            f"{max(raw):.2f} (limit {critical:.2f} for all at 1 %)",
        ),
        Claim(
            "Clipping the estimate, as the experiments do, makes it biased",
            len(clipped) > 0,
            f"{len(clipped)} of {len(points)} means differ; largest bias "
            f"{most['clipped']['bias']:.3f} on a risk of {most['true']:.3f} "
            f"({most['mix']}, {most['model']}, batches of {most['batch_size']})",
        ),
    ]


def _lemma2(results: Results) -> dict[str, Any] | None:
    by_rows = _by("rows", [{**r, "rows": s["rows"]} for s, r in results if s["kind"] == "lemma2"])
    if not by_rows:
        return None
    found: dict[str, Any] = {"rows": list(by_rows)}
    for kind in ("risk", "prior"):
        errors = {n: [e for r in rs for e in r[f"{kind}_errors"]] for n, rs in by_rows.items()}
        points = [(n, error) for n, some in errors.items() for error in some]
        found[kind] = {
            "mean": list(map(_mean, errors.values())),
            "std": list(map(_std, errors.values())),
            "repeats": min(map(len, errors.values())),
            "fit": fit_exponent(*zip(*points, strict=True)) if len(by_rows) >= 3 else None,
        }
    found["largest"] = [max(e for r in rs for e in r["largest_errors"]) for rs in by_rows.values()]
    found["bound"] = [rs[0]["bound"] for rs in by_rows.values()]
    return found


def _lemma2_claims(found: dict[str, Any] | None) -> list[Claim]:
    if found is None:
        return []
    claims = []
    for kind, what in (("risk", "estimated risk"), ("prior", "estimated class prior")):
        fit, rows = found[kind]["fit"], found["rows"]
        if fit is not None:
            text = f"Lemma 2: the error of the {what} falls like 1/sqrt(|S_0|)"
            detail = (
                f"exponent {fit.slope:.3f} +- {fit.error:.3f} over |S_0| = {rows[0]} to {rows[-1]},"
                f" {found[kind]['repeats']} draws of each"
            )
            claims.append(Claim(text, abs(fit.slope + 0.5) <= _TOLERANCE, detail))
    bounded = zip(found["largest"], found["bound"], strict=True)
    shares = [worst / bound for worst, bound in bounded if bound is not None]
    if shares:
        text = "Lemma 2: the error of the estimated risk lies below the bound"
        detail = f"at most {max(shares):.2g} of it, where |S_0| is large enough for the lemma"
        claims.append(Claim(text, max(shares) < 1, detail))
    return claims
