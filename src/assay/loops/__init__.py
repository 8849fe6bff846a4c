"""Compiled block functions that more than one room uses; imported when a learner first fits."""
