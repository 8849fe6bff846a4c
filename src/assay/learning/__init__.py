"""From a table to a certified model: `learn` fits every suitable learner and chooses by certified risk."""

from assay.learning.choice import TASKS, Candidate, Study, learn, percent
from assay.learning.model import TableModel

__all__ = ["TASKS", "Candidate", "Study", "TableModel", "learn", "percent"]
