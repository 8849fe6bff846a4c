"""From a table to a certified model: `learn` chooses by cross-validation, in the time given, and certifies once."""

from assay.learning.folded import FoldMean, FoldVote
from assay.learning.metrics import Metric
from assay.learning.model import TableModel
from assay.learning.search import Candidate
from assay.learning.spaces import TASKS
from assay.learning.study import Study, learn
from assay.learning.verdict import percent

__all__ = ["TASKS", "Candidate", "FoldMean", "FoldVote", "Metric", "Study", "TableModel", "learn", "percent"]
