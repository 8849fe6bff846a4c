"""From a table to a certified model: `learn` fits every suitable learner and chooses by certified risk."""

from assay.learning.choice import TASKS, Candidate, Result, learn, percent
from assay.learning.model import TableModel

__all__ = ["TASKS", "Candidate", "Result", "TableModel", "learn", "percent"]
