"""Definitions and algorithms as textbooks give them, for reading, teaching and testing; no learner depends on them.

decision            posterior, conditional risk, the Bayes rule and its error for Gaussian classes
risk                expected and empirical risk, bias and variance, regularised risk minimisation by ADMM
likelihood          maximum likelihood of a density given as a function
concepts            concepts, version spaces, rules, weak learning
learnability        PAC learnability by simulation, no free lunch, points on a sphere
description_length  minimum description length, arithmetic coding
linear              formulas of linear models
svm                 margins, the Lagrangian, Platt's SMO
"""
