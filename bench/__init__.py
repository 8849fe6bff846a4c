"""Assay beside its peers: same data, one process, equal quality printed beside the time.

python -m bench linear [--quick]     least squares, ridge, logistic regression; certify and verify
python -m bench parquet              a Parquet file larger than the memory the process may use
python -m bench validity             do the probabilistic claims hold? (simulation at release size)
python -m bench neural               networks: loss and time beside scikit-learn's
"""
