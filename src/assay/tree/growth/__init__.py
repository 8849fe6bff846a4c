"""Growing trees: from rows to nodes, for single trees and for ensembles. `_growers` says which grower serves what.

    _exact, _exact_loops          complete numeric columns, every threshold, codes counted or sorted
    _exact, _general_loops        the same with missing values, several outputs, absolute errors
    _sorted, _sorted_loops        columns sorted once, dense or sparse
    _extra, _extra_loops          a drawn threshold per column: extremely randomised trees
    _nominal, _nominal_loops      nominal columns, missing values, gain ratio
    _absolute                     absolute errors, exact medians
    _hist_classifier, _regressor  rows in bins, counts or sums per bin: the trees of forests (`_forest_hist`)
    _hist_grower, _hist_loops     rows in bins, gradients summed per bin, leaf by leaf: the trees of boosting
    _levels, _stumps              trees of gradient boosting, level by level; the best stump under weights

A compiled grower is made of three roles: a criterion (`_criteria`), a splitter of its own, and the builder
(`_frontier`): records of nodes, of limits and of splits, which node comes next, where its children lie.
"""
