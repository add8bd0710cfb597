"""``priorshift fit``: from a model, or its probabilities, and a held-out file to a source."""

from __future__ import annotations

import argparse
import warnings

from priorshift._validation import plain_labels
from priorshift.cli.arguments import one_name
from priorshift.cli.messages import first_lines, warn
from priorshift.errors import InputError
from priorshift.experiments.progress import Progress
from priorshift.experiments.report.output import check_apart, check_writable
from priorshift.files.fitting import Fitting, fit_file
from priorshift.files.output import tell_of_old
from priorshift.learners import LEARNERS

_DESCRIPTION = """\
Make a source: one file that has the model, what was measured of it on a labelled held-out set, and
the learner. priorshift adapt and priorshift.load read it.
"""
_EPILOG = """\
The held-out set is CSV, NDJSON, Parquet, or npz (X and y, or P and y). Models are .priorshift
files, or .skops files of scikit-learn models. Pickles are never read.

examples:
  priorshift fit --proba-columns 'p_*' --label y --hold hold.csv -o source.priorshift
      the columns p_cat, p_dog hold what any model says of the classes cat and dog
  priorshift fit --model model.skops --trust --label y --hold hold.parquet -o source.priorshift
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Give the parser of ``priorshift fit`` its description and options."""
    parser.description = _DESCRIPTION
    parser.epilog = _EPILOG
    parser.set_defaults(command=fit)
    add_model(parser, required=True)
    parser.add_argument("-o", "--output", required=True, metavar="SOURCE", help="the new file")
    parser.add_argument("--quiet", action="store_true", help="no progress, no warnings")


def add_model(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Add what a source is made from."""
    parser.add_argument("--hold", required=required, metavar="FILE", help="labelled held-out set")
    parser.add_argument("--label", metavar="COL", help="the column that has the labels")
    parser.add_argument("--model", metavar="FILE", help=".priorshift or .skops file of the model")
    parser.add_argument(
        "--trust",
        nargs="?",
        const="",
        metavar="NAME,...",
        help="read a skops file, and trust these types of it beside those that skops trusts",
    )
    parser.add_argument(
        "--proba-columns",
        metavar="NAMES",
        help="columns with a model's class probabilities, in the place of a model: 'p_*'",
    )
    parser.add_argument("--classes", metavar="A,B,...", help="labels in the order of these columns")
    parser.add_argument("--drop", metavar="COL,...", help="columns that are not for the model")
    parser.add_argument(
        "--prior",
        metavar="A=P,B=Q,...",
        help="share of each label that the model was trained under and the stream starts with, "
        "where the held-out set was chosen class by class (default: that of the held-out set)",
    )
    parser.add_argument(
        "--learner",
        type=one_name("learner", LEARNERS),
        default="auto",
        metavar="NAME",
        help=f"who follows the class mix: {', '.join(LEARNERS)}",
    )
    parser.add_argument("--safety", choices=("on", "off"), default="on", help="see docs/safety.md")


def parts(text: str | None) -> tuple[str, ...]:
    """Split what is given with commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def fitting_of(options: argparse.Namespace) -> Fitting:
    """Return what the options of ``add_model`` say."""
    return Fitting(
        hold=options.hold,
        label=options.label,
        model=options.model,
        trust=None if options.trust is None else parts(options.trust),
        proba_columns=options.proba_columns,
        classes=parts(options.classes) or None,
        drop=parts(options.drop),
        prior=None if options.prior is None else shares(options.prior),
        settings={"learner": options.learner, "safety": options.safety},
    )


def shares(text: str) -> dict[str, float]:
    """Read a class prior.

    Examples
    --------
    >>> shares("cat=0.75, dog=0.25")
    {'cat': 0.75, 'dog': 0.25}
    """
    found: dict[str, float] = {}
    for part in parts(text):
        label, _, share = (one.strip() for one in part.rpartition("="))
        try:
            value = float(share)
        except ValueError:
            label = ""
        if not label or label in found:
            raise InputError(
                f"--prior {text}: {part!r} will not do; give every label its share, once, as "
                "cat=0.7,dog=0.3"
            )
        found[label] = value
    return found


def waiting_text(options: argparse.Namespace) -> str:
    """What is said of a fit that takes long."""
    return f"priorshift: measuring the model on {options.hold} ..."


def fit(options: argparse.Namespace) -> None:
    r"""Do what the options of ``priorshift fit`` say.

    Examples
    --------
    >>> import tempfile
    >>> from priorshift.cli import main
    >>> lines = ["p_no,p_yes,y", "0.9,0.1,no", "0.8,0.2,no", "0.2,0.8,yes", "0.4,0.6,yes"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/hold.csv", "w") as file:
    ...         size = file.write("\n".join(lines))
    ...     call = f"fit --hold {folder}/hold.csv --label y --proba-columns p_* --learner fth"
    ...     main([*call.split(), "-o", f"{folder}/source.priorshift", "--quiet"])
    0
    """
    check_writable(options.output, "--output")
    check_apart(options.output, "--output", hold=options.hold, model=options.model)
    progress = Progress(quiet=options.quiet, log=False)
    with warnings.catch_warnings(record=True) as caught, progress.waiting(waiting_text(options)):
        warnings.simplefilter("always")
        clf = fit_file(fitting_of(options))
        tell_of_old(options.output, "--output")
        clf.save(options.output)
    if options.quiet:
        return
    warn(first_lines(caught))
    source = clf.source_
    classes = ", ".join(map(str, plain_labels(source.classes[:10])))
    score = ""
    if options.proba_columns is not None and clf.n_features_in_ == 1:
        score = f"; {clf.feature_names_in_[0]} is the probability of {clf.estimator.classes_[1]}"
    progress.say(
        f"priorshift: {options.output}: {source.n_classes} classes ({classes}"
        f"{', ...' if source.n_classes > 10 else ''}{score}), {len(source.labels)} held-out rows, "
        f"learner {clf.learner_.name}"
    )
