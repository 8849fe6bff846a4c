"""Measures of how far apart, or how alike, rows are. Scores of predictions are scikit-learn's, used as they are."""
