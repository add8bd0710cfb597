"""From measured regrets to exponents, and from the lemmas' draws to a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from priorshift.errors import InputError

Results = Sequence[tuple[dict[str, Any], dict[str, Any]]]

REGIMES = (("lin", "constant"), ("squ", "constant"), ("squ", "sqrt"), ("ber", "sqrt"))
# Theorem 2's V^(1/3) T^(2/3), with V constant and with V like the root of T.
RATES = {"constant": 2 / 3, "sqrt": 5 / 6}
_TOLERANCE = 0.05
_CLOSE = 1.1
# Exponents are fitted over the larger T: down to this part of the largest.
_FITTED_PART = 16


class Fit(NamedTuple):
    """``log y = level + slope log x`` with the slope's standard error.

    Examples
    --------
    >>> Fit(0.5, 0.1, 2.0).slope
    0.5
    """

    slope: float
    error: float
    level: float


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
    x, y = np.log(x), np.log(y)
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    level = float(y.mean() - slope * x.mean())
    rest = y - level - slope * x
    error = float(np.sqrt(rest @ rest / max(len(x) - 2, 1) / spread))
    return Fit(slope, error, level)


def summarise(results: Results) -> dict[str, Any]:
    """Exponents, ratios, the two lemmas, the claims that follow, and what the figures show.

    Parameters
    ----------
    results : sequence of (settings, result)
        Settings of ``regret_tasks`` with what ``perform`` returned; any part of them, any order.

    Returns
    -------
    dict
        ``series`` (one for each learner and regime), ``ratios``, ``lemma1``, ``lemma2`` (None
        where nothing was measured), ``claims`` (text, holds, detail) and ``notes``: sentences
        that explain them, with the numbers measured.

    Examples
    --------
    >>> summarise([])["claims"]
    []
    """
    series = _series(results)
    ratios = _ratios(results)
    first, second = _lemma1(results), _lemma2(results)
    claims = [*_exponent_claims(series), *_bound_claims(series), *_ratio_claims(ratios)]
    claims += [*_lemma1_claims(first), *_lemma2_claims(second)]
    return {
        "series": series,
        "ratios": ratios,
        "lemma1": first,
        "lemma2": second,
        "claims": claims,
        "notes": [*_weight_note(results), *_clipping_note(series), *_noise_note(series)],
    }


def _of_kind(results: Results, kind: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(s, r) for s, r in results if s["kind"] == kind]


def _series(results: Results) -> list[dict[str, Any]]:
    """Regret against T of each learner in each regime, where the theorems' assumptions hold."""
    known = [(s, r) for s, r in _of_kind(results, "regret") if s["offline"] == "known"]
    names = ("learner", "environment", "variation", "batch_size")
    groups: dict[tuple[Any, ...], list[tuple[int, dict[str, Any]]]] = {}
    for s, r in known:
        groups.setdefault(tuple(s[name] for name in names), []).append((s["rounds"], r))
    return [
        {**dict(zip(names, key, strict=True)), **_one_series(key[2], runs)}
        for key, runs in groups.items()
    ]


def _one_series(variation: str, runs: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    lengths = sorted({rounds for rounds, _ in runs})
    by_length = [[r for rounds, r in runs if rounds == length] for length in lengths]
    least = lengths[-1] / _FITTED_PART
    fitted = [(rounds, r["dynamic"]) for rounds, r in runs if rounds >= least]
    enough = len({rounds for rounds, _ in fitted}) >= 3 and all(regret > 0 for _, regret in fitted)
    fit = fit_exponent(*zip(*fitted, strict=True))._asdict() if enough else None
    return {
        "rounds": lengths,
        "seeds": min(map(len, by_length)),
        "mean": [_mean(r["dynamic"] for r in rs) for rs in by_length],
        "std": [_std([r["dynamic"] for r in rs]) for rs in by_length],
        "static": [_mean(r["static"] for r in rs) for rs in by_length],
        "bound": [_mean(r["bound"] for r in rs) for rs in by_length],
        "variations": [_mean(r["variation"] for r in rs) for rs in by_length],
        "best_single": [_mean_best(rs) for rs in by_length],
        "largest_share": max(r["share"] for _, r in runs),
        "fit": fit,
        "fitted_rounds": sorted({rounds for rounds, _ in fitted}),
        "rate": _rate(variation, lengths, by_length),
    }


def _rate(variation: str, lengths: list[int], by_length: list[list[dict[str, Any]]]) -> float:
    """The theorem's exponent; that of Theorem 3 with G_T as it was measured."""
    gaps = [_mean(r["reusability"] or 0.0 for r in rs) for rs in by_length]
    if len(lengths) < 3 or min(gaps) <= 0:
        return RATES[variation]
    growth = fit_exponent(lengths, gaps).slope
    return (1.0 + growth + (0.5 if variation == "sqrt" else 0.0)) / 3.0


def _mean_best(runs: list[dict[str, Any]]) -> float | None:
    """Mean dynamic regret of the best single step size of the pool."""
    if any(r["pool"] is None for r in runs):
        return None
    return _mean(min(r["pool"]["cumulative_risks"]) - r["best_cumulative"] for r in runs)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _std(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _ratios(results: Results) -> list[dict[str, Any]]:
    """ATLAS's cumulative risk over that of the best single step, for every setting tried."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    names = ("learner", "offline", "environment", "variation", "batch_size", "rounds")
    for s, r in _of_kind(results, "regret"):
        if r["pool"] is not None:
            groups.setdefault(tuple(s[name] for name in names), []).append(r["pool"])
    return [
        {
            **dict(zip(names, key, strict=True)),
            "mean": _mean(pool["ratio"] for pool in pools),
            "worst": max(ratio for pool in pools for ratio in pool["ratios"]),
            "best_step": _mean(pool["best_step"] for pool in pools),
            "seeds": len(pools),
        }
        for key, pools in groups.items()
    ]


def _claim(text: str, holds: bool, detail: str) -> dict[str, Any]:
    return {"text": text, "holds": bool(holds), "detail": detail}


def _exponent_claims(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    named = {"constant": "2/3", "sqrt": "5/6"}
    found = []
    for one in series:
        if not one["learner"].startswith("atlas-") or one["fit"] is None:
            continue
        fit, growth = one["fit"], {"constant": "constant", "sqrt": "like sqrt(T)"}
        if one["learner"] == "atlas-ada-theory":
            limit, name = one["rate"], f"{one['rate']:.3f} (Theorem 3, measured G_T)"
        else:
            limit, name = RATES[one["variation"]], named[one["variation"]]
        first, last = one["fitted_rounds"][0], one["fitted_rounds"][-1]
        found.append(
            _claim(
                f"{one['learner']}, {one['environment']}, V_T {growth[one['variation']]}, batches "
                f"of {one['batch_size']}: dynamic regret grows in T with an exponent of at most "
                f"{name} + {_TOLERANCE}",
                fit["slope"] <= limit + _TOLERANCE,
                f"{fit['slope']:.3f} +- {fit['error']:.3f} over T = {first} to {last}, "
                f"{one['seeds']} seed(s)",
            )
        )
    return found


def _bound_claims(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for learner in dict.fromkeys(one["learner"] for one in series):
        if "paper" in learner:
            continue  # its constants are not the theorem's
        mine = [one for one in series if one["learner"] == learner]
        share = max(one["largest_share"] for one in mine)
        found.append(
            _claim(
                f"{learner}: every measured regret lies below the bound of its theorem",
                share < 1,
                f"at most {share:.2g} of it",
            )
        )
    return found


def _ratio_claims(ratios: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def _ratio_claim(learner: str, where: str, part: list[dict[str, Any]]) -> dict[str, Any]:
    worst = max(part, key=lambda one: float(one["mean"]))
    far = [one for one in part if one["mean"] > _CLOSE]
    lengths = sorted({one["rounds"] for one in part})
    after = [rounds for rounds in lengths if all(rounds > one["rounds"] for one in far)]
    since = f"; in all from T = {after[0]} on" if far and after else ""
    return _claim(
        f"{learner}: cumulative risk within 10 % of the best single step size of its pool {where}",
        not far,
        f"{len(part) - len(far)} of {len(part)} settings{since}; largest ratio "
        f"{worst['mean']:.3f} ({worst['environment']}, V_T {worst['variation']}, "
        f"T = {worst['rounds']}, batches of {worst['batch_size']}), of a single stream "
        f"{max(one['worst'] for one in part):.3f}",
    )


def _weight_note(results: Results) -> list[str]:
    """How far Hedge moves at the theorem's rate."""
    runs = [
        (s["rounds"], r["pool"]["final_weights"])
        for s, r in _of_kind(results, "regret")
        if s["learner"] == "atlas-theory" and s["offline"] == "known"
    ]
    if not runs:
        return []
    longest = max(rounds for rounds, _ in runs)
    weights = np.array([final for rounds, final in runs if rounds == longest])
    return [
        f"atlas-theory: at the end of T = {longest} rounds the weights of the {weights.shape[1]} "
        f"base learners lie between {weights.min():.3f} and {weights.max():.3f}; even ones would "
        f"be {1 / weights.shape[1]:.3f}. Lemma 7's rate is divided by B, the largest loss of the "
        "ball, so that Hedge hardly moves in so few rounds: what is measured is nearly the plain "
        "mean of the pool, best and worst steps alike."
    ]


def _slope(series: list[dict[str, Any]], *wanted: Any) -> float | None:
    names = ("learner", "environment", "variation", "batch_size")
    for one in series:
        if tuple(one[name] for name in names) == wanted and one["fit"] is not None:
            return float(one["fit"]["slope"])
    return None


def _clipping_note(series: list[dict[str, Any]]) -> list[str]:
    """What the clipped estimate does to the exponent."""
    clipped = _slope(series, "atlas-paper", "squ", "constant", 10)
    raw = _slope(series, "atlas-paper-raw", "squ", "constant", 10)
    if clipped is None or raw is None:
        return []
    return [
        f"atlas-paper clips the estimate of the class mix, which makes it biased: with three "
        f"switches its regret has the exponent {clipped:.3f}, with the raw, unbiased estimate and "
        f"all else the same {raw:.3f}. A bias costs in proportion to T; the theorems assume none."
    ]


def _noise_note(series: list[dict[str, Any]]) -> list[str]:
    """What larger batches do to the exponent under a slow drift."""
    small = _slope(series, "atlas-theory", "lin", "constant", 10)
    large = _slope(series, "atlas-theory", "lin", "constant", 100)
    if small is None or large is None:
        return []
    return [
        f"atlas-theory under one slow drift: exponent {small:.3f} with batches of 10, {large:.3f} "
        "with batches of 100. Only the noise of the estimates differs between the two."
    ]


def _lemma1(results: Results) -> dict[str, Any] | None:
    points = [
        {"mix": s["mix"], "batch_size": s["batch_size"], "draws": s["draws"], **point}
        for s, r in _of_kind(results, "lemma1")
        for point in r["points"]
    ]
    if not points:
        return None
    for form in ("raw", "clipped"):
        for point in points:
            gap = point[form]["mean"] - point["true"]
            point[form] = {**point[form], "bias": gap, "z": gap / max(point[form]["error"], 1e-12)}
    # Two-sided, 1 % for all points together.
    return {"points": points, "critical": float(norm.isf(0.005 / len(points)))}


def _lemma1_claims(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    points, critical = found["points"], found["critical"]
    raw = [abs(point["raw"]["z"]) for point in points]
    clipped = [point for point in points if abs(point["clipped"]["z"]) > critical]
    most = max(points, key=lambda point: abs(float(point["clipped"]["bias"])))
    near = sum(z <= 2 for z in raw)
    return [
        _claim(
            "Lemma 1: the mean of the raw risk estimate is the true risk, within its error",
            max(raw) <= critical,
            f"{near} of {len(raw)} within 2 standard errors, largest {max(raw):.2f} (limit "
            f"{critical:.2f} for all at 1 %)",
        ),
        _claim(
            "Clipping the estimate, as the experiments do, makes it biased",
            len(clipped) > 0,
            f"{len(clipped)} of {len(points)} means differ; largest bias "
            f"{most['clipped']['bias']:.3f} on a risk of {most['true']:.3f} "
            f"({most['mix']}, {most['model']}, batches of {most['batch_size']})",
        ),
    ]


def _lemma2(results: Results) -> dict[str, Any] | None:
    runs = _of_kind(results, "lemma2")
    if not runs:
        return None
    rows = sorted({s["rows"] for s, _ in runs})
    found: dict[str, Any] = {"rows": rows}
    for kind in ("risk", "prior"):
        errors = [[e for s, r in runs if s["rows"] == n for e in r[f"{kind}_errors"]] for n in rows]
        fit = None
        if len(rows) >= 3:
            flat = [(n, e) for n, es in zip(rows, errors, strict=True) for e in es]
            fit = fit_exponent(*zip(*flat, strict=True))._asdict()
        found[kind] = {
            "mean": [_mean(es) for es in errors],
            "std": [_std(es) for es in errors],
            "repeats": min(map(len, errors)),
            "fit": fit,
        }
    found["largest"] = [
        max(e for s, r in runs if s["rows"] == n for e in r["largest_errors"]) for n in rows
    ]
    found["bound"] = [next(r["bound"] for s, r in runs if s["rows"] == n) for n in rows]
    return found


def _lemma2_claims(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    claims = []
    for kind, what in (("risk", "estimated risk"), ("prior", "estimated class mix")):
        fit = found[kind]["fit"]
        if fit is not None:
            claims.append(
                _claim(
                    f"Lemma 2: the error of the {what} falls like 1/sqrt(|S_0|)",
                    abs(fit["slope"] + 0.5) <= _TOLERANCE,
                    f"exponent {fit['slope']:.3f} +- {fit['error']:.3f} over |S_0| = "
                    f"{found['rows'][0]} to {found['rows'][-1]}, {found[kind]['repeats']} draws "
                    "of each",
                )
            )
    pairs = [
        (worst / bound)
        for worst, bound in zip(found["largest"], found["bound"], strict=True)
        if bound is not None
    ]
    if pairs:
        claims.append(
            _claim(
                "Lemma 2: the error of the estimated risk lies below the bound",
                max(pairs) < 1,
                f"at most {max(pairs):.2g} of it, where |S_0| is large enough for the lemma",
            )
        )
    return claims
