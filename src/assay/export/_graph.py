"""A small builder of ONNX graphs: each call adds a node and returns the name of its output."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""Versions of the operators: the oldest with everything that is needed, so that old runtimes read the file too."""
_ROOM, _TIMES = 2**22, 16  # numbers of a graph beside the model's own: so many, and so many for each of these


class Scores(NamedTuple):
    """A value of the graph, doubles (rows, width)."""

    value: str
    width: int


class Graph:
    """Nodes, constants, inputs and outputs of a graph; no value but an input has one of the names that are `taken`.

    What is not an array of the model but is made of its sizes is asked for by `need`; it may have as many numbers as
    `stored` ones allow, so that a small file makes a small graph.

    >>> graph = Graph()
    >>> x = graph.input("X", 2)
    >>> graph.output("variable", graph.product(x, np.ones((2, 1))), (1,))
    >>> [node.op_type for node in graph.model({}).graph.node]
    ['MatMul', 'Identity']
    """

    def __init__(self, taken: Collection[str] = (), stored: int = 0) -> None:
        self._taken = frozenset(taken)
        self._room = _ROOM + _TIMES * stored
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, columns: int, kind: int = TensorProto.DOUBLE) -> str:
        """Declare an input (rows, columns) and return its name."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, [None, columns]))
        return name

    def output(self, name: str, value: str, shape: tuple[int | None, ...], kind: int = TensorProto.DOUBLE) -> None:
        """Declare a value as an output of the graph; `shape` is that of one row. A name that is taken gets a `_`."""
        while name in self._taken:
            name += "_"
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, [None, *shape]))

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Return the name of a constant."""
        name = self._free(f"c{len(self.constants)}")
        array = np.asarray(values)
        array = array.astype(object) if array.dtype.kind in "UO" else array.astype(dtype)
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def node(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node; inputs that are not names of values are constants of double precision."""
        name = self._free(f"v{len(self.nodes)}")
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(operator, names, [name], domain=domain, **attributes))
        return name

    def _free(self, name: str) -> str:
        """Return the name, behind dots if it is taken."""
        while name in self._taken:
            name = f".{name}"
        return name

    def need(self, numbers: int) -> None:
        """Refuse a graph of far more numbers than the model has."""
        self._room -= numbers
        if self._room < 0:
            raise ValueError("the ONNX graph of this model would be far larger than the model.")

    def product(self, left: Any, right: Any) -> str:
        """Return the matrix product."""
        return self.node("MatMul", left, right)

    def affine(self, x: str, weights: np.ndarray, offset: Any) -> str:
        """Return x W + b."""
        return self.node("Add", self.product(x, weights), offset)

    def total(self, x: str, axis: int = 1, keep: bool = True) -> str:
        """Return the sum along an axis."""
        return self.node("ReduceSum", x, self.constant([axis], np.int64), keepdims=int(keep))

    def columns(self, x: str, places: Sequence[int]) -> str:
        """Return some columns of x (rows, columns)."""
        return self.node("Gather", x, self.constant(places, np.int64), axis=1)

    def join(self, parts: Sequence[str]) -> str:
        """Return columns side by side."""
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def reshape(self, x: str, *shape: int) -> str:
        """Return x in another shape; 0 keeps an axis and -1 is what is left."""
        return self.node("Reshape", x, self.constant(shape, np.int64))

    def cast(self, x: str, kind: int) -> str:
        return self.node("Cast", x, to=kind)

    def numbers(self, x: str) -> str:
        """Return integers or truth values as doubles."""
        return self.cast(x, TensorProto.DOUBLE)

    def argmax(self, x: str) -> str:
        """Return the position of the largest entry of each row, the first of equals, as (rows,)."""
        return self.node("ArgMax", x, axis=1, keepdims=0, select_last_index=0)

    def sorted(self, x: str, size: int) -> tuple[str, str]:
        """Return the entries of each row in increasing order, and their positions."""
        names = (self._free(f"v{len(self.nodes)}"), self._free(f"v{len(self.nodes)}p"))
        inputs = [x, self.constant([size], np.int64)]
        self.nodes.append(helper.make_node("TopK", inputs, list(names), axis=1, largest=0, sorted=1))
        return names

    def one_hot(self, positions: str, size: int) -> str:
        """Return 1 at each position and 0 elsewhere."""
        self.need(size * size)
        return self.node("Gather", np.eye(size), positions, axis=0)

    def squared_distances(self, x: str, points: np.ndarray) -> str:
        """Return |x - p|^2 to each of the points, from differences: large squares do not cancel."""
        apart = self._differences(x, points)
        return self.total(self.node("Mul", apart, apart), axis=2, keep=False)

    def absolute_distances(self, x: str, points: np.ndarray) -> str:
        """Return the sum of |x_j - p_j| to each of the points."""
        return self.total(self.node("Abs", self._differences(x, points)), axis=2, keep=False)

    def _differences(self, x: str, points: np.ndarray) -> str:
        """Return x - p, (rows, points, columns)."""
        return self.node("Sub", self.node("Unsqueeze", x, self.constant([1], np.int64)), points[None])

    def leaves(self, x: str, trees: int, **attributes: Any) -> str:
        """Return the number that each tree gives to the leaf of a row, (rows, trees) int64.

        The operator sums in single precision, which is exact for numbers of leaves, so that values are looked up."""
        result = self.node("TreeEnsembleRegressor", x, domain="ai.onnx.ml", n_targets=trees, **attributes)
        return self.cast(result, TensorProto.INT64)

    def model(self, metadata: dict[str, str]) -> Any:
        """Return the checked ONNX model."""
        graph = helper.make_graph(self.nodes, "assay", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = helper.make_model_gen_version(graph, opset_imports=opsets, producer_name="assay")
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return model
