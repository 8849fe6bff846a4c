"""How many rows, or what error: each theorem solved for the number of rows, and all of them side by side.

Closed forms are the textbook sample sizes. "Search" means the smallest n, by doubling and bisection, at
which the named bound reaches the target; the bound at the final n is the proof. epsilon is the error (or
excess error) wanted, delta the probability with which the statement may fail.

References: Blumer, Ehrenfeucht, Haussler and Warmuth 1989; Mohri, Rostamizadeh and Talwalkar 2018; Langford 2005.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from assay.messages import Message
from assay.theory import _checks as check
from assay.theory import pac, vc
from assay.theory.concentration import (
    clopper_pearson_upper,
    hoeffding_deviation,
    hoeffding_sample_size,
    kl_upper,
)
from assay.theory.spaces import Finite, Space
from assay.theory.stability import compression_bound

LogGrowth = Callable[[int], float]
LIMIT = 2**40


def smallest(holds: Callable[[int], bool], start: int = 1) -> int:
    """Return the smallest n >= start with holds(n), for a condition that stays true once it is.

    Parameters
    ----------
    holds : callable
        Condition on n that stays true once it is.
    start : int, default=1
        First n tried.

    Returns
    -------
    int
        The smallest n.
    """
    high = max(1, start)
    while not holds(high):
        high *= 2
        if high > LIMIT:
            raise ValueError(f"more than 2^40 = {LIMIT} rows would be needed; ask for a larger error or width.")
    low = high // 2 if high > start else start - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def vc_realizable_rows(epsilon: float, delta: float, d: int) -> int:
    """Return ceil(max{(4/epsilon) log2(2/delta), (8d/epsilon) log2(13/epsilon)}) (Blumer et al. 1989).

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    d : int
        VC dimension.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> vc_realizable_rows(0.1, 0.05, 3)
    1686
    """
    epsilon, delta, d = check.probability("epsilon", epsilon), check.failure(delta), check.whole("d", d)
    return check.ceil(max(4.0 * math.log2(2.0 / delta), 8.0 * d * math.log2(13.0 / epsilon)) / epsilon)


def growth_realizable_rows(epsilon: float, delta: float, log_growth: LogGrowth) -> int:
    """Return the smallest n with (2/n)(log2 Pi(2n) + log2(2/delta)) <= epsilon.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    log_growth : float or callable
        Logarithm of the growth function as a function of n, or a bound of it.

    Returns
    -------
    int
        Number of rows.
    """
    epsilon = check.probability("epsilon", epsilon)
    return smallest(lambda n: vc.realizable_growth_bound(n, delta, log_growth) <= epsilon)


def ghost_rows(epsilon: float, delta: float, log_growth: LogGrowth, *, training_error: float = 0.0) -> int:
    """Return the smallest n at which the ghost-sample bound is within epsilon of the planned training error.

    With training error p it asks that ceil(p n) errors in n rows prove an error rate of at most p + epsilon.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    log_growth : float or callable
        Logarithm of the growth function as a function of n, or a bound of it.
    training_error : float, default=0.0
        Share of training rows expected to be wrong; 0: the separable case.

    Returns
    -------
    int
        Number of rows.
    """
    epsilon = check.probability("epsilon", epsilon)
    p = check.number("training_error", training_error, low=0.0, high=1.0)
    return smallest(
        lambda n: vc.ghost_sample_bound(min(n, math.ceil(p * n)), n, log_growth, delta).bound <= p + epsilon
    )


def vc_agnostic_rows(epsilon: float, delta: float, d: int) -> int:
    """Return ceil(max{d ((32/e^2) ln(16/e^2) + 16/e^2), 2 ln(1/delta)/e^2}): L - L_n <= e for all h.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    d : int
        VC dimension.

    Returns
    -------
    int
        Number of rows.
    """
    e2 = check.probability("epsilon", epsilon) ** 2
    d, delta = check.whole("d", d), check.failure(delta)
    return check.ceil(max(d * (32.0 * math.log(16.0 / e2) + 16.0), -2.0 * math.log(delta)) / e2)


def massart_rows(epsilon: float, delta: float, log_growth: LogGrowth) -> int:
    """Return the smallest n with sqrt(2 ln Pi(n)/n) + sqrt(ln(1/delta)/(2n)) <= epsilon.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    log_growth : float or callable
        Logarithm of the growth function as a function of n, or a bound of it.

    Returns
    -------
    int
        Number of rows.
    """
    epsilon = check.probability("epsilon", epsilon)
    return smallest(lambda n: vc.massart_deviation(n, delta, log_growth) <= epsilon)


def erm_rows(epsilon: float, delta: float, d: int) -> int:
    """Return the smallest n after which empirical risk minimisation over VC dimension d is epsilon-optimal.

    The VC bound sqrt((8 d ln(2en/d) + 8 ln(4/delta))/n) at epsilon/2: true and empirical error differ by at
    most that for all h, so their minimisers differ by at most epsilon in true error. A finite VC dimension
    is thus learnable.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    d : int
        VC dimension.

    Returns
    -------
    int
        Number of rows.
    """
    half, d = check.probability("epsilon", epsilon) / 2.0, check.whole("d", d)
    return smallest(lambda n: vc.uniform_deviation(n, delta, lambda N: vc.log_sauer_simple(N, d)) <= half, start=d)


def margin_rows(epsilon: float, delta: float, scale: float, radius: float) -> int:
    """Return ceil(((2 s r + sqrt(ln(1/delta)/2))/epsilon)^2) for |w|/rho = s and |x| <= r.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    scale : float
        |w| / rho.
    radius : float
        Length of the longest row.

    Returns
    -------
    int
        Number of rows.
    """
    epsilon = check.probability("epsilon", epsilon)
    size = 2.0 * check.positive("scale", scale) * check.positive("radius", radius)
    return check.ceil(((size + math.sqrt(-math.log(check.failure(delta)) / 2.0)) / epsilon) ** 2)


def compression_rows(epsilon: float, delta: float, k: int, largest: int | None = None) -> int:
    """Return the smallest n at which k rows that rebuild a model without errors prove an error of epsilon.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    k : int
        Number of rows that rebuild the model.
    largest : int or None
        Largest size allowed in advance; None: any, at a price.

    Returns
    -------
    int
        Number of rows.
    """
    epsilon, k = check.probability("epsilon", epsilon), check.whole("k", k, low=0)
    return smallest(lambda n: compression_bound(0, n, k, delta, largest=largest) <= epsilon, start=k + 1)


def pac_bayes_rows(target: float, delta: float, loss: float, divergence: float) -> int:
    """Return the smallest n with kl_upper(loss, (divergence + ln(2 sqrt(n)/delta))/n) <= target.

    Parameters
    ----------
    target : float
        Bound to be reached.
    delta : float
        Probability with which the guarantee may fail.
    loss : float
        Mean training loss, in [0, 1].
    divergence : float
        KL divergence of posterior and prior, in nats.

    Returns
    -------
    int
        Number of rows.
    """
    target, log_delta = check.probability("target", target), math.log(check.failure(delta))
    if not check.number("loss", loss, low=0.0, high=1.0) < target:
        raise ValueError(f"target must exceed the planned loss; got target = {target}, loss = {loss}.")
    paid = check.number("divergence", divergence, low=0.0) - log_delta
    return smallest(lambda n: kl_upper(loss, (paid + math.log(2.0 * math.sqrt(n))) / n) <= target)


def conformal_rows(alpha: float, delta: float) -> int:
    """Return ceil(ln delta / ln(1-alpha)) scores: their maximum covers 1-alpha with chance 1-delta.

    Parameters
    ----------
    alpha : float
        Largest probability of a miss: 1 - coverage.
    delta : float
        Probability with which the guarantee may fail.

    Returns
    -------
    int
        Number of rows.

    Examples
    --------
    >>> [conformal_rows(alpha, 0.05) for alpha in (0.1, 0.05, 0.01)]
    [29, 59, 299]
    """
    return check.ceil(math.log(check.failure(delta)) / math.log1p(-check.probability("alpha", alpha)))


def rademacher_draws(accuracy: float, n: int, delta: float = 1e-6, bound: float = 1.0) -> int:
    """Return ceil(2 b^2 ln(1/delta)/(n t^2)) sign vectors for the one-sided accuracy t, |f| <= b.

    Parameters
    ----------
    accuracy : float
        Largest difference of mean and expectation.
    n : int
        Number of rows.
    delta : float, default=1e-06
        Probability with which the guarantee may fail.
    bound : float, default=1.0
        Largest absolute value of a function.

    Returns
    -------
    int
        Number of sign vectors.
    """
    accuracy, bound = check.positive("accuracy", accuracy), check.positive("bound", bound)
    return check.ceil(-2.0 * math.log(check.failure(delta)) * (bound / accuracy) ** 2 / check.whole("n", n))


class HoldoutRows(NamedTuple):
    """Hold-out rows: the first m that reaches the width, one from which all do, and two other bounds.

    Parameters
    ----------
    first : int
        Smallest m that reaches the width.
    safe : int
        From here on every m does.
    kl : int
        Rows by the kl bound.
    hoeffding : int
        Rows by Hoeffding's bound.
    """

    first: int
    safe: int
    kl: int
    hoeffding: int


def holdout_rows(width: float, delta: float, *, error: float = 0.0, candidates: int = 1) -> HoldoutRows:
    """Return the hold-out rows at which ceil(error m) errors prove a rate within `width` of the one seen.

    By Clopper-Pearson limits, which are not monotone in m since errors are whole numbers; by the kl bound; by
    Hoeffding's. The best of several candidates takes delta/candidates.

    Parameters
    ----------
    width : float
        Largest difference of bound and observed error rate.
    delta : float
        Probability with which the guarantee may fail.
    error : float, default=0.0
        Error rate expected.
    candidates : int, default=1
        Number of models among which the choice is made.

    Returns
    -------
    HoldoutRows
        Rows by each inequality.

    Examples
    --------
    >>> holdout_rows(0.02, 0.05, error=0.05)[::2]
    (471, 884)
    """
    width = check.probability("width", width)
    p = check.number("error", error, low=0.0, high=1.0)
    share = check.failure(delta) / check.whole("candidates", candidates)
    period = math.ceil(1.0 / p) if p > 0.0 else 1

    def reaches(m: int) -> bool:
        k = math.ceil(p * m - 1e-9)
        return k < m and clopper_pearson_upper(k, m, share) - k / m <= width

    start = smallest(lambda m: any(reaches(m + i) for i in range(period)))
    first = next(m for m in range(start, start + period) if reaches(m))
    safe = smallest(lambda m: all(reaches(m + i) for i in range(period)))
    by_kl = smallest(lambda m: kl_upper(p, -math.log(share) / m) - p <= width)
    return HoldoutRows(first, safe, by_kl, hoeffding_sample_size(width, share))


def planned_errors(share: float, n: int) -> int:
    """Return the errors among n rows of which the given share is wrong: whole, rounded up, 0 only for share 0.

    Parameters
    ----------
    share : float
        Share of the rows expected to be wrong.
    n : int
        Number of rows.

    Returns
    -------
    int
        Number of errors.

    Examples
    --------
    >>> planned_errors(0.1, 30), planned_errors(0.1, 31), planned_errors(1e-12, 10)
    (3, 4, 1)
    """
    share, n = check.number("share", share, low=0.0, high=1.0), check.whole("n", n)
    return min(n, math.ceil(share * n * (1.0 - 1e-15)))


class Line(NamedTuple):
    """One theorem's answer: its claim, what it says, the number of rows or the error it gives, and what it supposes of
    the fitted model beside its class.

    Parameters
    ----------
    claim : str
        Name of the claim.
    theorem : str
        What it says.
    value : float
        Number of rows, or error.
    recommended : bool
        Whether it is the best of its table.
    supposes : str, default=""
        What it supposes of the fitted model beside its class.
    """

    claim: str
    theorem: str
    value: float
    recommended: bool
    supposes: str = ""


class Hoped(NamedTuple):
    """What is hoped for of a fitted model, whatever its class: margins, as shares of the length of the longest possible
    row, that all rows keep but the training error's share; numbers of rows that rebuild it.

    Parameters
    ----------
    margins : tuple of float, default=()
        Margins, as shares of the length of the longest row, that all rows keep but the training error's share.
    kept : tuple of int, default=()
        Numbers of rows that rebuild the model.
    """

    margins: tuple[float, ...] = ()
    kept: tuple[int, ...] = ()

    def rows(self, epsilon: float, delta: float, training_error: float = 0.0) -> list[Line]:
        """Return the rows that each theorem asks for until the error is within epsilon of the training error.

        Parameters
        ----------
        epsilon : float
            Error to be guaranteed.
        training_error : float, default=0.0
            Share of training errors expected.
        """
        p = check.number("training_error", training_error, low=0.0, high=1.0)
        results = [margin_rows(epsilon, delta, 1.0 / margin, 1.0) for margin in self._margins]
        return self._lines([*results, *(self._rows_to_rebuild(k, epsilon, delta, p) for k in self.kept)])

    @staticmethod
    def _rows_to_rebuild(k: int, epsilon: float, delta: float, p: float) -> int:
        return smallest(lambda n: _rebuilt(p, n, k, delta) <= p + epsilon, start=k + 1)

    def errors(self, n: int, delta: float, training_error: float = 0.0) -> list[Line]:
        """Return the error that each theorem guarantees after n rows.

        Parameters
        ----------
        n : int
            Number of training rows.
        training_error : float, default=0.0
            Share of training errors expected.
        """
        p, n = check.number("training_error", training_error, low=0.0, high=1.0), check.whole("n", n)
        root = math.sqrt(-math.log(check.failure(delta)) / 2.0)
        results = [check.up(p + (2.0 / margin + root) / math.sqrt(n), p) for margin in self._margins]
        return self._lines([*results, *(_rebuilt(p, n, k, delta) if n > k else 1.0 for k in self.kept)])

    @property
    def _margins(self) -> list[float]:
        return [check.number("margin", margin, low=1e-6, high=1.0) for margin in self.margins]

    def _lines(self, values: Sequence[float]) -> list[Line]:
        """Return no line as the best: they suppose different things."""
        far = "no row nearer to the border, in parts of a length that none exceeds"
        few = "these rows alone give the model: support vectors, updates"
        names = [("margin", f"margin {margin:g}", far) for margin in self.margins]
        names += [("compression", f"rebuilt from {k} rows", few) for k in self.kept]
        return [Line(claim, what, value, False, more) for (claim, what, more), value in zip(names, values, strict=True)]


def _rebuilt(p: float, n: int, k: int, delta: float) -> float:
    return compression_bound(min(n - k, planned_errors(p, n)), n, k, delta)


def rows_needed(
    epsilon: float,
    delta: float,
    space: Space,
    *,
    training_error: float = 0.0,
    excess: bool = False,
    hoped: Hoped | None = None,
) -> list[Line]:
    """Return the rows each theorem asks for until the error of a model of the space is within epsilon.

    Within epsilon of its training error, which is planned to be `training_error` (0: the separable case);
    with `excess`, within epsilon of the best error in the space, for the empirical risk minimiser. What is `hoped` for
    of the model adds lines, which are all there are for a space without finite capacity.

    Parameters
    ----------
    epsilon : float
        Error, or excess of the error, that is to be guaranteed.
    delta : float
        Probability with which the guarantee may fail.
    space : Space
        Hypothesis space that the model is chosen from.
    training_error : float, default=0.0
        Share of training rows expected to be wrong; 0: the separable case.
    excess : bool, default=False
        Whether epsilon is above the best error in the space instead of the training error.
    hoped : Hoped or None
        Margins or compression that are hoped for; None: nothing.

    Returns
    -------
    list of Line
        One line for each theorem.

    Raises
    ------
    ValueError
        The space has no finite capacity, and nothing is hoped for.
    """
    more = [] if hoped is None or excess else hoped.rows(epsilon, delta, training_error)
    answers: list[tuple[str, str, int]] = []
    size = space.size if isinstance(space, Finite) else None
    if not math.isfinite(space.vc_dimension):
        if not more:
            raise ValueError(f"{space}: a class of no finite capacity cannot be learnt from any number of rows.")
        return more
    d = max(1, int(space.vc_dimension))
    if excess:
        if size is not None:
            answers.append(
                (
                    "finite-class",
                    Message("plan.finite-erm"),
                    pac.erm_sample_size(epsilon, delta, size),
                )
            )
        answers.append(("vc", Message("plan.vc-erm"), erm_rows(epsilon, delta, d)))
    elif training_error == 0.0:
        if size is not None:
            answers.append(
                ("finite-class", Message("plan.finite-none"), pac.realizable_sample_size(epsilon, delta, size))
            )
        answers.append(("vc", Message("plan.vc-none"), vc_realizable_rows(epsilon, delta, d)))
        answers.append(("vc", Message("plan.growth-none"), growth_realizable_rows(epsilon, delta, space.log_growth)))
    else:
        if size is not None:
            rows = pac.agnostic_sample_size(epsilon, delta, size, two_sided=False)
            answers.append(("finite-class", Message("plan.finite-any"), rows))
        answers.append(("vc", Message("plan.vc-any"), vc_agnostic_rows(epsilon, delta, d)))
        answers.append(
            (
                "vc",
                Message("plan.growth"),
                massart_rows(epsilon, delta, space.log_growth),
            )
        )
    if not excess:
        rows = ghost_rows(epsilon, delta, space.log_growth, training_error=training_error)
        answers.append(("vc", Message("plan.ghost"), rows))
    best = min(range(len(answers)), key=lambda i: answers[i][2])
    return [*(Line(*answer, recommended=i == best) for i, answer in enumerate(answers)), *more]


def error_guaranteed(
    n: int, delta: float, space: Space, *, errors: int = 0, shared: bool = True, hoped: Hoped | None = None
) -> list[Line]:
    """Return the error bound each theorem gives after `errors` errors in n rows, the tightest marked.

    With `shared` each bound gets an equal part of delta, so that the tightest may be quoted; otherwise each
    holds at delta when it alone was chosen in advance. What is `hoped` for of the model adds lines, each at delta.

    Parameters
    ----------
    n : int
        Number of training rows.
    delta : float
        Probability with which the guarantee may fail.
    space : Space
        Hypothesis space that the model is chosen from.
    errors : int, default=0
        Number of training errors.
    shared : bool, default=True
        Whether delta is shared among the bounds, so that the tightest may be quoted.
    hoped : Hoped or None
        Margins or compression that are hoped for; None: nothing.

    Returns
    -------
    list of Line
        One line for each theorem.
    """
    k, n = check.errors(errors, n)
    more = [] if hoped is None else hoped.errors(n, delta, k / n)
    if not math.isfinite(space.vc_dimension) and more:
        return more
    growth = space.log_growth
    bounds: list[tuple[str, str, Callable[[float], float]]] = [
        ("vc", "VC inequality", lambda share: k / n + vc.uniform_deviation(n, share, growth)),
        (
            "vc",
            Message("plan.growth"),
            lambda share: vc.massart_bound(k, n, share, growth),
        ),
        ("vc", Message("plan.ghost"), lambda share: vc.ghost_sample_bound(k, n, growth, share).bound),
    ]
    if k == 0:
        bounds.append(("vc", Message("plan.growth-none"), lambda share: vc.realizable_growth_bound(n, share, growth)))
    if isinstance(space, Finite):
        bounds.append(("finite-class", "finite class", lambda share: pac.finite_class_bound(k, n, share, space.size)))
    part = check.failure(delta) / len(bounds) if shared else check.failure(delta)
    values = [min(1.0, bound(part)) for _, _, bound in bounds]
    return [*(Line(c, t, v, recommended=v == min(values)) for (c, t, _), v in zip(bounds, values)), *more]


def holdout_width(m: int, delta: float, *, errors: int = 0) -> tuple[float, float]:
    """Return how far the Clopper-Pearson and the Hoeffding bound lie above the error rate seen on m rows.

    Parameters
    ----------
    m : int
        Number of hold-out rows.
    delta : float
        Probability with which the guarantee may fail.
    errors : int, default=0
        Number of errors.

    Returns
    -------
    tuple of float
        Width by Clopper-Pearson and by Hoeffding.
    """
    k, m = check.errors(errors, m)
    return clopper_pearson_upper(k, m, delta) - k / m, hoeffding_deviation(m, delta)
