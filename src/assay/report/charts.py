"""Small figures as SVG elements, for the report and for the studio.

Colours are classes of the style sheet, so that a figure follows the light or dark page it stands on. Every text goes
through `tag`, which escapes it; characters that cannot be seen are written as their escapes.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from assay.text import shown

COLOURS = 8
"""Classes c0 .. c7 of the style sheet."""


class Series(NamedTuple):
    """A line of a chart; `low` and `high` are the edges of a band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dots: bool = False


def tag(name: str, content: Any = "", **attributes: Any) -> Markup:
    """Return an element; `class_` is class, `_` in a name is -, None leaves an attribute out."""
    parts = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = content if isinstance(content, Markup) else escape(shown(content))
    return Markup(f"<{name}{parts}>{inner}</{name}>")


def group(parts: Iterable[Markup], **attributes: Any) -> Markup:
    """Return elements as one."""
    return tag("g", Markup("").join(parts), **attributes)


def picture(parts: Iterable[Markup], across: float, down: float, label: str, **attributes: Any) -> Markup:
    """Return an SVG with its label for those who cannot see it."""
    inner = Markup("").join([tag("title", label), *parts])
    return tag("svg", inner, viewBox=f"0 0 {across:g} {down:g}", role="img", class_="chart", **attributes)


def cut(text: object, most: int = 24) -> str:
    """Return text of at most so many characters."""
    words = shown(text)
    return words if len(words) <= most else words[: most - 1] + "…"


def _attribute(value: Any) -> str:
    if isinstance(value, (float, int)):
        return f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(shown(value))


class Axes:
    """A plotting area with scales, ticks and labels."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        width: float = 460,
        height: float = 280,
        log_x: bool = False,
    ) -> None:
        self.width, self.height, self.log_x = width, height, log_x
        self.left, self.right, self.top, self.bottom = 52.0, width - (34.0 if log_x else 12.0), 26.0, height - 40.0
        self.x_range, self.y_range = _apart(x), _apart(y)

    def x(self, value: float) -> float:
        low, high = self.x_range
        if self.log_x:
            low, high, value = math.log(low), math.log(high), math.log(max(value, 1e-300))
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 2)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - self.top), 2)

    def frame(self, x_label: str, y_label: str, *, percent_y: bool = False) -> list[Markup]:
        """Return grid, ticks and labels."""
        parts = []
        for value in ticks(*self.y_range):
            at = self.y(value)
            parts.append(tag("line", x1=self.left, x2=self.right, y1=at, y2=at, class_="grid"))
            text = f"{100 * value:.4g} %" if percent_y else f"{value:.4g}"
            parts.append(tag("text", text, x=self.left - 6, y=at + 4, class_="tick end"))
        for value in log_ticks(*self.x_range) if self.log_x else ticks(*self.x_range):
            text = f"{value:,.0f}" if self.log_x else f"{value:.4g}"
            parts.append(tag("text", text, x=self.x(value), y=self.bottom + 16, class_="tick middle"))
        parts.append(tag("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis"))
        middle = (self.left + self.right) / 2
        parts.append(tag("text", cut(x_label, 60), x=middle, y=self.height - 6, class_="label middle"))
        parts.append(tag("text", cut(y_label, 40), x=4.0, y=12.0, class_="label"))
        return parts

    def inside(self, parts: Iterable[Markup]) -> Markup:
        """Return marks of which nothing reaches beyond the area, but for the half of a point at its edge."""
        edge, wide, high = 6.0, self.right - self.left + 12.0, self.bottom - self.top + 12.0
        place = {"x": self.left - edge, "y": self.top - edge, "width": wide, "height": high}
        view = f"{self.left - edge:g} {self.top - edge:g} {wide:g} {high:g}"
        return tag("svg", Markup("").join(parts), viewBox=view, **place)

    def path(self, x: Sequence[float], y: Sequence[float], class_: str) -> Markup:
        points = " ".join(f"{self.x(a):g},{self.y(b):g}" for a, b in zip(x, y) if math.isfinite(a) and math.isfinite(b))
        return tag("polyline", points=points, class_=class_)

    def band(self, series: Series, class_: str) -> Markup:
        assert series.low is not None
        assert series.high is not None
        there = [f"{self.x(a):g},{self.y(b):g}" for a, b in zip(series.x, series.high)]
        back = [f"{self.x(a):g},{self.y(b):g}" for a, b in zip(series.x, series.low)]
        return tag("polygon", points=" ".join([*there, *reversed(back)]), class_=class_)


def _apart(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = float(ends[0]), float(ends[1])
    if not math.isfinite(low) or not math.isfinite(high):
        return 0.0, 1.0
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers between two ends.

    >>> ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    step = 10 ** math.floor(math.log10((high - low) / about))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= about * 1.2)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten between two ends."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**i for i in range(first, last + 1)] or [low, high]


def spark(counts: Sequence[int], label: str) -> Markup:
    """Return a histogram without axes, for a table."""
    width, height = 120.0, 32.0
    most = max([*counts, 1])
    step = width / max(len(counts), 1)
    bars = [
        tag("rect", x=i * step + 0.5, y=height - size, width=max(step - 1, 0.5), height=size, class_="c0")
        for i, count in enumerate(counts)
        if (size := height * count / most) > 0
    ]
    return picture(bars, width, height, label, width=int(width), height=int(height))


def lines(
    series: Sequence[Series],
    label: str,
    axes: tuple[str, str],
    *,
    percent_y: bool = False,
    log_x: bool = False,
    diagonal: bool = False,
    mark: float | None = None,
    y_range: tuple[float, float] | None = None,
) -> Markup:
    """Return lines with bands, a legend, and a vertical mark."""
    xs = [value for sequence in series for value in sequence.x]
    ys = [
        value
        for sequence in series
        for part in (sequence.y, sequence.low, sequence.high)
        if part is not None
        for value in part
    ]
    ys = [value for value in ys if math.isfinite(value)] or [0.0, 1.0]
    area = Axes((min(xs), max(xs)), y_range or (min(ys), max(ys)), log_x=log_x)
    parts = area.frame(*axes, percent_y=percent_y)
    if diagonal:
        parts.append(area.path(area.x_range, area.x_range, "line dashed soft"))
    for i, sequence in enumerate(series):
        colour = f"c{i % COLOURS}"
        if sequence.low is not None and sequence.high is not None:
            parts.append(area.band(sequence, f"band {colour}"))
        parts.append(area.path(sequence.x, sequence.y, f"line s{i % COLOURS}"))
        if sequence.dots:
            parts += [
                tag("circle", cx=area.x(a), cy=area.y(b), r=3, class_=colour) for a, b in zip(sequence.x, sequence.y)
            ]
    if mark is not None:
        at = area.x(mark)
        parts.append(tag("line", x1=at, x2=at, y1=area.top, y2=area.bottom, class_="mark"))
    drawn = picture(parts, area.width, area.height, label)
    return drawn if len(series) < 2 else drawn + legend([item.name for item in series])


def legend(names: Sequence[str]) -> Markup:
    """Return a list of names with their colours."""
    square = {"width": 10, "height": 10}
    keys = (
        tag(
            "li",
            tag("svg", tag("rect", class_=f"c{i % COLOURS}", **square), aria_hidden="true", **square)
            + Markup(" ")
            + tag("span", cut(name, 48)),
        )
        for i, name in enumerate(names)
    )
    return tag("ul", Markup("").join(keys), class_="legend")


def bars(
    names: Sequence[str],
    values: Sequence[float],
    label: str,
    axis: str,
    *,
    low: Sequence[float] | None = None,
    high: Sequence[float] | None = None,
) -> Markup:
    """Return horizontal bars, with intervals if their ends are given."""
    line, left, width = 24.0, 170.0, 460.0
    places = [0.0, *values, *(low or ()), *(high or ())]
    least, most = _apart((min(places), max(places)))

    def x(value: float) -> float:
        return round(left + (value - least) / (most - least) * (width - left - 16), 2)

    parts = [tag("line", x1=x(0.0), x2=x(0.0), y1=2, y2=line * len(names) + 2, class_="axis")]
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        top = i * line + 4
        parts.append(tag("text", cut(name, 26), x=left - 8, y=top + 13, class_="tick end"))
        begin, end = sorted((x(0.0), x(value)))
        colour = "c0" if value >= 0 else "c1"
        ends = f", {low[i]:.4g} – {high[i]:.4g}" if low is not None and high is not None else ""
        here = tag("title", f"{name}: {value:.4g}{ends}")
        parts.append(tag("rect", here, x=begin, y=top, width=max(end - begin, 0.5), height=line - 8, class_=colour))
        if low is not None and high is not None:
            middle = top + (line - 8) / 2
            parts.append(tag("line", x1=x(low[i]), x2=x(high[i]), y1=middle, y2=middle, class_="whisker"))
    bottom = line * len(names) + 16
    for value in ticks(least, most, 4):
        parts.append(tag("text", f"{value:.3g}", x=x(value), y=bottom, class_="tick middle"))
    parts.append(tag("text", axis, x=(left + width) / 2, y=bottom + 18, class_="label middle"))
    return picture(parts, width, bottom + 24, label)


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]], heads: tuple[str, str]) -> Markup:
    """Return a table of true (down) and predicted (across) classes, shaded by the share of the row."""
    table = np.asarray(counts, dtype=float)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    first = tag("th", Markup("{} \\ {}").format(*heads), scope="col")
    head = tag("tr", first + Markup("").join(tag("th", cut(name), scope="col", class_="n") for name in labels))
    rows = [
        tag(
            "tr",
            tag("th", cut(name), scope="row")
            + Markup("").join(
                tag("td", f"{int(table[i, j]):,}", class_=f"n heat{round(9 * shares[i, j])}")
                for j in range(len(labels))
            ),
        )
        for i, name in enumerate(labels)
    ]
    body = tag("thead", head) + tag("tbody", Markup("").join(rows))
    return tag("div", tag("table", body, class_="confusion"), class_="scroll", tabindex="0", role="group")


def dots(x: Sequence[float], y: Sequence[float], label: str, axes: tuple[str, str]) -> Markup:
    """Return points, with a line at height zero."""
    area = Axes((min(x), max(x)), (min(y), max(y)))
    parts = area.frame(*axes)
    parts.append(tag("line", x1=area.left, x2=area.right, y1=area.y(0.0), y2=area.y(0.0), class_="axis"))
    parts += [tag("circle", cx=area.x(a), cy=area.y(b), r=2.5, class_="c0 faint") for a, b in zip(x, y)]
    return picture(parts, area.width, area.height, label)


def network(layers: Sequence[int], label: str, most: int = 8) -> Markup:
    """Return the layers of a network as columns of units; of a wide layer the first few."""
    width, height, parts, places = 460.0, 220.0, [], []
    for i, size in enumerate(layers):
        x = 50 + i * (width - 100) / max(len(layers) - 1, 1)
        drawn = min(size, most)
        places.append([(x, height / 2 + (k - (drawn - 1) / 2) * 22) for k in range(drawn)])
        parts.append(tag("text", f"{size:,}", x=x, y=height - 4, class_="label middle"))
    edges = [
        tag("line", x1=a[0], y1=a[1], x2=b[0], y2=b[1], class_="grid")
        for left, right in pairwise(places)
        for a in left
        for b in right
    ]
    units = [tag("circle", cx=x, cy=y, r=7, class_="c0") for layer in places for x, y in layer]
    return picture([*edges, *units, *parts], width, height, label)


def tree(nodes: Sequence[dict[str, Any]], label: str) -> Markup:
    """Return the upper levels of a tree: conditions above the nodes that they lead to, answers in the nodes."""
    step, level = 140.0, 84.0
    width = step * (1 + max(node["x"] for node in nodes))
    places = [(step * (node["x"] + 0.5), 26 + level * node["depth"]) for node in nodes]
    edges, boxes = [], []
    for node, (x, y) in zip(nodes, places, strict=True):
        if node["parent"] >= 0:
            above = places[node["parent"]]
            edges.append(tag("line", x1=above[0], y1=above[1] + 14, x2=x, y2=y - 30, class_="grid"))
            boxes.append(tag("text", cut(node["condition"], 22), x=x, y=y - 18, class_="tick middle"))
        colour = f"region c{node['code'] % COLOURS}"
        boxes.append(tag("rect", x=x - 56, y=y - 13, width=112, height=26, rx=5, class_=colour))
        says = cut(node["says"], 14) + (" …" if node["more"] else "")
        boxes.append(tag("text", says, x=x, y=y + 4, class_="tick middle"))
    height = 52 + level * max(node["depth"] for node in nodes)
    drawn = picture([*edges, *boxes], width, height, label, width=int(width), height=int(height))
    return tag("div", drawn, class_="scroll", tabindex="0", role="group")


def scene(answer: dict[str, Any], frame: dict[str, Any], label: str) -> Markup:
    """Return one step of an algorithm: points by class, and whatever the step has of regions, lines, rings, centres,
    ellipses and paths."""
    points, parts = answer["points"], []
    area = Axes(tuple(answer["x_range"]), tuple(answer["y_range"]), width=560, height=400)
    parts += [_cells(area, answer["cells"], *run) for run in frame.get("regions", ())]
    parts += [_cells(area, answer["cells"], i, j, k, 0, shade) for i, j, k, shade in frame.get("surface", ())]
    colours, sizes = frame.get("codes", answer["codes"]), frame.get("sizes", [3.2] * len(points))
    rings = set(frame.get("rings", ()))
    for i, (x, y) in enumerate(points if "surface" not in frame else ()):
        place, size = {"cx": area.x(x), "cy": area.y(y)}, float(sizes[i])
        parts.append(tag("circle", r=size, class_=f"c{colours[i] % COLOURS} faint", **place))
        if i in rings:
            parts.append(tag("circle", r=size + 3, class_="ring", **place))
    for line in frame.get("lines", ()):
        parts.append(area.path([line[0][0], line[1][0]], [line[0][1], line[1][1]], "border"))
    for k, outline in enumerate(frame.get("ellipses", ())):
        parts.append(area.path([p[0] for p in outline], [p[1] for p in outline], f"hollow s{k % COLOURS}"))
    if frame.get("path"):
        parts.append(area.path([p[0] for p in frame["path"]], [p[1] for p in frame["path"]], "border"))
    for k, (x, y) in enumerate(frame.get("centres", ())):
        parts.append(tag("rect", x=area.x(x) - 7, y=area.y(y) - 7, width=14, height=14, class_=f"c{k % COLOURS}"))
        parts.append(tag("circle", cx=area.x(x), cy=area.y(y), r=3, class_="cross c7"))
    return picture([*area.frame(answer["x"], answer["y"]), area.inside(parts)], area.width, area.height, label)


def _cells(area: Axes, n: int, i: int, j: int, k: int, code: int, shade: float | None = None) -> Markup:
    """Return the cells j .. k - 1 of column i of an n by n grid, coloured by class or shaded by a value in [0, 1]."""
    (x0, x1), (y0, y1) = area.x_range, area.y_range
    left, right = (area.x(x0 + (x1 - x0) * at / n) for at in (i, i + 1))
    bottom, top = (area.y(y0 + (y1 - y0) * at / n) for at in (j, k))
    size = {"x": left, "y": top, "width": round(right - left, 2), "height": round(bottom - top, 2)}
    if shade is not None:
        return tag("rect", class_="c0", fill_opacity=round(0.85 * shade, 3), **size)
    return tag("rect", class_=f"region c{code % COLOURS}", **size)
