"""Solvers over callables, and the duality gaps that measure how far from the optimum an answer is."""
