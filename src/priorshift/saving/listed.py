"""The closed list: every class, function and type outside of priorshift that a file can name.

A file names a class by the name here and in no other way; nothing else is imported or called for
it. Objects are made without their constructor, and get their attributes one by one: values, arrays
and objects of this list (``saving/estimators.py``). What compiled code will read was checked before
(``saving/compiled.py``).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy.special import expit, logit

from priorshift.errors import FileFormatError

# By the module that a class is imported from.
CLASSES: dict[str, tuple[str, ...]] = {
    "sklearn.linear_model": (
        "LogisticRegression",
        "LogisticRegressionCV",
        "Perceptron",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ),
    "sklearn.naive_bayes": (
        "BernoulliNB",
        "CategoricalNB",
        "ComplementNB",
        "GaussianNB",
        "MultinomialNB",
    ),
    "sklearn.discriminant_analysis": (
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "sklearn.neighbors": ("KNeighborsClassifier", "NearestCentroid"),
    "sklearn.svm": ("LinearSVC", "NuSVC", "SVC"),
    "sklearn.tree": (
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
    ),
    "sklearn.ensemble": (
        "AdaBoostClassifier",
        "BaggingClassifier",
        "ExtraTreesClassifier",
        "GradientBoostingClassifier",
        "HistGradientBoostingClassifier",
        "RandomForestClassifier",
        "StackingClassifier",
        "VotingClassifier",
    ),
    "sklearn.ensemble._hist_gradient_boosting.binning": ("_BinMapper",),
    "sklearn.neural_network": ("MLPClassifier",),
    "sklearn.calibration": (
        "CalibratedClassifierCV",
        "_CalibratedClassifier",
        "_SigmoidCalibration",
        "_TemperatureScaling",
    ),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.dummy": ("DummyClassifier",),
    "sklearn.multiclass": ("OneVsRestClassifier", "_ConstantPredictor"),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.model_selection": ("GridSearchCV", "KFold", "StratifiedKFold"),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.compose": ("ColumnTransformer", "make_column_selector"),
    "sklearn.preprocessing": (
        "Binarizer",
        "FunctionTransformer",
        "KBinsDiscretizer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ),
    "sklearn.impute": ("KNNImputer", "MissingIndicator", "SimpleImputer"),
    "sklearn.feature_extraction": ("DictVectorizer",),
    "sklearn.feature_extraction.text": (
        "CountVectorizer",
        "HashingVectorizer",
        "TfidfTransformer",
        "TfidfVectorizer",
    ),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.feature_selection": (
        "SelectKBest",
        "SelectPercentile",
        "VarianceThreshold",
    ),
    "sklearn.utils": ("Bunch",),
}
_MODULES = {name: module for module, names in CLASSES.items() for name in names}

# Attributes that only a further fit would read, and what can be made again from the others.
FORGOTTEN = {
    "_checked_cv_orig",
    "_feature_subsample_rng",
    "_loss_function_",
    "_optimizer",
    "_random_state",
    "_rng",
    "_scorer",
    "_stop_words_id",
    "_tree",
    "cv_results_",
    "f_",
    "loss_function_",
    "scorer_",
}
# Attributes that decide what is read or written while predicting, and the one value they may have.
FIXED: dict[str, Any] = {"input": "content", "memory": None, "_in_fit": False}

FUNCTIONS: dict[str, Any] = {
    **{
        name: getattr(np, name)
        for name in (
            *("abs", "arcsinh", "cbrt", "cos", "exp", "expm1", "log", "log10", "log1p", "log2"),
            *("negative", "reciprocal", "sign", "sin", "sqrt", "square", "tanh"),
        )
    },
    "expit": expit,
    "logit": logit,
}
# How good a feature is: these are imported when one is named.
SCORES = ("chi2", "f_classif", "mutual_info_classif")

TYPES: dict[str, type] = {
    **{kind.__name__: kind for kind in (bool, int, float, str, object)},
    **{
        f"numpy.{name}": getattr(np, name)
        for name in (
            *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64", "number", "integer", "floating", "object_", "str_"),
        )
    },
}
TYPE_NAMES = {kind: name for name, kind in reversed(TYPES.items())}


def listed_class(name: Any) -> type:
    """Return the class that a file calls ``name``.

    Examples
    --------
    >>> listed_class("PCA")
    <class 'sklearn.decomposition._pca.PCA'>
    >>> listed_class("os.system")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: names the class 'os.system', which no file brings along
    """
    module = _MODULES.get(name) if isinstance(name, str) else None
    if module is None:
        raise FileFormatError(f"names the class {name!r}, which no file brings along")
    found = getattr(import_module(module), name, None)
    if not isinstance(found, type):
        raise FileFormatError(f"names the class {name!r}, which this scikit-learn does not have")
    return found


def is_listed(value: Any) -> bool:
    """Say whether ``value`` is of a listed class itself, not of one derived from it."""
    name = type(value).__name__
    return name in _MODULES and listed_class(name) is type(value)


def listed_function(name: Any) -> Any:
    """Return the function that a file calls ``name``."""
    if isinstance(name, str) and name in FUNCTIONS:
        return FUNCTIONS[name]
    if isinstance(name, str) and name in SCORES:
        return getattr(import_module("sklearn.feature_selection"), name)
    raise FileFormatError(f"names the function {name!r}, which no file brings along")


def function_name(value: Any) -> str | None:
    """Return the name of a listed function, None for everything else."""
    for name in (*FUNCTIONS, *SCORES):
        if getattr(value, "__name__", None) in (name, "absolute") and value is listed_function(
            name
        ):
            return name
    return None


def check_attribute(kind: type, name: Any) -> str:
    """Refuse an attribute that would hide what the class itself defines, such as a method.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> check_attribute(PCA, "mean_")
    'mean_'
    >>> check_attribute(PCA, "transform")
    Traceback (most recent call last):
    ...
    priorshift.errors.FileFormatError: sets PCA.transform, which is no attribute of a fitted one
    """
    fine = isinstance(name, str) and name.isidentifier() and not name.startswith("__")
    bases = [vars(base) for base in kind.__mro__ if fine and name in vars(base)]
    own = bases[0][name] if bases else None
    if not fine or name in FORGOTTEN or callable(own) or hasattr(own, "__get__"):
        raise FileFormatError(f"sets {kind.__name__}.{name}, which is no attribute of a fitted one")
    return str(name)
