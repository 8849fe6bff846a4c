"""Pictures as counts of visual words (Sivic and Zisserman 2003), with a pyramid of places (Lazebnik et al. 2006).

    dictionary   k centres of the descriptors of patches, by k-means
    word         of a patch: the nearest centre
    histogram    the share of each word among the patches of a picture, and of each of the 4^l cells of level l = 1..L

Level 0 counts 1 / 2^L, level l > 0 counts 1 / 2^(L - l + 1), so that a row sums to 1, and sum_j min(x_j, z_j) of two
rows (`kernels.HistogramIntersection`) is the pyramid match: words that agree in a small cell count more than words that
agree somewhere.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from assay.cluster import KMeans
from assay.feature_extraction._pictures import DESCRIPTORS, PictureLearner, descriptors, grid
from assay.fitlog import part_of_a_fit
from assay.params import Choice, Count, check, refuse
from assay.scan import thread_map

_PICTURES = 128  # in one go


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
        "bins": Count(low=2),
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
        found = np.concatenate(self._each(images[chosen], lambda part: part.reshape(-1, part.shape[2])))[: self.sample]
        if len(np.unique(found, axis=0)) < self.words:
            raise refuse(
                self,
                f"the pictures have {len(np.unique(found, axis=0))} different patches, fewer than words={self.words}.",
            )
        seed = int(random.randint(2**31 - 1))
        with part_of_a_fit():
            model = KMeans(self.words, max_iter=50, random_state=seed, n_jobs=self.n_jobs).fit(found)
        self.vocabulary_ = model.cluster_centers_
        return self

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
        found = self._words(self._images(X))
        n, k = len(found), len(self.vocabulary_)
        rows, columns = grid(tuple(self.shape_), self.size, self.step)
        out = []
        for level in range(self.levels + 1):
            side = 2**level
            weight = 2.0**-self.levels if level == 0 else 2.0 ** (level - self.levels - 1)
            cell = self._cells(rows, side, self.shape_[0])[:, None] * side + self._cells(columns, side, self.shape_[1])
            place = found + k * cell.ravel()
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
