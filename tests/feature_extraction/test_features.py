"""Texts, pictures and contours as features, against scikit-learn, counts by hand and invariants."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import assay
from assay.datasets import film_review
from assay.feature_extraction import (
    LETTERS,
    BagOfVisualWords,
    DensePatches,
    Dictionary,
    FourierContour,
    as_image,
    curve,
    descriptors,
    fourier,
    grid,
)
from assay.kernels import HistogramIntersection, definiteness
from assay.linear_model import LogisticRegression
from assay.svm import SVC
from examples import elephant
from examples import pictures as gallery
from examples.pictures import textures

TEXTS = ["The cat sat, the dog ran.", "A dog and a cat", "no animals; 3 cars", "Das Café hat 2 Katzen"]


class TestWords:
    @pytest.mark.mission("FEA-01")
    def test_one_hot_and_back(self):
        book = Dictionary().fit(TEXTS)
        for j, word in enumerate(book.words_):
            assert np.array_equal(book.one_hot(word), np.eye(len(book.words_))[j])
            assert book.word(book.one_hot(word)) == word
        with pytest.raises(ValueError, match="not in the dictionary"):
            book.one_hot("zebra")
        for code in (np.zeros(len(book.words_)), np.ones(len(book.words_)), [1.0]):
            with pytest.raises(ValueError, match="a code has"):
                book.word(code)

    @pytest.mark.mission("FEA-02")
    def test_the_dictionary_is_sorted_and_limited(self):
        book = Dictionary().fit(TEXTS)
        assert book.words_.tolist() == sorted(book.words_) == Dictionary().fit(TEXTS[::-1]).words_.tolist()
        assert Dictionary(min_df=2).fit(TEXTS).words_.tolist() == ["cat", "dog"]
        assert Dictionary(min_df=0.5).fit(TEXTS).words_.tolist() == ["cat", "dog"]
        assert set(Dictionary(max_df=1).fit(TEXTS).words_) == set(book.words_) - {"cat", "dog"}
        with pytest.raises(ValueError, match="no word is left"):
            Dictionary(min_df=4).fit(TEXTS)
        with pytest.raises(ValueError, match="not one text"):
            Dictionary().fit("a text")
        with pytest.raises(ValueError, match="is a int"):
            Dictionary().fit(["a", 3])
        for bad in ({"ngram_range": (2, 1)}, {"min_df": -1}, {"max_df": 1.5}, {"analyzer": "sound"}):
            with pytest.raises(ValueError, match=r"must be"):
                Dictionary(**bad).fit(TEXTS)

    @pytest.mark.mission("FEA-03")
    @pytest.mark.parametrize(
        "options", [{}, {"ngram_range": (1, 2)}, {"min_df": 2}, {"analyzer": "char", "ngram_range": (1, 3)}], ids=str
    )
    def test_bags_are_those_of_scikit_learn(self, options):
        theirs = CountVectorizer(token_pattern=LETTERS, **options).fit(TEXTS)
        ours = Dictionary(**options).fit(TEXTS)
        assert ours.words_.tolist() == theirs.get_feature_names_out().tolist()
        fresh = [*TEXTS, "the unknown cat", ""]
        assert (ours.transform(fresh) != theirs.transform(fresh)).nnz == 0

    @pytest.mark.mission("FEA-04")
    def test_the_film_review(self):
        text, printed = film_review()
        book = Dictionary().fit([text])
        counts = dict(zip(book.words_.tolist(), book.transform([text]).toarray()[0].astype(int).tolist()))
        assert {word: counts[word] for word in printed} == printed
        assert len(printed) == 18
        assert max(counts, key=lambda word: counts[word]) == "it"


class TestPictures:
    @pytest.mark.mission("FEA-06")
    def test_numbers_of_a_picture(self):
        colours = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype(np.uint8)
        grey = as_image(colours)
        assert grey.shape == (4, 5)
        assert grey == pytest.approx(colours @ [0.299, 0.587, 0.114] / 255)
        assert as_image(colours, grey=False).shape == (4, 5, 3)
        assert np.array_equal(as_image(colours, flat=True), grey.ravel())
        assert np.array_equal(as_image(np.dstack([colours, colours[:, :, :1]])), grey)
        assert as_image(colours[:, :, :1]).shape == (4, 5)
        assert 0 <= grey.min() <= grey.max() <= 1
        for bad in (np.ones(3), np.ones((2, 2, 5)), np.array([["a"]]), np.full((2, 2), 1.5), np.full((2, 2), np.nan),
                    np.full((2, 2), 300), np.full((2, 2), -1)):  # fmt: skip
            with pytest.raises(ValueError, match="as_image"):
                as_image(bad)

    @pytest.mark.mission("FEA-07")
    @pytest.mark.parametrize(("size", "step"), [(8, 4), (5, 1), (12, 12), (7, 3)])
    def test_the_grid_has_as_many_patches_as_the_formula(self, size, step):
        pictures = np.random.default_rng(0).random((2, 24, 30))
        starts = [(i, j) for i in range(0, 24 - size + 1, step) for j in range(0, 30 - size + 1, step)]
        found = DensePatches(size, step, descriptor="patch").fit(pictures)
        assert int(found.grid_.prod()) == len(starts)
        assert grid((24, 30), size, step) == tuple(found.grid_)
        for k, (i, j) in enumerate(starts):
            patch = pictures[1, i : i + size, j : j + size].ravel()
            patch = patch - patch.mean()
            assert found.describe(pictures)[1, k] == pytest.approx(patch / np.linalg.norm(patch))

    @pytest.mark.mission("FEA-08")
    @pytest.mark.parametrize("how", ["patch", "gradient"])
    def test_descriptors_have_unit_length_and_ignore_brightness(self, how):
        pictures = 0.5 * np.random.default_rng(0).random((3, 20, 20))
        found = descriptors(pictures, 8, 4, how)
        assert np.linalg.norm(found, axis=2) == pytest.approx(1.0)
        assert descriptors(pictures + 0.3, 8, 4, how) == pytest.approx(found, abs=1e-9)
        assert descriptors(1.7 * pictures, 8, 4, how) == pytest.approx(found, abs=1e-9)
        assert not descriptors(np.full((1, 20, 20), 0.4), 8, 4, how).any()

    @pytest.mark.mission("FEA-08")
    def test_a_slope_points_its_way(self):
        slope = np.tile(np.arange(16) / 16, (16, 1))  # brighter to the right: direction 0
        for picture, direction in ((slope, 0), (slope.T, 2), (slope[:, ::-1], 4), (slope.T[::-1], 6)):
            found = descriptors(picture[None], 8, 4, bins=8, cells=1)[0]
            inner = found[4]  # the middle of 3 x 3 patches
            assert inner[direction] == pytest.approx(1.0)

    @pytest.mark.mission("FEA-09", "FEA-10")
    def test_the_dictionary_is_k_means_and_words_are_nearest(self):
        pictures, _ = textures()
        found = BagOfVisualWords(7, levels=0, size=6, step=3, random_state=0).fit(pictures)
        patches = descriptors(pictures, 6, 3)
        flat = patches.reshape(-1, patches.shape[2])
        assert found.vocabulary_.shape == (7, flat.shape[1])
        distance = ((flat[:, None] - found.vocabulary_) ** 2).sum(axis=2)
        assert np.array_equal(found.words_of(pictures).ravel(), distance.argmin(axis=1))
        nearest = distance.argmin(axis=1)
        means = np.stack([flat[nearest == k].mean(axis=0) for k in range(7)])
        assert means == pytest.approx(found.vocabulary_, abs=1e-2)

    @pytest.mark.mission("FEA-11", "FEA-12")
    @pytest.mark.parametrize("levels", [0, 1, 2])
    def test_the_pyramid_sums_up(self, levels):
        pictures, _ = textures(12)
        k = 6
        found = BagOfVisualWords(k, levels=levels, size=4, step=2, random_state=0).fit(pictures)
        rows = found.transform(pictures)
        assert rows.shape == (12, k * sum(4**level for level in range(levels + 1)))
        assert rows.sum(axis=1) == pytest.approx(1.0)
        words = found.words_of(pictures)
        whole = np.stack([np.bincount(row, minlength=k) / words.shape[1] for row in words])
        assert rows[:, :k] * 2**levels == pytest.approx(whole)
        start = k
        for level in range(1, levels + 1):
            part = rows[:, start : start + k * 4**level] * 2.0 ** (levels - level + 1)
            assert part.reshape(12, -1, k).sum(axis=1) == pytest.approx(whole)
            start += k * 4**level
        assert len(found.get_feature_names_out()) == rows.shape[1]

    def test_the_cell_is_that_of_the_middle_of_the_patch(self):
        pictures, _ = textures(3)
        found = BagOfVisualWords(5, levels=2, size=5, step=3, random_state=0).fit(pictures)
        words = found.words_of(pictures).reshape(3, *grid((24, 24), 5, 3))
        cells = np.zeros((3, 4, 4, 5))
        for i, j in np.ndindex(words.shape[1:]):
            for n in range(3):
                cells[n, int((3 * i + 2.5) * 4 / 24), int((3 * j + 2.5) * 4 / 24), words[n, i, j]] += 1
        assert found.transform(pictures)[:, -80:] == pytest.approx(0.5 * cells.reshape(3, -1) / words[0].size)

    @pytest.mark.mission("FEA-13", "FEA-14")
    def test_textures_are_told_apart_by_a_pipeline(self):
        pictures, kind = textures(90)
        model = make_pipeline(
            BagOfVisualWords(20, levels=1, size=6, step=3, random_state=0), SVC(kernel=HistogramIntersection(), C=10.0)
        )
        model = clone(model).fit(pictures[:60], kind[:60])
        assert model.score(pictures[60:], kind[60:]) == 1.0
        search = GridSearchCV(model, {"bagofvisualwords__words": [2, 10], "svc__C": [1.0, 10.0]}, cv=2)
        search.fit(pictures[:60], kind[:60])
        assert search.score(pictures[60:], kind[60:]) > 0.95

    def test_pictures_in_clusters(self, capsys):
        """Without labels, words put pictures of one texture together (000 l.212)."""
        found = gallery.compare()
        assert found.purity > 0.9
        assert found.similar > 0.95  # the most similar picture is of the same texture
        assert found.accuracy == 1.0
        gallery.main()
        assert "clusters" in capsys.readouterr().out

    def test_rows_of_pixels_are_pictures_too(self):
        pictures, _ = textures(10)
        found = BagOfVisualWords(4, levels=0, size=6, step=3, random_state=0).fit(pictures)
        assert np.array_equal(found.transform(pictures.reshape(10, -1)), found.transform(pictures))
        wide = DensePatches(4, 4, shape=(12, 48)).fit(pictures.reshape(10, -1))
        assert wide.grid_.tolist() == [3, 12]
        with pytest.raises(ValueError, match="pass shape="):
            DensePatches(4, 4).fit(np.zeros((2, 30)))
        with pytest.raises(ValueError, match="do not fit"):
            DensePatches(40).fit(pictures)
        with pytest.raises(ValueError, match="was fitted to pictures"):
            wide.transform(pictures)
        with pytest.raises(ValueError, match="different patches"):
            BagOfVisualWords(10).fit(np.zeros((2, 28, 28)))

    def test_threads_change_no_bit(self):
        pictures, _ = textures(300, side=16)
        one, two = (
            BagOfVisualWords(8, size=4, step=4, random_state=0, n_jobs=k).fit_transform(pictures) for k in (1, 2)
        )
        assert np.array_equal(one, two)


class TestKernel:
    def test_intersection(self):
        rng = np.random.default_rng(0)
        X, Z = rng.dirichlet(np.ones(9), 40), rng.dirichlet(np.ones(9), 7)
        kernel = HistogramIntersection()
        assert kernel(X, Z) == pytest.approx(np.minimum(X[:, None], Z[None]).sum(axis=2))
        assert kernel(X, Z) == pytest.approx(1 - 0.5 * np.abs(X[:, None] - Z[None]).sum(axis=2))
        assert kernel.diagonal(X) == pytest.approx(np.diag(kernel(X)))
        assert definiteness(kernel(X)).psd
        with pytest.raises(ValueError, match="no negative entries"):
            kernel(-X)

    def test_a_machine_with_it_is_stored(self, tmp_path):
        X, y = load_digits(return_X_y=True)
        X, y = X[:120], y[:120] % 2
        model = SVC(kernel=HistogramIntersection()).fit(X, y)
        assay.save(model, tmp_path / "m.assay")
        assert np.array_equal(assay.load(tmp_path / "m.assay").model.predict(X), model.predict(X))


@pytest.mark.mission("FEA-28")
class TestContours:
    def test_band_limited_curves_come_back(self):
        rng = np.random.default_rng(0)
        t = 2 * np.pi * np.arange(41) / 41
        c = rng.normal(size=(6, 2, 8)) + 1j * rng.normal(size=(6, 2, 8))
        c[..., 0] = c[..., 0].real
        curves = curve(c, t)
        assert fourier(curves, 7) == pytest.approx(c)
        points = curves.transpose(0, 2, 1)
        found = FourierContour(7).fit(points)
        assert found.coefficients(points) == pytest.approx(c)
        assert found.inverse_transform(found.transform(points)) == pytest.approx(points)
        assert found.transform(curves.reshape(6, -1)) == pytest.approx(found.transform(points))

    def test_a_shorter_series_is_the_nearest(self):
        rng = np.random.default_rng(1)
        points = rng.normal(size=(1, 30, 2))
        t = 2 * np.pi * np.arange(30) / 30
        columns = [np.ones(30), *(f(j * t) for j in range(1, 5) for f in (np.cos, np.sin))]
        best = np.linalg.lstsq(np.stack(columns, axis=1), points[0], rcond=None)[0]
        found = FourierContour(4).fit(points)
        assert found.transform(points)[0] == pytest.approx(np.concatenate([best[:, 0], best[:, 1]]))
        with pytest.raises(ValueError, match="frequencies up to 14"):
            FourierContour(15).fit(points)
        with pytest.raises(ValueError, match="curves have shape"):
            FourierContour(2).fit(np.zeros((3, 7)))
        with pytest.raises(ValueError, match="fitted to curves of 30"):
            found.transform(np.zeros((1, 20, 2)))

    def test_the_elephant_gives_its_parameters_back(self):
        assert elephant.recovered() == pytest.approx(elephant.PARAMETERS)


@pytest.mark.mission("FEA-14")
@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (Dictionary(), TEXTS),
        (DensePatches(4, 4), textures(8)[0]),
        (BagOfVisualWords(4, size=6, step=3, random_state=0), textures(8)[0]),
        (FourierContour(3), np.random.default_rng(0).normal(size=(5, 12, 2))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_transformers_clone_store_and_name_their_columns(model, rows, tmp_path):
    model = clone(model).fit(rows)
    first = model.transform(rows)
    assay.save(model, tmp_path / "t.assay")
    again = assay.load(tmp_path / "t.assay").model
    dense = [part.toarray() if hasattr(part, "toarray") else part for part in (first, again.transform(rows))]
    assert np.array_equal(*dense)
    assert len(model.get_feature_names_out()) == first.shape[1]
    if not hasattr(first, "toarray"):
        frame = model.set_output(transform="pandas").transform(rows)
        assert list(frame.columns) == model.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="nothing to certify"):
        model.certify(rows)


@pytest.mark.mission("FEA-14")
def test_words_in_a_pipeline_are_searched():
    texts = ["good fine", "bad dull", "fine good film", "dull bad film"] * 6
    moods = ["up", "down"] * 12
    search = GridSearchCV(
        make_pipeline(Dictionary(), LogisticRegression()), {"dictionary__ngram_range": [(1, 1), (1, 2)]}, cv=3
    ).fit(texts, moods)
    assert search.best_score_ == 1.0
