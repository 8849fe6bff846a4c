"""An image in few colours: k-means finds a palette, each pixel keeps the number of its nearest colour
===================================================================================================

Run `python examples/image_colours.py [photo.png small.png]`; without names a picture is made up. A second name writes
the image in few colours (needs matplotlib).
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from assay.cluster import KMeans


class Compressed(NamedTuple):
    """A palette (k, channels) and the number of each pixel's colour (height, width)."""

    palette: np.ndarray
    numbers: np.ndarray

    def decoded(self) -> np.ndarray:
        """Return the image of palette colours, (height, width, channels)."""
        return self.palette[self.numbers]

    def bits(self) -> int:
        """Return the length of palette and numbers: 8 bits a channel, ceil(log2 k) bits a pixel."""
        return 8 * self.palette.size + self.numbers.size * max(1, math.ceil(math.log2(len(self.palette))))


def compress(image: np.ndarray, k: int, seed: int = 0) -> tuple[Compressed, KMeans]:
    """Return the image (height, width, channels) in k colours, and the clustering of its pixels."""
    pixels = image.reshape(-1, image.shape[-1]).astype(np.float64)
    model = KMeans(k, random_state=seed).fit(pixels)
    return Compressed(model.cluster_centers_, model.labels_.reshape(image.shape[:2])), model


def picture(size: int = 96) -> np.ndarray:
    """Return a made-up image: a sunset over water with noise."""
    y, x = np.mgrid[0:size, 0:size] / size
    sky = np.stack([0.9 - 0.3 * y, 0.5 - 0.2 * y + 0.2 * x, 0.4 + 0.4 * y], axis=2)
    water = np.stack([0.1 + 0.1 * x, 0.2 + 0.1 * x, 0.4 + 0.2 * x], axis=2)
    image = np.where((y < 0.6)[..., None], sky, water)
    image[(x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.02] = (1.0, 0.85, 0.3)
    return np.clip(image + 0.02 * np.random.default_rng(0).normal(size=image.shape), 0, 1)


def main(source: str | None = None, target: str | None = None) -> None:
    image = picture() if source is None else _read(source)
    plain = 8 * image.size
    for k in (2, 4, 8, 16, 32):
        small, model = compress(image, k)
        error = float(np.mean(np.sum((image - small.decoded()) ** 2, axis=2)))
        print(f"{k:3d} colours: mean squared error {error:.5f}, {plain / small.bits():.1f} times fewer bits")
    floor = model.certify(image.reshape(-1, image.shape[-1])).find("kmeans.lower-bound")
    if floor is not None:
        pixels = image.shape[0] * image.shape[1]
        print(f"no {k} colours have a mean squared error below {floor.value / pixels:.5f} (proved)")
    if target is not None:
        from matplotlib.image import imsave

        imsave(target, np.clip(small.decoded(), 0, 1))


def _read(source: str) -> np.ndarray:
    from matplotlib.image import imread

    image = np.asarray(imread(source), dtype=np.float64)[..., :3]
    return image / 255 if image.max() > 1 else image


if __name__ == "__main__":
    main(*sys.argv[1:3])
