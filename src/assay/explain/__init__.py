"""What a model of a table does on rows that it was not fitted to, and whether one is proved better than another."""

from assay.explain.attributions import Attributions, shapley
from assay.explain.comparison import Comparison, compare
from assay.explain.explanation import Explanation, explain, grouped

__all__ = ["Attributions", "Comparison", "Explanation", "compare", "explain", "grouped", "shapley"]
