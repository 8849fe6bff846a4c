"""Growing trees: every way from rows to nodes, for single trees and for ensembles.

    _exact, _exact_loops          complete numeric columns, every split threshold tried, codes counted or sorted
    _hist_classifier, _regressor  rows in bins, counts or sums per bin: the trees of forests (`_forest_hist`)
    _hist_grower, _hist_loops     rows in bins, gradients summed per bin, leaf by leaf: the trees of boosting
    _extra_loops                  one threshold drawn per column: extremely randomised trees (`_forest_extra`)
    _nominal_missing, _splits     nominal columns, missing values, gain ratio, for single trees and forests
    _absolute                     absolute errors, exact medians
    _stumps, _directions          the best stump under weights; directions of oblique splits

A compiled grower is made of three roles: a criterion (`_criteria`), a splitter of its own, and the builder
(`_frontier`): records of nodes, of limits and of splits, which node comes next, where its children lie.
"""
