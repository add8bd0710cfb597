"""Features of images without labels and without a network: k-means patches, pooled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from priorshift._validation import check_integer
from priorshift.errors import InputError
from priorshift.typing import AnyArray, Float32Array

# Small images need small patches, each of them; large ones can skip every other.
_LARGEST_PATCH, _SMALLEST_PATCH, _SMALL_IMAGE = 6, 3, 16
# Of the mean variance within a patch: flat patches are not blown up to noise.
_FLAT = 0.01
# Added to the variances of normalised patches before they are whitened.
_SMOOTH = 0.1
_PASSES = 30
# Activations that are in memory at a time.
_ROOM = 2**23


class PatchFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Describe images by how near their patches are to common ones, in each quarter of the image.

    Patches drawn from the images are freed of brightness and contrast, whitened and put into
    clusters. The features of an image are, for each cluster, how much nearer its patches are to it
    than to the average cluster (0 if they are farther), averaged over each quarter of the image;
    for images with colours also the mean colour of each quarter; standardised and turned to
    their principal components, with one factor that makes the mean square of an entry 1.

    Nothing looks at labels. Fit it on offline rows alone.

    Parameters
    ----------
    image : (height, width) or (height, width, channels)
        Shape of an image; rows are flattened in that order.
    patches : int
        Clusters of patches.
    size : int, optional
        Side of a patch in pixels; by default a third of the image, between 3 and 6.
    stride : int, optional
        From one patch to the next in pixels; by default 1, or 2 for sides above 16.
    components : int or None
        Principal components, at most as many as there are rows to fit; None keeps all columns, four
        for each patch, and four for each channel of coloured images.
    sample : int
        Patches that are drawn to find the clusters.
    random_state : int
        Fixes the drawn patches and the clusters.

    Attributes
    ----------
    n_features_in_ : int
    centres_ : ndarray, (patches, size * size * channels)

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:200]
    >>> PatchFeatures((8, 8), patches=20, components=30).fit(X).transform(X[:5]).shape
    (5, 30)
    """

    def __init__(
        self,
        image: Sequence[int],
        *,
        patches: int = 256,
        size: int | None = None,
        stride: int | None = None,
        components: int | None = 192,
        sample: int = 40_000,
        random_state: int = 0,
    ) -> None:
        self.image = image
        self.patches = patches
        self.size = size
        self.stride = stride
        self.components = components
        self.sample = sample
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> PatchFeatures:
        """Find the clusters and the components; ``y`` is not looked at.

        Parameters
        ----------
        X : array_like, (n, height * width * channels), or images as they are
        """
        self._check_settings()
        images = self._images(X)
        self.n_features_in_ = int(np.prod(images.shape[1:]))
        rng = np.random.default_rng(check_integer(self.random_state, "random_state", least=0))
        with threadpool_limits(1):  # the same bits on every number of cores
            self._find_centres(self._draw(images, rng), rng)
            pooled = self._pooled(images)
            self._mean = pooled.mean(axis=0, dtype=np.float64).astype(np.float32)
            spread = pooled.std(axis=0, dtype=np.float64)
            self._spread = np.where(spread > 0, spread, 1).astype(np.float32)
            self._find_turn((pooled - self._mean) / self._spread)
        return self

    def transform(self, X: ArrayLike) -> Float32Array:
        """Return the features, shape (n, components), float32.

        Parameters
        ----------
        X : array_like, (n, height * width * channels), or images as they are
        """
        check_is_fitted(self, "centres_")
        with threadpool_limits(1):
            rows = (self._pooled(self._images(X)) - self._mean) / self._spread
            if self._turn is not None:
                rows = self._turn.transform(rows)
        found: Float32Array = (rows / self._scale).astype(np.float32)
        return found

    def _check_settings(self) -> None:
        shape = tuple(self.image)
        if len(shape) not in (2, 3):
            raise InputError(f"image is {shape}; give (height, width) or (height, width, channels)")
        height, width = (check_integer(n, "a side of image", least=1) for n in shape[:2])
        side = min(height, width)
        default = min(_LARGEST_PATCH, max(_SMALLEST_PATCH, side // 3))
        self._size = check_integer(default if self.size is None else self.size, "size", least=1)
        step = (2 if side > _SMALL_IMAGE else 1) if self.stride is None else self.stride
        self._stride = check_integer(step, "stride", least=1)
        if side < self._size + self._stride:
            raise InputError(
                f"an image of {height} x {width} has no two patches of size {self._size} side by "
                f"side, {self._stride} apart; give a smaller size or stride"
            )
        check_integer(self.patches, "patches", least=2)
        check_integer(self.sample, "sample", least=self.patches)
        if self.components is not None:
            check_integer(self.components, "components", least=1)

    def _images(self, X: ArrayLike) -> AnyArray:
        shape = (*self.image, 1)[:3]
        rows = np.asarray(X)
        wanted = int(np.prod(shape))
        if (
            rows.ndim < 2
            or not len(rows)
            or rows[0].size != wanted
            or rows.dtype.kind not in "fiub"
        ):
            size = " x ".join(map(str, shape))
            raise InputError(
                f"X has shape {rows.shape} and type {rows.dtype}; images of {size} are rows of "
                f"{wanted} numbers"
            )
        if rows.dtype.kind == "f" and not np.isfinite(rows).all():
            raise InputError("X holds NaN or infinite values; fill or drop those images")
        return rows.reshape(len(rows), *shape)

    def _windows(self, images: AnyArray) -> AnyArray:
        """All patches as a view, (n, rows, columns, channels, size, size)."""
        view = sliding_window_view(images, (self._size, self._size), axis=(1, 2))
        return view[:, :: self._stride, :: self._stride]

    def _draw(self, images: AnyArray, rng: np.random.Generator) -> Float32Array:
        windows = self._windows(images)
        places = [rng.integers(0, size, self.sample) for size in windows.shape[:3]]
        drawn: Float32Array = windows[tuple(places)].reshape(self.sample, -1).astype(np.float32)
        return drawn

    def _find_centres(self, drawn: Float32Array, rng: np.random.Generator) -> None:
        self._floor = float(_FLAT * drawn.var(axis=1).mean())
        if self._floor == 0:
            raise InputError("every patch that was drawn is flat: the images hold nothing")
        normal = _normalised(drawn, self._floor)
        self._middle = normal.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(normal, rowvar=False))
        whiten = (vectors / np.sqrt(np.maximum(values, 0) + _SMOOTH)) @ vectors.T
        self._whiten = whiten.astype(np.float32)
        seed = int(rng.integers(2**31))
        clusters = KMeans(self.patches, n_init=1, max_iter=_PASSES, random_state=seed)
        self.centres_ = clusters.fit((normal - self._middle) @ self._whiten).cluster_centers_

    def _find_turn(self, rows: AnyArray) -> None:
        self._turn: Any = None
        number = min(self.components or rows.shape[1], *rows.shape)
        if self.components is not None and number < rows.shape[1]:
            self._turn = PCA(number, svd_solver="covariance_eigh").fit(rows)
            rows = self._turn.transform(rows)
        size = float(np.sqrt(np.mean(np.square(rows, dtype=np.float64))))
        self._scale = np.float32(size if size > 0 else 1.0)

    def _pooled(self, images: AnyArray) -> Float32Array:
        parts = [
            np.hstack([self._activations(some), *_colours(some)]) for some in self._pieces(images)
        ]
        return np.concatenate(parts)

    def _pieces(self, images: AnyArray) -> Iterator[AnyArray]:
        places = int(np.prod(self._windows(images[:1]).shape[1:3]))
        step = max(1, _ROOM // (places * self.patches))
        for first in range(0, len(images), step):
            yield images[first : first + step]

    def _activations(self, images: AnyArray) -> Float32Array:
        """How near each quarter is to each centre, (n, 4 * patches)."""
        windows = self._windows(images)
        n, down, across = windows.shape[:3]
        flat = windows.reshape(n * down * across, -1).astype(np.float32)
        white = (_normalised(flat, self._floor) - self._middle) @ self._whiten
        squares = np.einsum("nd,nd->n", white, white)[:, None] - 2 * (white @ self.centres_.T)
        squares += np.einsum("kd,kd->k", self.centres_, self.centres_)
        far = np.sqrt(np.maximum(squares, 0, out=squares), out=squares)
        near = far.mean(axis=1, keepdims=True) - far
        np.maximum(near, 0, out=near)
        return _quarters(near.reshape(n, down, across, -1))


def _normalised(patches: Float32Array, floor: float) -> Float32Array:
    """Patches without their brightness and contrast."""
    centred = patches - patches.mean(axis=1, keepdims=True)
    size = np.sqrt(np.einsum("nd,nd->n", centred, centred) / centred.shape[1] + floor)
    normal: Float32Array = centred / size[:, np.newaxis].astype(np.float32)
    return normal


def _quarters(values: AnyArray) -> Float32Array:
    """Means over the four quarters of (n, rows, columns, k), as (n, 4 k)."""
    down, across = values.shape[1] // 2, values.shape[2] // 2
    halves = (values[:, :down], values[:, down:])
    parts = [
        part.mean(axis=(1, 2), dtype=np.float32)
        for half in halves
        for part in (half[:, :, :across], half[:, :, across:])
    ]
    return np.hstack(parts)


def _colours(images: AnyArray) -> list[Float32Array]:
    return [_quarters(images)] if images.shape[3] > 1 else []
