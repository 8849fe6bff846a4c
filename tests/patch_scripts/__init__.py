"""Scripts of the kind in scikit-learn's gallery and user guide, written for these tests: each cell `# %%` is one, ends
in numbers, `result`, and says how far these may differ with Assay's classes (1e-4 unless told, of which `rtol` and
`atol` in its heading; "long": with --long alone): what is drawn at random is drawn in another order there."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Script:
    """A script by its title, with how far its numbers may differ."""

    title: str
    text: str
    rtol: float
    atol: float
    long: bool

    def run(self, rows: int | None = None) -> np.ndarray:
        """Run it, with so many rows where it makes them itself, and return its numbers."""
        text = self.text if rows is None else re.sub(r"^N = \d+$", f"N = {rows}", self.text, flags=re.M)
        space: dict[str, Any] = {"__name__": "__main__"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, self.title, "exec"), space)
        return np.asarray(space["result"], dtype=float)


def scripts() -> Iterator[Script]:
    """Yield all of them."""
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        for cell in path.read_text(encoding="utf-8").split("# %% ")[1:]:
            heading, _, text = cell.partition("\n")
            told = dict(re.findall(r"([ra]tol)=(\S+)", heading))
            given = {name: float(told.get(name, 1e-4)) for name in ("rtol", "atol")}
            yield Script(heading.partition("  ")[0], text, long=heading.endswith(" long"), **given)
