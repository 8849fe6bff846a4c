"""The checker of certificates: the mathematics of the claims again, in plain NumPy, apart from the code that made them.

    verify.py       the order of the check; rows.py passes over the rows, fingerprinted each time
    record.py       the record and its ledger; identity.py fingerprints of data, near copies; numerics.py rounding
    rule.py         what a rule is; facts.py the rules that every family has (data.identity to train.error-floor)
    bounds/         rules of statements about new data that several families share
    family.py       what a family is, and how one is found; families/<name>.py arrays, predictor, claims of each
    predictors.py   what a predictor is; rules/ rules and predictors of the families
    audit.py        which of these lines one verdict rests on; verdict.py what is said in the end

It imports the format of claims, the blocks of `assay.data`, NumPy and SciPy, and nothing else of Assay.
"""
