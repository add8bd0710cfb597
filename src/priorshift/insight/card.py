"""A stream on a card: what a person wants to know of it, as HTML for a notebook."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import Any

import numpy as np

from priorshift.errors import PriorshiftError
from priorshift.insight.present import performance, prior_interval, shift
from priorshift.stream import Deployment, Stream

_SHOWN = 6
_STYLE = (
    "border:1px solid currentColor;border-radius:6px;padding:.6em .9em;max-width:46em;"
    "font:13px/1.5 system-ui,sans-serif"
)
_CELL = "padding:.1em .9em .1em 0;text-align:left;border:none;background:none;vertical-align:top"


def card(deployment: Deployment, stream: Stream) -> str:
    """Return HTML: source, learner, rounds, class prior now, estimated accuracy, guard, shift.

    It stands for itself: no script, no request, every text escaped.

    Examples
    --------
    >>> from priorshift.learners import FTH
    >>> from priorshift.source import build_source
    >>> from priorshift.source.model import ProbabilityModel
    >>> P, y = np.repeat(np.eye(2), 20, axis=0) * 0.8 + 0.1, np.repeat(["<no>", "yes"], 20)
    >>> source = build_source(ProbabilityModel(classes=["<no>", "yes"]), P, y)
    >>> here = Deployment(source, FTH(), history=64)
    >>> stream, _ = here.step(here.start(), source.read(P[15:]))
    >>> page = card(here, stream)
    >>> "fth" in page, "&lt;no&gt;" in page, "<no>" in page
    (True, True, False)
    """
    source, learner = deployment.source, deployment.learner
    model = type(source.model.estimator).__name__
    rows = [
        ("source", f"{model}, {len(source.labels)} held-out rows, {source.n_classes} classes"),
        ("learner", f"{learner.name}, {int(stream.state.t)} batches"),
        *_worth(deployment, stream),
        ("guard", _guard(deployment, stream)),
    ]
    if stream.shift is not None:
        rows.append(("shift", str(shift(deployment, stream))))
    cells = "".join(
        f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return (
        f'<div style="{_STYLE}"><b>LabelShiftClassifier</b>'
        f"<table>{cells}</table>{_priors(deployment, stream)}</div>"
    )


def _worth(deployment: Deployment, stream: Stream) -> list[tuple[str, str]]:
    try:
        found = performance(deployment, stream)
    except PriorshiftError as error:  # a sketch, or a stream without history
        return [("accuracy", f"not known: {error}")]
    assert found.unadapted is not None
    return [
        ("accuracy", f"{found.accuracy} estimated without labels, 90 % interval"),
        ("as it is", f"{found.unadapted.accuracy} without adapting"),
    ]


def _guard(deployment: Deployment, stream: Stream) -> str:
    if deployment.guard is None or stream.guard is None:
        return "none"
    report = deployment.guard.report(deployment.source, stream.guard)
    state = "alarm" if report.now else "no alarm now" if report.alarm else "no alarm"
    return f"{state} (p = {report.p_value:.2g}): {report.evidence}"


def _priors(deployment: Deployment, stream: Stream) -> str:
    """The class prior now, class by class, with a bar."""
    source = deployment.source
    prior = np.asarray(deployment.prior(stream))
    ends: Any = None
    with suppress(PriorshiftError):  # a stream without history, of a learner that does not say
        ends = prior_interval(deployment, stream)
    lines = []
    for k in np.argsort(-prior, kind="stable")[:_SHOWN].tolist():
        between = "" if ends is None else f"[{ends[0][k]:.3f}, {ends[1][k]:.3f}]"
        bar = (
            f'<div style="width:{8 * prior[k]:.2f}em;height:.7em;margin-top:.35em;'
            'background:#0072B2"></div>'
        )
        texts = (str(source.classes[k]), f"{prior[k]:.3f}", between, f"{source.prior[k]:.3f}")
        cells = "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in texts)
        lines.append(f'<tr>{cells}<td style="{_CELL}">{bar}</td></tr>')
    left = len(prior) - len(lines)
    more = f"<div>and {left} rarer classes</div>" if left else ""
    names = ("class", "prior now", "90 % interval", "source prior", "")
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in names)
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>{more}"
