"""Pictures as matrices of numbers, and what is told of a small part of one.

A key point is a place of a regular grid; its descriptor says what the patch of `size` x `size` pixels there looks like:

    patch      the pixels less their mean, divided by their length
    gradient   for each of cells x cells parts of the patch a histogram of the direction of the brightness gradient, in
               which a pixel counts the length of its gradient, shared between the two nearest directions; all of them
               divided by their length

Neither changes when a constant is added to all pixels. A patch without any contrast has the descriptor 0.
"""

import itertools
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from assay.base import Learner
from assay.params import Choice, Count, check, refuse

GREY = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in brightness (ITU-R BT.601)."""
DESCRIPTORS = ("gradient", "patch")


def as_image(picture: Any, *, grey: bool = True, flat: bool = False) -> np.ndarray:
    """Return a picture as numbers in [0, 1]: (height, width); grey=False: (height, width, channels); flat: as a row.

    Whole numbers are taken as 0..255, others must lie in [0, 1] already. A fourth channel (opacity) is left out.

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
    """
    n, height, width = images.shape
    rows, columns = grid((height, width), size, step)
    if how == "patch":
        views = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))[:, ::step, ::step]
        found = views.reshape(n, rows * columns, size * size).astype(np.float64)
        found = found - found.mean(axis=2, keepdims=True)
    else:
        found = _histograms(images, size, step, bins, cells)
    length = np.linalg.norm(found, axis=2, keepdims=True)
    return np.divide(found, length, out=np.zeros_like(found), where=length > 1e-12)


def grid(shape: tuple[int, int], size: int, step: int) -> tuple[int, int]:
    """Return how many patches stand below and beside each other: 1 + floor((side - size) / step) each way.

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
    found = np.concatenate(parts, axis=3).reshape(n, rows * columns, -1)
    return np.where(found < 1e-12 * length.max(initial=1.0), 0.0, found)


class PictureLearner(TransformerMixin, Learner):
    """Mixin of transformers of grey pictures of one size: (n, height, width), colours as a last dimension, or rows of
    pixels with the parameter `shape`."""

    shape: Any
    size: int
    step: int
    shape_: np.ndarray
    constraints: ClassVar[dict[str, Any]] = {"size": Count(), "step": Count()}

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
        images = np.stack([as_image(one) for one in values])
        if reset:
            self.shape_ = np.array(images.shape[1:])
            self.n_features_in_ = int(np.prod(self.shape_))
            if min(grid(images.shape[1:], self.size, self.step)) < 1:
                raise refuse(self, f"patches of size {self.size} do not fit in pictures of {images.shape[1:]}.")
        elif images.shape[1:] != tuple(self.shape_):
            raise refuse(self, f"it was fitted to pictures of {tuple(self.shape_)}; got {images.shape[1:]}.")
        return images

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
    constraints: ClassVar = {"descriptor": Choice(*DESCRIPTORS), "bins": Count(low=2), "cells": Count()}

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
        return np.array(grid(tuple(self.shape_), self.size, self.step))

    def describe(self, X: Any) -> np.ndarray:
        """Return the descriptors, (n, patches, length)."""
        check_is_fitted(self)
        return descriptors(self._images(X), self.size, self.step, self.descriptor, bins=self.bins, cells=self.cells)

    def transform(self, X: Any) -> np.ndarray:
        """Return the descriptors of all patches of a picture as one row."""
        found = self.describe(X)
        return found.reshape(len(found), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return a name for each column: patch and number."""
        check_is_fitted(self)
        length = self.size**2 if self.descriptor == "patch" else self.bins * self.cells**2
        return np.array([f"patch{i}_{j}" for i in range(int(self.grid_.prod())) for j in range(length)], dtype=object)
