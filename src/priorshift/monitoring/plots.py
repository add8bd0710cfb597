"""Pictures of a stream's history, in scikit-learn's Display convention."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from priorshift._colours import BLUE, GREY, PALETTE, VERMILLION
from priorshift._extras import need
from priorshift._validation import check_choice
from priorshift.errors import InputError, InputTypeError
from priorshift.typing import AnyArray, FloatArray

_PRIOR = "prior_"
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1.2)))
_MOST_LINES = 6
_X = ("auto", "round", "time", "date")
# Seconds since 1970 that are taken for a date: none before 1973.
_DATES = 1e8


class PriorDisplay:
    """The history of a stream as a picture.

    Three panels over one axis of rounds or of time: the class prior with its band, the regimes
    behind it in grey; the accuracy, estimated without labels, adapted and as it is; the guard's
    share. Use ``from_history``, or ``LabelShiftClassifier.plot``.

    Parameters
    ----------
    history : pandas.DataFrame
        From ``LabelShiftClassifier.history_``.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : (3,) array of matplotlib Axes

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 9, [0, 0, 1, 1] * 9
    >>> clf = LabelShiftClassifier.from_probabilities(P, y)
    >>> for hour in range(3):
    ...     clf = clf.adapt([[0.2, 0.8]] * 30, timestamp=3600.0 * hour)
    >>> display = PriorDisplay.from_history(clf.history_, classes=[1])
    >>> display.axes_[0].get_ylabel(), display.axes_[-1].get_xlabel()
    ('class prior', 'time in seconds')
    """

    def __init__(self, history: Any) -> None:
        self.history = history

    @classmethod
    def from_history(
        cls, history: Any, *, classes: Any = None, x: str = "auto", axes: Any = None
    ) -> Self:
        """Draw a history.

        Parameters
        ----------
        history : pandas.DataFrame
            From ``LabelShiftClassifier.history_``.
        classes : list of labels, optional
            Which to draw, by default the six whose class prior moved most.
        x : {"auto", "round", "time", "date"}
            What is on the horizontal axis: "auto" is the time where every batch has one, as dates
            where the seconds look like such, and else the round.
        axes : three Axes, optional
            Where to draw; by default in a new figure.

        Examples
        --------
        >>> from priorshift import LabelShiftClassifier
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
        >>> PriorDisplay.from_history(clf.history_, classes=[1], x="round").axes_[0].get_xlabel()
        ''
        """
        return cls(history).plot(classes=classes, x=x, axes=axes)

    def plot(self, *, classes: Any = None, x: str = "auto", axes: Any = None) -> Self:
        """Draw; see ``from_history``.

        Examples
        --------
        >>> from priorshift import LabelShiftClassifier
        >>> P, y = [0.1, 0.3, 0.7, 0.9] * 20, [0, 0, 1, 1] * 20
        >>> clf = LabelShiftClassifier.from_probabilities(P, y, "fth").adapt([0.9, 0.8, 0.1])
        >>> len(PriorDisplay(clf.history_).plot(x="round").axes_)
        3
        """
        need("matplotlib")
        import matplotlib.pyplot as plt
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        check_choice("x", x, _X)
        history = self.history
        if not len(history):
            raise InputError("the history is empty: call adapt before plot")
        names = _chosen(history, classes)
        if axes is None:
            _, axes = plt.subplots(
                3,
                1,
                sharex=True,
                figsize=(7.0, 6.0),
                height_ratios=(3, 2, 1),
                layout="constrained",
            )
        self.axes_ = np.asarray(axes).ravel()
        if len(self.axes_) != 3 or not all(hasattr(panel, "plot") for panel in self.axes_):
            raise InputError(f"axes has {len(self.axes_)} panels: give 3 Axes of matplotlib")
        self.figure_ = self.axes_[0].figure
        places, label = _places(history, x)
        self._draw_priors(places, names)
        self._draw_accuracy(places)
        self._draw_guard(places)
        self.axes_[-1].set_xlabel(label)
        for panel in self.axes_:
            if places.dtype.kind == "M":
                locator = AutoDateLocator()
                panel.xaxis.set_major_locator(locator)
                panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            panel.grid(color="0.9", linewidth=0.8)
            panel.set_axisbelow(True)
            panel.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_priors(self, places: AnyArray, names: list[str]) -> None:
        panel, history = self.axes_[0], self.history
        _shade_regimes(panel, places, history["regime"].to_numpy())
        for number, name in enumerate(names):
            colour = PALETTE[number % len(PALETTE)]
            ends = (history[f"{end}_{name}"].to_numpy() for end in ("low", "high"))
            panel.fill_between(places, *ends, color=colour, alpha=0.18, linewidth=0)
            dashes = _DASHES[number % len(_DASHES)]
            line = history[f"{_PRIOR}{name}"].to_numpy()
            panel.plot(places, line, color=colour, linestyle=dashes, label=name)
        panel.set_ylabel("class prior")
        panel.set_ylim(bottom=0.0)
        _legend(panel, len(names))

    def _draw_accuracy(self, places: AnyArray) -> None:
        panel = self.axes_[1]
        for name, label, colour, dashes in (
            ("accuracy", "adapted", BLUE, "-"),
            ("accuracy_unadapted", "as it is", VERMILLION, (0, (5, 1.5))),
        ):
            values = self.history[name].to_numpy()
            if np.isfinite(values).any():
                panel.plot(places, values, color=colour, linestyle=dashes, label=label)
        panel.set_ylabel("accuracy\n(estimated)")
        _legend(panel, 2)

    def _draw_guard(self, places: AnyArray) -> None:
        panel, share = self.axes_[2], self.history["guard"].to_numpy()
        panel.fill_between(places, 0.0, share, step="post", color=GREY, alpha=0.4, linewidth=0)
        panel.step(places, share, where="post", color="black", linewidth=1.0)
        panel.set_ylim(0.0, 1.05)
        panel.set_ylabel("guard")


def plot(subject: Any, **settings: Any) -> PriorDisplay:
    """Draw the history of a classifier, or a frame of one; see ``PriorDisplay.from_history``.

    Examples
    --------
    >>> from priorshift import LabelShiftClassifier
    >>> P, y = [[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.4, 0.6]] * 9, [0, 0, 1, 1] * 9
    >>> clf = LabelShiftClassifier.from_probabilities(P, y).adapt(P).adapt(P)
    >>> plot(clf).axes_[0].get_ylabel()
    'class prior'
    """
    return PriorDisplay.from_history(getattr(subject, "history_", subject), **settings)


def _chosen(history: Any, classes: Any) -> list[str]:
    """Names of the classes that are drawn."""
    names = [name.removeprefix(_PRIOR) for name in history.columns if name.startswith(_PRIOR)]
    if classes is not None:
        if isinstance(classes, str) or not np.iterable(classes):
            raise InputTypeError(f"classes is {classes!r}: give a list of labels, of {names[:8]}")
        chosen = [str(label) for label in classes]
        strange = [name for name in chosen if name not in names]
        if strange:
            raise InputError(f"the history has no class {strange[0]!r}; it has {names[:8]}")
        return chosen
    priors = history[[_PRIOR + name for name in names]].to_numpy()
    moved = priors.max(axis=0) - priors.min(axis=0) + 1e-3 * priors.mean(axis=0)
    return [names[k] for k in np.sort(np.argsort(-moved, kind="stable")[:_MOST_LINES])]


def _places(history: Any, x: str) -> tuple[AnyArray, str]:
    """Where each record is on the horizontal axis, and what that axis is called."""
    seconds = history["time"].to_numpy()
    told = bool(np.isfinite(seconds).all())
    if x == "auto":
        x = ("date" if seconds.min() > _DATES else "time") if told else "round"
    if x == "round":
        return history.index.to_numpy(), "round"
    if not told:
        raise InputError(f"x={x!r} needs adapt(X, timestamp=...) for every batch: use x='round'")
    if x == "time":
        return seconds, "time in seconds"
    return (seconds * 1e3).round().astype("datetime64[ms]"), "time (UTC)"


def _shade_regimes(panel: Any, places: AnyArray, regimes: FloatArray) -> None:
    """Every second regime in grey, where there is more than one."""
    known = sorted(set(regimes.tolist()))
    starts = np.flatnonzero(np.diff(regimes, prepend=regimes[0] - 1))
    for start, end in zip(starts, [*starts[1:], len(regimes) - 1], strict=True):
        if known.index(regimes[start]) % 2:
            panel.axvspan(places[start], places[end], color="0.93", linewidth=0, zorder=0)


def _legend(panel: Any, columns: int) -> None:
    if panel.get_legend_handles_labels()[0]:
        panel.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=columns,
            frameon=False,
            fontsize="small",
        )
