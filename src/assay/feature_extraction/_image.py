"""Features of images: patch descriptors, bags of visual words, and Fourier descriptors of contours.

A key point is a point of a regular grid; its descriptor describes the patch of `size` x `size` pixels around it:

    patch      the pixels minus their mean, divided by their norm
    gradient   for each of cells x cells parts of the patch a histogram of gradient orientations, weighted by the
               gradient's magnitude and interpolated between the two nearest bins; divided by the norm of all bins

Neither changes when a constant is added to all pixels. A patch without contrast has the descriptor 0.

`BagOfVisualWords` (Sivic and Zisserman 2003) counts visual words in a spatial pyramid (Lazebnik et al. 2006).

    vocabulary   k centres of the patch descriptors, by k-means
    word         of a patch: the nearest centre
    histogram    the share of each word among the patches of an image, and of each of the 4^l cells of level l = 1..L

Level 0 has weight 1 / 2^L, level l > 0 has 1 / 2^(L - l + 1), so that a row sums to 1, and sum_j min(x_j, z_j) of two
rows (`kernels.HistogramIntersection`) is the pyramid match kernel: words that match in a small cell count more.

The Fourier descriptor of a closed curve:

    x(t) = sum over k = 0..K of A_k cos kt + B_k sin kt,   y(t) likewise,   t = 2 pi i / m at point i of m

A_k and B_k are inner products of the points with cos kt and sin kt; K at most (m - 1) / 2. A curve with no higher
frequencies is reproduced exactly, any other by its least-squares approximation.
"""

import itertools
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.cluster import KMeans
from assay.fitlog import part_of_a_fit
from assay.params import Choice, Count, check, refuse
from assay.scan import thread_map

GREY = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in brightness (ITU-R BT.601)."""
MOST_NUMBERS = 2**25
"""Numbers that are computed for one picture, at most."""
DESCRIPTORS = ("gradient", "patch")
_PICTURES = 128  # in one go


def as_image(picture: Any, *, grey: bool = True, flat: bool = False) -> np.ndarray:
    """Return a picture as numbers in [0, 1]: (height, width); grey=False: (height, width, channels); flat: as a row.

    Whole numbers are taken as 0..255, others must lie in [0, 1] already. A fourth channel (opacity) is left out.

    Parameters
    ----------
    picture : array-like
        The picture.
    grey : bool, default=True
        Whether colours are averaged.
    flat : bool, default=False
        Whether the picture is returned as a row.

    Returns
    -------
    ndarray
        Numbers in [0, 1].

    Examples
    --------
    >>> as_image(np.array([[0, 255], [51, 102]], dtype=np.uint8)).tolist()
    [[0.0, 1.0], [0.2, 0.4]]
    >>> as_image(np.ones((2, 3, 3)), flat=True).shape
    (6,)
    """
    values = np.asarray(picture)
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] not in (1, 3, 4)) or not values.size:
        raise ValueError(
            f"as_image: a picture has shape (height, width), or (height, width, 1, 3 or 4); got {values.shape}."
        )
    if values.dtype.kind not in "iufb":
        raise ValueError(f"as_image: pixels must be numbers; got {values.dtype}.")
    highest = 255.0 if values.dtype.kind in "iu" else 1.0
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all() or numbers.min() < 0 or numbers.max() > highest:
        raise ValueError(
            f"as_image: pixels of type {values.dtype} must lie in [0, {highest:g}]; they reach from {numbers.min():g} "
            f"to {numbers.max():g}."
        )
    numbers = numbers / highest
    if numbers.ndim == 3:
        numbers = numbers[:, :, :3] if numbers.shape[2] == 4 else numbers
        if numbers.shape[2] == 1 or not grey:
            numbers = numbers[:, :, 0] if numbers.shape[2] == 1 else numbers
        else:
            numbers = numbers @ np.array(GREY)
    return numbers.ravel() if flat else numbers


def descriptors(
    images: np.ndarray, size: int, step: int, how: str = "gradient", *, bins: int = 8, cells: int = 2
) -> np.ndarray:
    """Return the descriptor of each patch of grey pictures (n, height, width): (n, patches, length).

    Patches come row by row; `grid` tells how many there are.

    Parameters
    ----------
    images : ndarray
        Grey pictures (n, height, width).
    size : int
        Side of a patch.
    step : int
        Distance of neighbouring patches.
    how : str, default="gradient"
        "gradient": histograms of the gradient; "patch": the pixels.
    bins : int, default=8
        Number of directions of the gradient.
    cells : int, default=2
        Number of cells along each side of a patch.

    Returns
    -------
    ndarray
        Array of shape (n, patches, length).
    """
    n, height, width = images.shape
    rows, columns = grid((height, width), size, step)
    if how == "patch":
        views = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))[:, ::step, ::step]
        result = views.reshape(n, rows * columns, size * size).astype(np.float64)
        result = result - result.mean(axis=2, keepdims=True)
    else:
        result = _histograms(images, size, step, bins, cells)
    length = np.linalg.norm(result, axis=2, keepdims=True)
    return np.divide(result, length, out=np.zeros_like(result), where=length > 1e-12)


def grid(shape: tuple[int, int], size: int, step: int) -> tuple[int, int]:
    """Return how many patches stand below and beside each other: 1 + floor((side - size) / step) each way.

    Parameters
    ----------
    shape : tuple of int
        Height and width of the picture.
    size : int
        Side of a patch.
    step : int
        Distance of neighbouring patches.

    Returns
    -------
    tuple of int
        Patches below and beside each other.

    Examples
    --------
    >>> grid((28, 28), 8, 4)
    (6, 6)
    """
    return tuple(1 + (side - size) // step if side >= size else 0 for side in shape)  # type: ignore[return-value]


def _histograms(images: np.ndarray, size: int, step: int, bins: int, cells: int) -> np.ndarray:
    """Return histograms of gradient directions over the cells of each patch, not yet divided by their length."""
    n, height, width = images.shape
    across, down = np.zeros(images.shape), np.zeros(images.shape)
    across[:, :, 1:-1] = images[:, :, 2:] - images[:, :, :-2]
    down[:, 1:-1] = images[:, 2:] - images[:, :-2]
    length = np.hypot(across, down)
    place = np.arctan2(down, across) * (bins / (2 * np.pi)) % bins
    low = np.floor(place).astype(np.int64) % bins
    share = place - np.floor(place)
    sums = np.zeros((n, height + 1, width + 1, bins))
    inner = sums[:, 1:, 1:]
    np.put_along_axis(inner, low[..., None], (length * (1 - share))[..., None], axis=3)
    high = (low + 1) % bins
    upper = np.take_along_axis(inner, high[..., None], axis=3) + (length * share)[..., None]
    np.put_along_axis(inner, high[..., None], upper, axis=3)
    sums = sums.cumsum(axis=1).cumsum(axis=2)
    rows, columns = grid((height, width), size, step)
    top, left = np.arange(rows) * step, np.arange(columns) * step
    edges = np.linspace(0, size, cells + 1).round().astype(int)
    parts = []
    for a, b in itertools.pairwise(edges):
        for c, d in itertools.pairwise(edges):
            corner = [sums[:, top + i][:, :, left + j] for i in (a, b) for j in (c, d)]
            parts.append(corner[3] - corner[2] - corner[1] + corner[0])
    result = np.concatenate(parts, axis=3).reshape(n, rows * columns, -1)
    return np.where(result < 1e-12 * length.max(initial=1.0), 0.0, result)


class PictureLearner(TransformerMixin, Learner):
    """Mixin of transformers of grey pictures of one size: (n, height, width), colours as a last dimension, or rows of
    pixels with the parameter `shape`."""

    shape: Any
    size: int
    step: int
    descriptor: str
    bins: int
    cells: int
    shape_: np.ndarray
    constraints: ClassVar[dict[str, Any]] = {"size": Count(high=2**26), "step": Count(high=2**26)}

    def _images(self, X: Any, *, reset: bool = False) -> np.ndarray:
        """Return the pictures as (n, height, width) in [0, 1]."""
        values = np.asarray(X)
        if values.dtype.kind not in "iufb":
            raise refuse(self, f"pictures are arrays of numbers; got {values.dtype}.")
        if values.ndim == 2:
            shape = self.shape if reset or not hasattr(self, "shape_") else self.shape_
            side = int(np.sqrt(values.shape[1]))
            shape = (side, side) if shape is None else tuple(int(part) for part in shape)
            if len(shape) != 2 or shape[0] * shape[1] != values.shape[1]:
                raise refuse(
                    self,
                    f"X has rows of {values.shape[1]} pixels, which are no {shape[0]} x {shape[-1]} picture; pass "
                    "shape=(height, width).",
                )
            values = values.reshape(len(values), *shape)
        if values.ndim not in (3, 4) or not len(values):
            raise refuse(
                self, f"pictures have shape (n, height, width), with colours as a fourth dimension; got {values.shape}."
            )
        images = np.stack([as_image(value) for value in values])
        if reset:
            self.shape_ = np.array(images.shape[1:])
            self.n_features_in_ = int(np.prod(self.shape_))
            self._check_size()
        elif images.shape[1:] != tuple(self.shape_):
            raise refuse(self, f"it was fitted to pictures of {tuple(self.shape_)}; got {images.shape[1:]}.")
        return images

    def _check_size(self) -> None:
        """Refuse patches that do not fit in the pictures, or that make too many numbers of one."""
        patches = grid(tuple(self.shape_.tolist()), self.size, self.step)
        if min(patches) < 1:
            raise refuse(self, f"patches of size {self.size} do not fit in pictures of {tuple(self.shape_.tolist())}.")
        if self.descriptor == "gradient" and self.cells > self.size:
            raise refuse(self, f"a patch of size {self.size} has no {self.cells} cells along a side.")
        made = patches[0] * patches[1] * self._length
        if made > MOST_NUMBERS:
            raise refuse(
                self,
                f"a picture would become {made} numbers, where {MOST_NUMBERS} are the most; take larger steps, "
                "or fewer bins or cells.",
            )

    @property
    def _length(self) -> int:
        """Numbers that describe a patch."""
        return self.size**2 if self.descriptor == "patch" else self.bins * self.cells**2

    def _derive(self) -> None:
        self._check_size()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = tags.input_tags.positive_only = True
        return tags


@dataclass(eq=False, repr=False)
class DensePatches(PictureLearner):
    """Descriptors of patches on a regular grid of key points.

    Parameters
    ----------
    size, step : int
        Side of a patch in pixels, and how far neighbouring ones are apart.
    descriptor : "gradient" or "patch"
    bins, cells : int
        Of "gradient": directions, and parts of a patch along each side.
    shape : (height, width) or None
        Of pictures that come as rows of pixels; None: they are square.

    Attributes
    ----------
    shape_ : (2,)
        Height and width.
    grid_ : (2,)
        Patches below and beside each other.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.feature_extraction import DensePatches
    >>> pictures = np.random.default_rng(0).random((2, 28, 28))
    >>> found = DensePatches(8, 4).fit(pictures)
    >>> found.grid_.tolist(), found.transform(pictures).shape, found.describe(pictures).shape
    ([6, 6], (2, 1152), (2, 36, 32))
    """

    family = "features.patches"
    constraints: ClassVar = {"descriptor": Choice(*DESCRIPTORS), "bins": Count(low=2, high=1024), "cells": Count()}

    size: int = 8
    step: int = 4
    _: KW_ONLY
    descriptor: str = "gradient"
    bins: int = 8
    cells: int = 2
    shape: Any = None

    def fit(self, X: Any, y: Any = None) -> "DensePatches":
        """Learn the size of the pictures."""
        check(self)
        self._images(X, reset=True)
        return self

    @property
    def grid_(self) -> np.ndarray:
        """Patches below and beside each other."""
        return np.array(grid(tuple(self.shape_), self.size, self.step))

    def describe(self, X: Any) -> np.ndarray:
        """Return the descriptors, (n, patches, length)."""
        check_is_fitted(self)
        return descriptors(self._images(X), self.size, self.step, self.descriptor, bins=self.bins, cells=self.cells)

    def transform(self, X: Any) -> np.ndarray:
        """Return the descriptors of all patches of a picture as one row."""
        result = self.describe(X)
        return result.reshape(len(result), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column: patch and number."""
        check_is_fitted(self)
        patches = int(self.grid_.prod())
        return np.array([f"patch{i}_{j}" for i in range(patches) for j in range(self._length)], dtype=object)


@dataclass(eq=False, repr=False)
class BagOfVisualWords(PictureLearner):
    """Histograms of visual words over the cells of a pyramid.

    Parameters
    ----------
    words : int
        Size k of the dictionary.
    levels : int >= 0
        L: the finest level has 2^L x 2^L cells; 0 is the histogram of the whole picture. A row has
        k (1 + 4 + ... + 4^L) entries.
    size, step, descriptor, bins, cells, shape
        Of the patches, as in `DensePatches`.
    sample : int
        Patches that the dictionary is learnt from, at most.
    random_state : int, RandomState or None
        Of the sample and of k-means.
    n_jobs : int or None
        Threads; None uses all cores. Changes the time, never a bit of the result.

    Attributes
    ----------
    vocabulary_ : (words, length of a descriptor)
    shape_ : (2,)

    Examples
    --------
    >>> import numpy as np
    >>> from assay.feature_extraction import BagOfVisualWords
    >>> pictures = np.random.default_rng(0).random((6, 16, 16))
    >>> rows = BagOfVisualWords(5, levels=1, size=4, step=2, random_state=0).fit_transform(pictures)
    >>> rows.shape, rows.sum(axis=1).round(12).tolist()
    ((6, 25), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """

    family = "features.visual-words"
    constraints: ClassVar = {
        "words": Count(low=2),
        "levels": Count(low=0),
        "descriptor": Choice(*DESCRIPTORS),
        "bins": Count(low=2, high=1024),
        "cells": Count(),
        "sample": Count(),
    }

    words: int = 100
    levels: int = 2
    _: KW_ONLY
    size: int = 8
    step: int = 4
    descriptor: str = "gradient"
    bins: int = 8
    cells: int = 2
    shape: Any = None
    sample: int = 50_000
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> "BagOfVisualWords":
        """Learn the dictionary from patches of the pictures."""
        check(self)
        images = self._images(X, reset=True)
        random = check_random_state(self.random_state)
        count = int(np.prod(grid(images.shape[1:], self.size, self.step)))
        few = max(1, min(len(images), -(-self.sample // count)))
        chosen = np.sort(random.choice(len(images), few, replace=False))
        result = np.concatenate(self._each(images[chosen], lambda part: part.reshape(-1, part.shape[2])))[: self.sample]
        if len(np.unique(result, axis=0)) < self.words:
            raise refuse(
                self,
                f"the pictures have {len(np.unique(result, axis=0))} different patches, fewer than words={self.words}.",
            )
        seed = int(random.randint(2**31 - 1))
        with part_of_a_fit():
            model = KMeans(self.words, max_iter=50, random_state=seed, n_jobs=self.n_jobs).fit(result)
        self.vocabulary_ = model.cluster_centers_
        return self

    def _check_size(self) -> None:
        super()._check_size()
        if self.levels > 12 or self.words * 4 ** (self.levels + 1) > MOST_NUMBERS:
            raise refuse(self, f"{self.words} words in the cells of {self.levels} levels are too many columns.")

    def _derive(self) -> None:
        super()._derive()
        if self.vocabulary_.shape != (self.words, self._length):
            raise refuse(self, f"vocabulary_ of shape {self.vocabulary_.shape} is none of {self.words} words.")

    def _each(self, images: np.ndarray, then: Any) -> list[Any]:
        """Return `then` of the descriptors of each batch of pictures."""

        def work(start: int) -> Any:
            part = images[start : start + _PICTURES]
            return then(descriptors(part, self.size, self.step, self.descriptor, bins=self.bins, cells=self.cells))

        return thread_map(work, range(0, len(images), _PICTURES), n_jobs=self.n_jobs)

    def words_of(self, X: Any) -> np.ndarray:
        """Return the number of the visual word of each patch, (n, patches)."""
        check_is_fitted(self)
        return self._words(self._images(X))

    def _words(self, images: np.ndarray) -> np.ndarray:
        half = 0.5 * np.square(self.vocabulary_).sum(axis=1)
        return np.concatenate(self._each(images, lambda found: (found @ self.vocabulary_.T - half).argmax(axis=2)))

    def transform(self, X: Any) -> np.ndarray:
        """Return the weighted histograms, (n, words (1 + 4 + ... + 4^levels)), level by level, cells row by row."""
        check_is_fitted(self)
        result = self._words(self._images(X))
        n, k = len(result), len(self.vocabulary_)
        rows, columns = grid(tuple(self.shape_), self.size, self.step)
        out = []
        for level in range(self.levels + 1):
            side = 2**level
            weight = 2.0**-self.levels if level == 0 else 2.0 ** (level - self.levels - 1)
            cell = self._cells(rows, side, self.shape_[0])[:, None] * side + self._cells(columns, side, self.shape_[1])
            place = result + k * cell.ravel()
            counts = np.zeros((n, k * side * side))
            np.add.at(counts, (np.arange(n)[:, None], place), 1.0)
            out.append(counts * (weight / (rows * columns)))
        return np.concatenate(out, axis=1)

    def _cells(self, count: int, side: int, pixels: int) -> np.ndarray:
        """Return the cell that the middle of each patch along one side lies in."""
        middle = np.arange(count) * self.step + self.size / 2
        return np.minimum((middle * side / pixels).astype(int), side - 1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column: level, cell, word."""
        check_is_fitted(self)
        places = [(level, cell) for level in range(self.levels + 1) for cell in range(4**level)]
        k = len(self.vocabulary_)
        return np.array([f"level{a}_cell{b}_word{j}" for a, b in places for j in range(k)], dtype=object)


def fourier(values: Any, k: int) -> np.ndarray:
    """Return A_j + i B_j, j = 0..k, of a function sampled at 2 pi i / m along the last axis.

    Parameters
    ----------
    values : array-like
        Samples along the last axis.
    k : int
        Largest frequency.

    Returns
    -------
    ndarray
        The coefficients.

    Examples
    --------
    >>> t = np.arange(8) * np.pi / 4
    >>> fourier(3 + 2 * np.cos(t) - np.sin(2 * t), 2).round(12).tolist()
    [(3+0j), (2+0j), -1j]
    """
    values = np.asarray(values, dtype=np.float64)
    m = values.shape[-1]
    if not 0 <= 2 * k < m:
        raise ValueError(f"fourier: {m} points carry frequencies up to {(m - 1) // 2}; got k = {k}.")
    result = np.conj(np.fft.rfft(values)[..., : k + 1]) * (2.0 / m)
    result[..., 0] /= 2.0
    return result + 0.0


def curve(coefficients: Any, t: Any) -> np.ndarray:
    """Return sum_k A_k cos kt + B_k sin kt at each t.

    Parameters
    ----------
    coefficients : array-like
        A_k + i B_k, k = 0, 1, ...
    t : array-like
        Where it is evaluated.

    Returns
    -------
    ndarray
        The value at each t.

    Examples
    --------
    >>> curve([0, 1j], [0.0, np.pi / 2]).round(12).tolist()
    [0.0, 1.0]
    """
    c, t = np.asarray(coefficients), np.asarray(t, dtype=np.float64)
    angle = np.multiply.outer(np.arange(c.shape[-1]), t)
    return np.real(c) @ np.cos(angle) + np.imag(c) @ np.sin(angle)


@dataclass(eq=False, repr=False)
class FourierContour(TransformerMixin, Learner):
    """The first Fourier coefficients of closed curves.

    Parameters
    ----------
    k : int >= 1
        Highest frequency kept.

    Attributes
    ----------
    points_ : int
        Points of each curve.

    Examples
    --------
    >>> import numpy as np
    >>> from assay.feature_extraction import FourierContour
    >>> t = np.arange(16) * np.pi / 8
    >>> circle = np.stack([np.cos(t), np.sin(t)], axis=1)[None]
    >>> found = FourierContour(1).fit(circle)
    >>> np.abs(found.transform(circle)).round(12).tolist(), found.get_feature_names_out().tolist()
    ([[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]], ['Ax0', 'Ax1', 'Bx1', 'Ay0', 'Ay1', 'By1'])
    >>> bool(np.allclose(found.inverse_transform(found.transform(circle)), circle))
    True
    """

    family = "features.contour"
    constraints: ClassVar = {"k": Count()}

    k: int = 5

    def fit(self, X: Any, y: Any = None) -> "FourierContour":
        """Learn the number of points of curves X, (n, points, 2), or (n, 2 points): first all x, then all y."""
        check(self)
        self.__dict__.pop("points_", None)
        curves = self._curves(X)
        self.points_ = curves.shape[2]
        self.n_features_in_ = 2 * self.points_
        self._derive()
        return self

    def _derive(self) -> None:
        if 2 * self.k >= self.points_:
            raise refuse(
                self, f"{self.points_} points carry frequencies up to {(self.points_ - 1) // 2}; got k={self.k}."
            )

    def _curves(self, X: Any) -> np.ndarray:
        """Return the curves as (n, 2, points)."""
        values = np.asarray(X, dtype=np.float64)
        if values.ndim == 2 and values.shape[1] % 2 == 0:
            values = values.reshape(len(values), 2, -1)
        elif values.ndim == 3 and values.shape[2] == 2:
            values = values.transpose(0, 2, 1)
        else:
            raise refuse(self, f"curves have shape (n, points, 2), or (n, 2 points); got {values.shape}.")
        if not np.isfinite(values).all():
            raise refuse(self, "a curve contains NaN or infinity.")
        if hasattr(self, "points_") and values.shape[2] != self.points_:
            raise refuse(self, f"it was fitted to curves of {self.points_} points; got {values.shape[2]}.")
        return values

    def transform(self, X: Any) -> np.ndarray:
        """Return A_0, A_1, B_1, ..., A_k, B_k of x, then of y, (n, 2 (2 k + 1))."""
        check_is_fitted(self)
        result = fourier(self._curves(X), self.k)
        pairs = np.stack([result.real, result.imag], axis=-1).reshape(*result.shape[:2], -1)
        return np.delete(pairs, 1, axis=2).reshape(len(result), -1)

    def coefficients(self, X: Any) -> np.ndarray:
        """Return the complex numbers A_k + i B_k of curves, (n, 2, k + 1)."""
        return self._complex(self.transform(X))

    def _complex(self, rows: Any) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 2 * (2 * self.k + 1):
            raise refuse(self, f"there are {2 * (2 * self.k + 1)} coefficients of a curve; got shape {rows.shape}.")
        pairs = np.insert(rows.reshape(len(rows), 2, -1), 1, 0.0, axis=2)
        return pairs[..., ::2] + 1j * pairs[..., 1::2]

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the curves of the coefficients, (n, points, 2)."""
        check_is_fitted(self)
        result = np.conj(self._complex(X)) * (self.points_ / 2.0)
        result[..., 0] *= 2.0
        return np.fft.irfft(result, self.points_).transpose(0, 2, 1)  # as `curve`, without a table of all cosines

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each coefficient."""
        check_is_fitted(self)
        each = ["A{}0", *(f"{letter}{{}}{j}" for j in range(1, self.k + 1) for letter in "AB")]
        return np.array([name.format(axis) for axis in "xy" for name in each], dtype=object)
