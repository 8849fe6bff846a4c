"""What each claim says. The meaning of a claim is the text here, never free text in a certificate.

An entry fixes the statement, whether it is a fact or a statement about new data, and the assumptions it must carry.
SPEC.md gives parameters, witness and check of each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ASSUMPTIONS = {
    "A-IID(train)": "the training rows are independent draws from one distribution, from which new data come too",
    "A-IID(holdout)": "the hold-out rows are independent draws from one distribution, from which new data come too",
    "A-SPLIT(holdout)": "nothing about the model (preprocessing, features, hyper-parameters, stopping) was chosen "
    "by looking at the hold-out rows",
    "A-RANGE": "the loss lies in the stated range by construction",
    "A-CLASS": "the class of hypotheses (features, encodings, kernel) was fixed without looking at the labelled sample",
    "A-PRIOR": "the prior, code or grid was fixed without looking at the sample",
    "A-DELTA": "the confidence and the choice of claims were fixed in advance, or are paid for in the ledger",
    "A-ORDER": "the order of the rows was not chosen by looking at their values",
    "A-FOLDS": "the folds were drawn without looking at the rows, and each fold's model was fitted without that fold",
    "A-RNG": "pseudo-random bits behave like independent fair bits, independent of the data",
    "A-BAGS": "each member depends on the training rows of its own bag alone, and bags were drawn without looking at "
    "the rows; the number of members was fixed in advance",
    "A-SUPP": "no row, of the training rows or of new data, is longer than the radius, which was fixed in advance",
    "A-KERNEL": "the kernel is positive semidefinite",
}

Phrase = Callable[[float, str, Mapping[str, Any]], str]


@dataclass(frozen=True)
class Template:
    """The fixed part of a claim: `name`, whether it is a `fact`, its `assumptions` and its sentence."""

    name: str
    fact: bool
    sentence: Phrase
    assumptions: tuple[str, ...] = ()
    directions: tuple[str, ...] = ("upper",)

    @property
    def quantity(self) -> str:
        """What a statement about new data bounds, so that statements about the same can be compared; "" if none."""
        return self.sentence.quantity if isinstance(self.sentence, Bound) else ""


@dataclass(frozen=True)
class Bound:
    """The sentence of a bound on `quantity`, of this model on new data."""

    quantity: str
    say: Phrase

    def __call__(self, value: float, direction: str, params: Mapping[str, Any]) -> str:
        return self.say(value, direction, params)


def _side(direction: str) -> str:
    return "at most" if direction == "upper" else "at least"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _problem(params: Mapping[str, Any]) -> str:
    """Name the problem completely: the loss and every number that defines the objective."""
    shown = {"C": "C", "alpha": "alpha", "l1": "lambda1", "l2": "lambda2", "scale": "scale", "epsilon": "epsilon"}
    numbers = [f"{symbol} = {params[name]:g}" for name, symbol in shown.items() if params.get(name) is not None]
    numbers += (
        [f"class weights {', '.join(f'{w:g}' for w in params['class_weight'])}"] if params.get("class_weight") else []
    )
    numbers += [f"{name} {params[name]}" for name in ("penalty", "loss_params") if params.get(name)]
    free = params.get("intercept", "")
    intercept = {True: "free intercept", False: "no intercept"}.get(free, "") if isinstance(free, bool) else ""
    return ", ".join([f"{params.get('loss', 'squared')} loss", *numbers, *([intercept] if intercept else [])])


def _errors(value: float, direction: str, params: Mapping[str, Any]) -> str:
    if params["loss"] == "zero-one":
        many = f"{int(value)}" if params["low"] == value else f"between {params['low']} and {int(value)}"
        return f"On the {params['rows']} {params['set']} rows the model makes {many} errors."
    rows = f"{params['rows']} {params['set']} rows"
    return f"On the {rows} the mean squared error lies between {params['low']:.6g} and {value:.6g}."


def _suboptimality(value: float, direction: str, params: Mapping[str, Any]) -> str:
    problem = _problem({**params, "loss": params["objective"]})
    if params["form"] == "a":
        return f"The training objective ({problem}) is at most {value:.3g} above its minimum."
    near = f"No coefficients within distance {params['radius']:.3g} of these lower the training objective"
    return f"{near} ({problem}) by more than {value:.3g}."


def _gap(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"The training objective ({_problem(params)}) is at most {value:.3g} above its minimum."


def _plane(params: Mapping[str, Any]) -> str:
    return "hyperplane" if params["intercept"] is True else "hyperplane through the origin"


def _sides(params: Mapping[str, Any]) -> str:
    return f"class number {params['class']} from the others" if "class" in params else "the classes"


def _margin(value: float, direction: str, params: Mapping[str, Any]) -> str:
    where = " in the space with a constant column added" if params["intercept"] == "augmented" else ""
    if direction == "lower":
        return f"Some {_plane(params)} separates {_sides(params)} with a margin of at least {value:.6g}{where}."
    return f"No {_plane(params)} separates {_sides(params)} with a margin above {value:.6g}{where}."


def _machine_gap(loss: str) -> Phrase:
    def sentence(value: float, direction: str, params: Mapping[str, Any]) -> str:
        which = f" of pair {params['pair']} of classes" if "pair" in params else ""
        which = f" of class number {params['class']} against the rest" if "class" in params else which
        return f"The training objective ({loss} loss with L2 penalty){which} is at most {value:.3g} above its minimum."

    return sentence


def _linear_machine_gap(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of class number {params['class']} against the rest" if "class" in params else ""
    s = params["intercept_scaling"]
    column = f"intercept penalised as coefficient of a column of {s:g}" if s else "no intercept"
    problem = f"{_problem(params)}, {column}"
    return f"The training objective{which} ({problem}) is at most {value:.3g} above its minimum."


def _kernel_margin(value: float, direction: str, params: Mapping[str, Any]) -> str:
    if direction == "lower":
        return f"The classes are separated in the kernel's space with a margin of at least {value:.6g}."
    return f"No hyperplane of the kernel's space separates the classes with a margin above {value:.6g}."


def _inseparable(value: float, direction: str, params: Mapping[str, Any]) -> str:
    if params["form"] == "ii":
        return f"No {_plane(params)} separates {_sides(params)}: a few listed rows already cannot be separated."
    told = f" in telling {_sides(params)}" if "class" in params else ""
    return f"Every {_plane(params)} makes at least {int(value)} training errors{told}."


def _mistakes(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"To separate {_sides(params)} the perceptron made {params['updates']} updates, within the bound "
        f"(R / margin)^2 <= {value:.6g} for a separator of margin {params['margin']:.6g}."
    )


def _vote_margin(value: float, direction: str, params: Mapping[str, Any]) -> str:
    soft = f" (soft: a row counts at most {params['cap']:.3g})" if params["cap"] < 1 else ""
    if direction == "lower":
        return f"The vote gives the training rows a margin of at least {value:.6g}{soft}, in shares of its weight."
    return f"No weighted vote of stumps gives the training rows a margin above {value:.6g}{soft}."


def _fisher(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = "The direction" if params["form"] == "two-class" else "The first direction"
    return f"{which} reaches the largest Fisher ratio up to {value:.3g}: no other separates the class means better."


def _gaussian(value: float, direction: str, params: Mapping[str, Any]) -> str:
    kept = "one covariance" if params["form"] == "linear" else "a covariance each"
    shrunk = f", shrunk by {params['shrinkage']:g}" if params["shrinkage"] else ""
    return (
        f"The scores are those of Gaussian classes with {kept}{shrunk}, fitted to the rows by maximum likelihood: "
        f"means and covariances are right to {params['error']:.1g} and scores near the centre to {value:.1g}, columns "
        "in units of their spread."
    )


def _stationary(value: float, direction: str, params: Mapping[str, Any]) -> str:
    curved = f" There it is curved upwards, by at least {params['mu']:.3g} in scaled columns." if params["mu"] else ""
    near = (
        f"No coefficients within distance {params['radius']:.3g} of these lower the {params['distribution']} deviance"
    )
    return f"{near} by more than {value:.3g}.{curved}"


def _gradient(value: float, direction: str, params: Mapping[str, Any]) -> str:
    rest = [f"decay = {params['decay']:g}"] + ([f"share = {params['share']:g}"] if params["share"] != 1 else [])
    return (
        f"The gradient of the training objective (mean {params['loss']} loss, {', '.join(rest)}) by all weights has "
        f"at most the length {value:.3g}; where it is zero the objective is level, which need not be its minimum."
    )


def _enclosure(value: float, direction: str, params: Mapping[str, Any]) -> str:
    text = f"The coefficients are within distance {value:.3g} of the exact optimum's."
    if "fixed_rows" in params:
        text += f" The exact optimum predicts the same class on at least {params['fixed_rows']} training rows."
    return text


def _risk(how: str) -> Phrase:
    def sentence(value: float, direction: str, params: Mapping[str, Any]) -> str:
        return f"The error rate on new data is {_side(direction)} {_percent(value)} ({how.format(**params)})."

    return Bound("error rate", sentence)


def _choice(params: Mapping[str, Any]) -> str:
    compared = params.get("compared", 1)
    return f", after comparing {compared} models on them" if compared > 1 else ""


def _mean_loss(how: str) -> Phrase:
    def sentence(value: float, direction: str, params: Mapping[str, Any]) -> str:
        if params.get("loss") == "brier":
            return (
                "Half the Brier score on new data of the logistic function of the scores is "
                f"{_side(direction)} {value:.6g} ({how}{_choice(params)})."
            )
        if params.get("loss") == "distance":
            return (
                f"The mean squared distance of new data to the fitted centres or flat, clipped at {params['clip']:g}, "
                f"is {_side(direction)} {value:.6g} ({how}{_choice(params)})."
            )
        if params.get("loss") == "log":
            low = params["low"]
            return (
                f"The mean of -ln p(x) on new data, clipped to [{low:g}, {low + params['clip']:g}], is "
                f"{_side(direction)} {low + value:.6g} ({how}{_choice(params)})."
            )
        return (
            f"The mean absolute error on new data, errors clipped at {params['clip']:g}, is {_side(direction)} "
            f"{value:.6g} ({how}{_choice(params)})."
        )

    return Bound("mean loss", sentence)


def _fold_mean(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The mean error rate on new data of the {params['folds']} models of the folds, which is that of one drawn at "
        f"random for each row, is at most {_percent(value)}; their vote errs at most twice as often."
    )


def _area(value: float, direction: str, params: Mapping[str, Any]) -> str:
    rows = f"{params['positives']} and {params['negatives']} hold-out rows of the two classes{_choice(params)}"
    return f"The area under the ROC curve on new data is at least {value:.4f} ({rows})."


def _thresholds(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        "For every threshold of the score at once, the shares of either class above it differ between the hold-out "
        f"rows and new data by at most {value:.4f}{_choice(params)}."
    )


def _paired(value: float, direction: str, params: Mapping[str, Any]) -> str:
    alone, other = params["alone"], params["other_alone"]
    rows = f"of {params['rows']} hold-out rows {alone} were wrong for it alone, {other} for the other"
    if direction == "upper":
        return f"The error rate on new data exceeds that of the other model by at most {_percent(value)} ({rows})."
    return f"The error rate on new data is at least {_percent(value)} below that of the other model ({rows})."


def _coverage(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"Prediction sets of size {value:.6g} (the interval prediction -+ size; the classes whose score is at most "
        f"that far below the largest) hold the target of at least {_percent(params['coverage'])} of new data"
        f"{_choice(params)}."
    )


def _one_class(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return f"The training objective (one class, nu = {params['nu']:g}) is at most {value:.3g} above its minimum."


def _kkt(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of pair {params['pair']} of classes" if "pair" in params else ""
    return f"The first-order optimality conditions{which} are broken by at most {value:.3g}, in units of the margin."


_WEIGHED = " (rows counted by their weights, if they have any)"


def _log_likelihood(value: float, direction: str, params: Mapping[str, Any]) -> str:
    mean = f"The mean log-likelihood of the training rows is {params['center']:.6g} nats"
    return f"{mean}, to within {value:.1g}{_WEIGHED}."


def _em_stationary(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of class number {params['class']}" if "class" in params else ""
    which += f" ({params['covariance']} covariances)"
    added = f" with {params['reg_covar']:g} added to each variance" if params["reg_covar"] else ""
    return (
        f"The mixture{which} is near a fixed point of EM{added}: an M step gains at most {value:.3g} nats per row and "
        f"moves means (in units of spread), covariances and weights (as shares) by at most {params['moved']:.3g}."
    )


def _em_weights(value: float, direction: str, params: Mapping[str, Any]) -> str:
    which = f" of class number {params['class']}" if "class" in params else ""
    fit = f"No other weights of the same components{which} fit the training rows better"
    return f"{fit} by more than {value:.3g} nats per row."


def _em_monotone(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"EM from the listed start comes within {params['distance']:.1g} of the model in {params['steps']} steps, none "
        f"of which lowers the mean log-likelihood by more than {value:.1g}."
    )


def _histogram_counts(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The cells of the histogram hold exactly the stored numbers of the {params['rows']} training rows, of which "
        f"{int(value)} lie outside the grid."
    )


def _flat(value: float, direction: str, params: Mapping[str, Any]) -> str:
    where = "of" if params["centred"] else "through the origin of"
    return (
        f"No flat {where} {params['components']} dimensions is nearer to the {params['rows']} training rows: their "
        f"mean squared distance to this one is at most {value:.3g} above the least."
    )


def _fixed_point(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The squared distances of the {params['rows']} training rows to the nearest of {params['clusters']} centres "
        f"sum to at most {value:.10g}{_WEIGHED}, and no centre is farther than {params['shift']:.2g} from the mean "
        "of its rows."
    )


def _cluster_floor(value: float, direction: str, params: Mapping[str, Any]) -> str:
    how = {"spectral": "eigenvalues of the scatter", "axes": "the best clusters of each column alone"}[params["form"]]
    centres = f"No {params['clusters']} centres"
    return f"{centres} have squared distances to the training rows that sum to less than {value:.6g}{_WEIGHED} ({how})."


def _line_optimum(value: float, direction: str, params: Mapping[str, Any]) -> str:
    return (
        f"The centres are the best {params['clusters']} on the line: their sum of squared distances to the training "
        f"rows is at most {value:.3g} above the least{_WEIGHED}."
    )


def _distance_risk(what: str) -> Phrase:
    def sentence(value: float, direction: str, params: Mapping[str, Any]) -> str:
        return (
            f"The mean squared distance of new data to {what.format(**params)} is at most {value:.6g}, if no row is "
            f"longer than {params['radius']:g}; both numbers fixed in advance ({params['rows']} training rows)."
        )

    return Bound("mean squared distance", sentence)


_HOLDOUT = ("A-IID(holdout)", "A-SPLIT(holdout)", "A-DELTA")
_UNIFORM = ("A-IID(train)", "A-CLASS", "A-DELTA")
_PRIOR = ("A-IID(train)", "A-CLASS", "A-PRIOR", "A-DELTA")
_BOTH = ("upper", "lower")

TEMPLATES: dict[str, Template] = {
    "D01/1": Template(
        "data.identity",
        True,
        lambda v, d, p: f"The certificate is about exactly these {int(v)} {p['set']} rows.",
        (),
        ("lower",),
    ),
    "D02/1": Template("train.errors", True, _errors),
    "D03/1": Template(
        "train.error-floor",
        True,
        lambda v, d, p: (
            f"Every classifier makes at least {int(v)} training errors, because identical rows carry different labels."
        ),
        (),
        ("lower",),
    ),
    "D04/1": Template("opt.duality-gap", True, _gap),
    "D05/1": Template("opt.suboptimality", True, _suboptimality),
    "D06/1": Template("ridge.gap", True, lambda v, d, p: _gap(v, d, {"loss": "squared", **p})),
    "D07/1": Template("elastic-net.gap", True, lambda v, d, p: _gap(v, d, {"loss": "squared", **p})),
    "D06/2": Template("kernel-ridge.gap", True, _machine_gap("squared")),
    "D08/1": Template("logistic.gap", True, lambda v, d, p: _gap(v, d, {"loss": "logistic", **p})),
    "D08/2": Template("kernel-logistic.gap", True, _machine_gap("logistic")),
    "D09/1": Template("multinomial.gap", True, lambda v, d, p: _gap(v, d, {"loss": "multinomial logistic", **p})),
    "D10/1": Template("svm.gap", True, _machine_gap("hinge")),
    "D10/2": Template("linear-svm.gap", True, _linear_machine_gap),
    "D11/1": Template("svr.gap", True, _machine_gap("epsilon-insensitive")),
    "D11/2": Template("linear-svr.gap", True, _linear_machine_gap),
    "D12/1": Template("one-class.gap", True, _one_class),
    "D13/1": Template("margin.bounds", True, _margin, (), _BOTH),
    "D13/2": Template("kernel-margin.bounds", True, _kernel_margin, (), _BOTH),
    "D14/1": Template("inseparability", True, _inseparable, (), ("lower",)),
    "D15/1": Template("solution.enclosure", True, _enclosure),
    "D15/2": Template("kkt.residual", True, _kkt),
    "D16/1": Template(
        "loo.squared-error",
        True,
        lambda v, d, p: f"The mean squared leave-one-out error of the exact algorithm is at most {v:.6g}.",
    ),
    "D16/2": Template(
        "loo.errors",
        True,
        lambda v, d, p: f"The exact algorithm makes at most {int(v)} leave-one-out errors on these rows.",
    ),
    "D16/3": Template(
        "knn.loo-errors",
        True,
        lambda v, d, p: (
            f"For at most {int(v)} of the {p['rows']} rows their own label has no majority among the {p['k']} nearest "
            "other rows."
        ),
    ),
    "D17/1": Template("perceptron.mistakes", True, _mistakes),
    "D17/2": Template("kernel-perceptron.mistakes", True, _mistakes),
    "D18/2": Template(
        "kernel-pca.optimality",
        True,
        lambda v, d, p: (
            f"No {p['components']} directions of the kernel's space hold more of the rows' variance than these, up to "
            f"{v:.3g}."
        ),
    ),
    "D19/1": Template("lda.optimality", True, _fisher),
    "D19/3": Template("gaussian.mle", True, _gaussian),
    "D19/2": Template(
        "kernel-lda.optimality",
        True,
        lambda v, d, p: (
            f"In the kernel's space no directions reach a sum of Fisher ratios (mu = {p['mu']:g}) more than {v:.3g} "
            "above that of these."
        ),
    ),
    "D18/1": Template("pca.optimality", True, _flat),
    "D20/1": Template("kmeans.fixed-point", True, _fixed_point),
    "D21/1": Template("kmeans.lower-bound", True, _cluster_floor, (), ("lower",)),
    "D22/1": Template("kmeans-1d.optimal", True, _line_optimum),
    "P26/1": Template(
        "kmeans.risk", False, _distance_risk("the nearest of the {clusters} centres"), (*_UNIFORM, "A-SUPP")
    ),
    "P26/2": Template(
        "projection.risk", False, _distance_risk("the flat of {components} dimensions"), (*_UNIFORM, "A-SUPP")
    ),
    "D23/1": Template("density.log-likelihood", True, _log_likelihood),
    "D23/2": Template("em.stationary", True, _em_stationary),
    "D23/3": Template("em.weights", True, _em_weights),
    "D23/4": Template("em.monotone", True, _em_monotone),
    "D28/2": Template("histogram.counts", True, _histogram_counts),
    "D24/1": Template(
        "adaboost.product",
        True,
        lambda v, d, p: (
            f"The training error is at most {v:.6g}, the product of the {p['rounds']} normalisers of boosting."
        ),
    ),
    "D25/1": Template("boosting.margin-duality", True, _vote_margin, (), _BOTH),
    "D30/1": Template(
        "knn.neighbors",
        True,
        lambda v, d, p: (
            f"For {int(v)} of the rows, the {p['k']} nearest other rows are exactly those listed, the first of rows "
            "at the same distance."
        ),
        (),
        ("lower",),
    ),
    "D33/1": Template(
        "tree.pruned",
        True,
        lambda v, d, p: (
            f"No subtree of the grown tree ({p['leaves']} leaves) has a {p['criterion']} impurity plus "
            f"{p['alpha']:.4g} per leaf smaller by more than {v:.2g}."
        ),
    ),
    "D27/1": Template(
        "tree.facts",
        True,
        lambda v, d, p: f"The tree has {p['leaves']} leaves and at most {p['depth']} tests on a way down.",
    ),
    "D32/1": Template("glm.stationarity", True, _stationary),
    "D34/1": Template("network.gradient", True, _gradient),
    "P01/1": Template("holdout.binomial", False, _risk("{errors} errors in {rows} hold-out rows"), _HOLDOUT, _BOTH),
    "P02/1": Template(
        "holdout.hoeffding", False, _mean_loss("Hoeffding, hold-out rows"), (*_HOLDOUT, "A-RANGE"), _BOTH
    ),
    "P03/1": Template("holdout.kl", False, _mean_loss("Chernoff, hold-out rows"), (*_HOLDOUT, "A-RANGE")),
    "P04/1": Template(
        "holdout.empirical-bernstein", False, _mean_loss("empirical Bernstein, hold-out rows"), (*_HOLDOUT, "A-RANGE")
    ),
    "P05/1": Template(
        "holdout.betting", False, _mean_loss("betting, hold-out rows in order"), (*_HOLDOUT, "A-RANGE", "A-ORDER")
    ),
    "P06/1": Template("holdout.auc", False, _area, _HOLDOUT, ("lower",)),
    "P06/2": Template("holdout.thresholds", False, _thresholds, _HOLDOUT),
    "P06/3": Template("holdout.paired", False, _paired, _HOLDOUT, _BOTH),
    "P07/1": Template(
        "holdout.select",
        False,
        _risk("{errors} errors in {rows} hold-out rows, after comparing {compared} models on them"),
        _HOLDOUT,
    ),
    "P08/1": Template("finite.class", False, _risk("{errors} errors in {rows} training rows, finite class"), _UNIFORM),
    "P09/1": Template(
        "occam", False, _risk("{errors} errors in {rows} training rows, length of the tree's description"), _PRIOR
    ),
    "P10/1": Template(
        "vc", False, _risk("{errors} errors in {rows} training rows, growth function of the class"), _UNIFORM
    ),
    "P11/1": Template(
        "rademacher.empirical",
        False,
        _risk("{errors} errors in {rows} training rows, how well stumps follow {draws} draws of random signs"),
        (*_UNIFORM, "A-RNG"),
    ),
    "P12/1": Template("margin.kernel", False, _risk("margins of {rows} training rows, length of the weights"), _PRIOR),
    "P13/1": Template(
        "margin.multiclass", False, _risk("margins of {rows} training rows, length of the weights"), _PRIOR
    ),
    "P14/1": Template(
        "margin.l1", False, _risk("margins of {rows} training rows, sum of the weights' magnitudes"), _PRIOR
    ),
    "P16/1": Template(
        "compression.perceptron",
        False,
        _risk("{errors} errors outside the {kept} of {rows} training rows that the updates were made on"),
        _PRIOR,
    ),
    "P16/2": Template(
        "compression.support-vectors",
        False,
        _risk("{errors} rows in doubt outside the {kept} support vectors among {rows} training rows"),
        _PRIOR,
    ),
    "P15/1": Template("margin.boosting", False, _risk("margins of {rows} training rows in the vote"), _PRIOR),
    "P16/3": Template(
        "compression.kernel-perceptron",
        False,
        _risk("{errors} errors outside the {kept} of {rows} training rows that the updates were made on"),
        _PRIOR,
    ),
    "P17/1": Template(
        "stability.uniform", False, _risk("{rows} training rows, each of which moves the model little"), _PRIOR
    ),
    "P17/2": Template(
        "stability.ball",
        False,
        _risk("{rows} training rows, each of which moves the model little; no row longer than {radius:g}"),
        (*_PRIOR, "A-SUPP"),
    ),
    "P18/1": Template(
        "pac-bayes.linear", False, _risk("margins of {rows} training rows, noise in the weights"), _PRIOR
    ),
    "P19/1": Template(
        "pac-bayes.vote",
        False,
        _risk("{members} members on their out-of-bag rows, {form} form"),
        ("A-IID(train)", "A-CLASS", "A-BAGS", "A-RNG", "A-PRIOR", "A-DELTA"),
    ),
    "P16/4": Template(
        "compression.voted-perceptron",
        False,
        _risk("{errors} errors outside the {kept} of {rows} training rows that were learnt from"),
        (*_PRIOR, "A-ORDER"),
    ),
    "P20/1": Template(
        "progressive.vote",
        False,
        _risk(
            "{errors} mistakes on training rows that each hypothesis met before learning from them, a vote of all "
            "after the first {skipped} rows, a number fixed in advance"
        ),
        (*_PRIOR, "A-ORDER"),
    ),
    "P22/1": Template(
        "cross-validation.mean",
        False,
        Bound("mean error rate of the folds", _fold_mean),
        ("A-IID(train)", "A-FOLDS", "A-DELTA"),
    ),
    "P23/1": Template(
        "knn.loo",
        False,
        _risk("{errors} of {rows} rows lost, left out in turn, {k} neighbours and the distance fixed in advance"),
        ("A-IID(train)", "A-ORDER", "A-CLASS", "A-DELTA"),
    ),
    "P24/1": Template(
        "regression.rademacher", False, _mean_loss("training rows, length of the weights"), (*_UNIFORM, "A-RANGE")
    ),
    "P25/1": Template("conformal.coverage", False, _coverage, _HOLDOUT),
}
