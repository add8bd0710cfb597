"""What compiled code reads of a model: checked before, because that code does not check.

A wrong index there reads, or writes, outside of an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn._loss.loss import ExponentialLoss, HalfBinomialLoss, HalfMultinomialLoss
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors import BallTree, KDTree
from sklearn.tree._tree import NODE_DTYPE, Tree

from priorshift.errors import FileFormatError

_LOSSES = {kind.__name__: kind for kind in (ExponentialLoss, HalfBinomialLoss, HalfMultinomialLoss)}
COMPILED = ("Tree", "TreePredictor", *_LOSSES)
_KERNELS = ("linear", "poly", "rbf", "sigmoid")


def encode_compiled(value: Any) -> dict[str, Any]:
    """Return what an object of compiled code is made from, by name."""
    if isinstance(value, Tree):
        state = value.__getstate__()
        sizes = [int(value.n_features), int(value.n_outputs), int(state["max_depth"])]
        counts = np.asarray(value.n_classes, dtype=np.int64)
        return {
            "sizes": sizes,
            "counts": counts,
            **_columns(state["nodes"], NODE_DTYPE),
            "values": state["values"],
        }
    if isinstance(value, TreePredictor):
        return {
            **_columns(value.nodes, PREDICTOR_RECORD_DTYPE),
            "binned": value.binned_left_cat_bitsets,
            "raw": value.raw_left_cat_bitsets,
        }
    n_classes = value.n_classes
    return {"n_classes": None if n_classes is None else int(n_classes)}


def decode_compiled(name: Any, fields: dict[str, Any]) -> Any:
    """Return what ``encode_compiled`` was given; whatever does not fit is refused."""
    if name == "Tree":
        return _make_tree(**fields)
    if name == "TreePredictor":
        return _make_predictor(**fields)
    if name not in _LOSSES:
        raise FileFormatError(f"holds a {name}, which no file brings along")
    if name != "HalfMultinomialLoss":
        return _LOSSES[name]()
    _need(_is_count(fields["n_classes"], least=2), "a loss of so many classes")
    return HalfMultinomialLoss(n_classes=fields["n_classes"])


def check_compiled(made: Any) -> None:
    """Refuse an object whose arrays do not fit, and make again what was left out of the file."""
    check = _CHECKS.get(type(made).__name__)
    if check is not None:
        check(made)


# Trees.


def _columns(nodes: Any, dtype: np.dtype[Any]) -> dict[str, Any]:
    """The nodes of a tree as two plain tables, whole numbers and others, by the order of names."""
    if nodes.dtype.names != dtype.names:
        raise ValueError("its nodes are not those of this scikit-learn")
    whole, real = _names(dtype)
    return {
        "names": list(dtype.names or ()),
        "whole": np.stack([nodes[name].astype(np.int64) for name in whole], axis=1),
        "real": np.stack([nodes[name].astype(np.float64) for name in real], axis=1),
    }


def _names(dtype: np.dtype[Any]) -> tuple[list[str], list[str]]:
    names = list(dtype.names or ())
    return (
        [name for name in names if dtype[name].kind in "iub"],
        [name for name in names if dtype[name].kind == "f"],
    )


def _nodes(names: Any, whole: Any, real: Any, dtype: np.dtype[Any]) -> Any:
    _need(names == list(dtype.names or ()), "a tree of another version of scikit-learn")
    names_whole, names_real = _names(dtype)
    n = len(whole)
    _need_array(whole, np.int64, (n, len(names_whole)), "nodes of a tree")
    _need_array(real, np.float64, (n, len(names_real)), "nodes of a tree")
    _need(n > 0, "a tree without nodes")
    nodes = np.zeros(n, dtype=dtype)
    for table, columns in ((whole, names_whole), (real, names_real)):
        for column, name in zip(table.T, columns, strict=True):
            nodes[name] = column
            if table is whole:
                _need((nodes[name] == column).all(), f"a tree with an impossible {name}")
    return nodes


def _check_children(nodes: Any, left: str, right: str, inner: Any) -> None:
    """Children come after their parent, so that every way down a tree ends."""
    places = np.flatnonzero(inner)
    for side in (left, right):
        child = nodes[side][inner].astype(np.int64)
        _need(((child > places) & (child < len(nodes))).all(), "a tree with nodes of no tree")


def _make_tree(sizes: Any, counts: Any, names: Any, whole: Any, real: Any, values: Any) -> Any:
    _need(type(sizes) is list and len(sizes) == 3, "a tree without sizes")
    n_features, n_outputs, max_depth = sizes
    _need(_is_count(n_features) and _is_count(n_outputs, least=1), "a tree without sizes")
    _need_array(counts, np.int64, (n_outputs,), "class counts of a tree")
    _need((counts >= 1).all(), "a tree without classes")
    nodes = _nodes(names, whole, real, NODE_DTYPE)
    shape = (len(nodes), n_outputs, int(counts.max()))
    _need_array(values, np.float64, shape, "values of a tree")
    _need(_is_count(max_depth) and max_depth < len(nodes), "a tree of impossible depth")
    leaf = nodes["left_child"] == -1
    _need((nodes["right_child"][leaf] == -1).all(), "a tree with half a leaf")
    _check_children(nodes, "left_child", "right_child", ~leaf)
    feature = nodes["feature"][~leaf]
    _need(((feature >= 0) & (feature < n_features)).all(), "a tree that asks for no feature")
    tree = Tree(n_features, counts.astype(np.intp), n_outputs)
    tree.__setstate__(
        {
            "max_depth": max_depth,
            "node_count": len(nodes),
            "nodes": nodes,
            "values": np.ascontiguousarray(values),
        }
    )
    return tree


def _make_predictor(names: Any, whole: Any, real: Any, binned: Any, raw: Any) -> Any:
    nodes = _nodes(names, whole, real, PREDICTOR_RECORD_DTYPE)
    for bitsets in (binned, raw):
        _need_array(bitsets, np.uint32, (len(bitsets), 8), "categories of a tree")
    leaf = nodes["is_leaf"].astype(bool)
    _check_children(nodes, "left", "right", ~leaf)
    _need((nodes["feature_idx"][~leaf] >= 0).all(), "a tree that asks for no feature")
    asked = nodes["bitset_idx"][~leaf & nodes["is_categorical"].astype(bool)]
    _need((asked < min(len(binned), len(raw))).all(), "a tree that asks for no categories")
    return TreePredictor(nodes, np.ascontiguousarray(binned), np.ascontiguousarray(raw))


def _check_one_tree(made: Any) -> None:
    tree = getattr(made, "tree_", None)
    if tree is None:
        return
    _need(isinstance(tree, Tree), "a tree that is none")
    _need(tree.n_features == getattr(made, "n_features_in_", None), "a tree of other features")


def _check_trees(made: Any) -> None:
    """A forest hands its rows to its trees without another look."""
    if not hasattr(made, "estimators_"):
        return
    if type(made).__name__ == "GradientBoostingClassifier":
        found = made.estimators_
        shape = (len(found), made.n_trees_per_iteration_)
        _need(isinstance(found, np.ndarray) and found.shape == shape, "rounds of another size")
    for one in np.asarray(made.estimators_, dtype=object).ravel():
        tree: Any = getattr(one, "tree_", None)
        _need(isinstance(tree, Tree), "a forest of something else")
        _need(tree.n_features == made.n_features_in_, "a tree of other features")


def _check_histogram(made: Any) -> None:
    if not hasattr(made, "_predictors"):
        return
    d, mapper = made._n_features, made._bin_mapper
    _need(_is_count(made.n_features_in_) and made.n_features_in_ == d, "trees of other features")
    _need_array(mapper.is_categorical_, np.uint8, (d,), "categories")
    _need(len(mapper.bin_thresholds_) == d, "thresholds of other features")
    for row in made._predictors:
        for one in row:
            _need(isinstance(one, TreePredictor), "a tree that is none")
            _need((one.nodes["feature_idx"] < d).all(), "a tree that asks for no feature")
    if made._preprocessor is None:
        return
    # The frame's columns, sorted into categories and numbers: each goes into one of the two.
    _need(type(made._preprocessor).__name__ == "ColumnTransformer", "columns of another kind")
    parts = made._preprocessor.transformers_[:2]
    rest = made._preprocessor.transformers_[2:]
    _need(len(rest) == 0 or [part[1] for part in rest] == ["drop"], "columns of another kind")
    _need([part[0] for part in parts] == ["encoder", "numerical"], "columns of another kind")
    kinds = [type(part[1]).__name__ for part in parts]
    _need(kinds == ["OrdinalEncoder", "FunctionTransformer"], "columns of another kind")
    for columns in ([part[2] for part in parts], made._preprocessor._columns):
        masks = [np.asarray(mask) for mask in columns]
        _need(len(masks) == 2, "columns of another kind")
        for mask in masks:
            _need_array(mask, np.bool_, (d,), "columns")
        _need((masks[0] != masks[1]).all(), "a column that is lost")


# Support vectors, neighbours, words, categories, steps.


def _check_vectors(made: Any) -> None:
    if not hasattr(made, "support_vectors_"):
        return
    K, vectors, n = len(made.classes_), made.support_vectors_, made.support_vectors_.shape[0]
    pairs = K * (K - 1) // 2
    _need(made.kernel in _KERNELS, f"the kernel {made.kernel!r}")
    _need(made._sparse is bool(sparse.issparse(vectors)), "support vectors of two minds")
    _need(vectors.shape == (n, made.n_features_in_), "support vectors of other features")
    _need(tuple(made.shape_fit_)[1:] == (made.n_features_in_,), "support vectors of other features")
    _need_array(made.support_, np.int32, (n,), "support vectors")
    _need_array(made._n_support, np.int32, (K,), "support vectors")
    _need((made._n_support >= 0).all() and made._n_support.sum() == n, "support vectors")
    for part in (made._dual_coef_, made.dual_coef_):
        _need(part.shape == (K - 1, n) and part.dtype == np.float64, "support vectors")
        _need(not sparse.issparse(part) or part.nnz == (K - 1) * n, "support vectors")
    for part in (made._intercept_, made.intercept_):
        _need_array(part, np.float64, (pairs,), "thresholds of support vectors")
    for part in (made._probA, made._probB):
        _need_array(part, np.float64, (pairs if len(part) else 0,), "probabilities")


def _make_neighbours(made: Any) -> None:
    """The tree of neighbours is made again from its rows: that gives the same tree."""
    if not hasattr(made, "_fit_method"):
        return
    kinds = {"kd_tree": KDTree, "ball_tree": BallTree, "brute": None}
    kind = kinds[made._fit_method]
    _need(_is_count(made.leaf_size, least=1), "neighbours")
    _need(made._fit_X.shape == (made.n_samples_fit_, made.n_features_in_), "neighbours")
    _need_array(made._y, np.intp, (made.n_samples_fit_,), "classes of neighbours")
    _need(((made._y >= 0) & (made._y < len(made.classes_))).all(), "neighbours of no class")
    _need(_is_count(made.n_neighbors, least=1), "neighbours")
    made._tree = None
    if kind is not None:
        _need_array(made._fit_X, np.float64, made._fit_X.shape, "neighbours")
        metric, more = made.effective_metric_, made.effective_metric_params_
        _need(isinstance(metric, str) and metric in kind.valid_metrics, "neighbours")
        _need(set(more) <= {"p", "w", "V", "VI"}, "neighbours")
        made._tree = kind(made._fit_X, made.leaf_size, metric=metric, **more)


def _check_words(made: Any) -> None:
    for name in ("vocabulary_", "vocabulary"):
        words = getattr(made, name, None)
        if isinstance(words, dict):
            in_order = sorted(words.values()) == list(range(len(words)))
            _need(in_order, "a vocabulary whose columns are not 0, 1, 2, ...")


def _check_categories(made: Any) -> None:
    """One-hot columns are written by number, without a look at how many there are."""
    if not hasattr(made, "categories_"):
        return
    sizes = [len(categories) for categories in made.categories_]
    _need(made._n_features_outs == made._compute_n_features_outs(), "other categories")
    _need(all(type(n) is int and n >= 0 for n in made._n_features_outs), "other categories")
    for drops in (made.drop_idx_, made._drop_idx_after_grouping):
        if drops is not None:
            _need(len(drops) == len(sizes), "other categories")
            for drop, size in zip(drops, sizes, strict=True):
                _need(drop is None or 0 <= drop < size, "a category that is none")
    maps = getattr(made, "_default_to_infrequent_mappings", [None] * len(sizes))
    _need(len(maps) == len(sizes), "other categories")
    for found, size in zip(maps, sizes, strict=True):
        if found is not None:
            _need(found.dtype.kind == "i" and found.shape == (size,), "other categories")
            _need(((found >= 0) & (found <= found.max())).all(), "a category that is none")
            grouped = len(np.unique(found))
            _need(int(found.max()) + 1 == grouped, "a category that is none")


def _make_steps(made: Any) -> None:
    if hasattr(made, "X_thresholds_"):
        x, y = made.X_thresholds_, made.y_thresholds_
        _need_array(x, x.dtype, (len(x),), "steps")
        _need_array(y, y.dtype, (len(x),), "steps")
        _need(x.dtype.kind == "f" and y.dtype.kind == "f" and len(x) > 0, "steps")
        made._build_f(x, y)


_CHECKS: dict[str, Callable[[Any], None]] = {
    **dict.fromkeys(
        (
            "DecisionTreeClassifier",
            "DecisionTreeRegressor",
            "ExtraTreeClassifier",
            "ExtraTreeRegressor",
        ),
        _check_one_tree,
    ),
    **dict.fromkeys(
        ("ExtraTreesClassifier", "GradientBoostingClassifier", "RandomForestClassifier"),
        _check_trees,
    ),
    "HistGradientBoostingClassifier": _check_histogram,
    "IsotonicRegression": _make_steps,
    "KNeighborsClassifier": _make_neighbours,
    "NuSVC": _check_vectors,
    "OneHotEncoder": _check_categories,
    "SVC": _check_vectors,
    **dict.fromkeys(("CountVectorizer", "DictVectorizer", "TfidfVectorizer"), _check_words),
}


def _is_count(value: Any, least: int = 0) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= value < 2**31


def _need(fine: Any, what: str) -> None:
    if not fine:
        raise FileFormatError(f"holds {what}")


def _need_array(array: Any, dtype: Any, shape: tuple[int, ...], what: str) -> None:
    found = isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == shape
    _need(found, f"{what} of another type or shape")
