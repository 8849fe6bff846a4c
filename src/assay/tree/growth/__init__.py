"""Growing trees: from rows to nodes, for single trees and for ensembles. `_growers` says which grower serves what.

    _exact, _exact_loops          complete numeric columns, every threshold, codes counted or sorted
    _exact, _general_loops        the same with missing values, several outputs, absolute errors
    _sorted, _sorted_loops        columns sorted once, dense or sparse
    _extra_loops                  a drawn threshold per column: extremely randomised trees
    _hist_classifier, _regressor  rows in bins, counts or sums per bin: the trees of forests
    _nominal, _nominal_loops      nominal columns, missing values, gain ratio
    _absolute                     absolute errors, exact medians
    _hist_grower, _hist_loops     rows in bins, gradients summed per bin, leaf by leaf: the trees of boosting
    _levels, _stumps              trees of gradient boosting, level by level; the best stump under weights

The first five are splitters of one builder (`_builder`): it says which node comes next and where its children lie, and
gets from a splitter compiled parts that sum a node's rows, find its best split by a criterion (`_criteria`), and divide
its rows. Records of nodes, limits and splits, and the way back to nodes, are in `_records`.
"""
