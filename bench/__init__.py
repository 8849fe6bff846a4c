"""Assay beside its peers: same data, one process, equal quality printed beside the time.

python -m bench linear [--quick]     least squares, ridge, logistic regression; certify and verify
python -m bench parquet              a Parquet file larger than the memory the process may use
python -m bench claims               do the probabilistic claims hold? (simulation at release size)
python -m bench validity             is what a study prints true? (the whole main job on worlds with known truth)
python -m bench neural               networks: loss and time beside scikit-learn's
"""

import os

os.environ.setdefault("ASSAY_LOOKS", "off")  # tables are learnt again and again, and nobody chooses by what comes of it
