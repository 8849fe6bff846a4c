"""Write credit.csv, an invented table of loans: `python -m assay.datasets.make_credit FOLDER`.

Nothing in it is about real people. Each of the 1,000 rows is a loan with eight columns (age, income in
thousands a year, loan in thousands, months to repay, housing, job, history, late payments so far) and the
target `default`. The true rule, which a learner should find, is that the log-odds of default are

    -2.2 + 0.8 loan / income + 0.02 (months - 24) + 0.7 late
         + 1.0 [history = poor] - 0.8 [history = good] + 0.5 [housing = rent] - 0.02 (age - 40)

and that `job` plays no part. Afterwards 6 % of the incomes and 4 % of the histories are erased at random.
"""

import csv
import sys
from pathlib import Path

import numpy as np

SEED = 20_240_229
N_ROWS = 1_000
COLUMNS = ["age", "income", "loan", "months", "housing", "job", "history", "late", "default"]


def log_odds(age, income, loan, months, housing, history, late):
    """Return the true log-odds of default."""
    return (
        -2.2
        + 0.8 * loan / income
        + 0.02 * (months - 24)
        + 0.7 * late
        + 1.0 * (history == "poor")
        - 0.8 * (history == "good")
        + 0.5 * (housing == "rent")
        - 0.02 * (age - 40)
    )


def credit() -> list[list[str]]:
    """Return the rows of the table as text, empty where a value is missing."""
    rng = np.random.default_rng(SEED)
    age = rng.integers(19, 76, N_ROWS)
    income = np.round(np.exp(rng.normal(3.6, 0.45, N_ROWS)), 1)
    loan = np.round(np.exp(rng.normal(2.5, 0.8, N_ROWS)), 1)
    months = rng.choice([6, 12, 18, 24, 36, 48, 60], N_ROWS)
    housing = rng.choice(["own", "rent", "free"], N_ROWS, p=[0.5, 0.38, 0.12])
    job = rng.choice(["skilled", "manager", "unskilled", "self-employed"], N_ROWS, p=[0.5, 0.15, 0.2, 0.15])
    history = rng.choice(["poor", "fair", "good"], N_ROWS, p=[0.2, 0.45, 0.35])
    late = rng.poisson(0.5, N_ROWS)
    chance = 1 / (1 + np.exp(-log_odds(age, income, loan, months, housing, history, late)))
    default = np.where(rng.random(N_ROWS) < chance, "yes", "no")
    columns = (age, income, loan, months, housing, job, history, late, default)
    table = [[str(value) for value in row] for row in zip(*columns, strict=True)]
    for column, share in ((COLUMNS.index("income"), 0.06), (COLUMNS.index("history"), 0.04)):
        for row in np.flatnonzero(rng.random(N_ROWS) < share):
            table[row][column] = ""
    return table


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "credit.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *credit()])


if __name__ == "__main__":
    main()
