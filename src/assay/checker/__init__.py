"""The mathematics of the claims again, in plain NumPy and apart from the code that made them.

`numerics` bounds the checker's own rounding, `identity` recomputes fingerprints, `predictors` reads models, `rule`
is what a rule is; `facts`, `duality`, `geometry` and `risk` hold the rules, `tails` and `classes` what they need.
"""
