"""Sentences of claims as data: templates with named values, in English here, in other languages in their catalogues.

{rows}                 a parameter of the claim, or what the sentence computes from its parameters
{value:up6}            a number of six digits, rounded up; `down` down; `out` to the side on which the claim holds
{value:percent}        a share in percent, rounded to the side on which the claim holds; `percent-up`, `percent-down`
{value:count}          an integer
{loss:term}            a word of a fixed vocabulary, which a language may translate
{problem:, }           a list, and what stands between its items
{which}                a part of the sentence: another text, or nothing
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from string import Formatter
from typing import Any

Params = Mapping[str, Any]
Values = Callable[[float, str, Params], Mapping[str, Any]]
TERMS = {"train": "training", "holdout": "hold-out"}


@dataclass(frozen=True)
class Part:
    """One of the further texts of a sentence, filled with the values of the claim and with its own."""

    text: str
    values: Params = field(default_factory=dict)


def part(condition: object, text: str) -> Part | str:
    """Return a part of a sentence if a condition holds, else nothing."""
    return Part(text) if condition else ""


def parameters(value: float, direction: str, params: Params) -> Params:
    """Return no values beside the claim's own."""
    return {}


@dataclass(frozen=True)
class Sentence:
    """What a claim says: its texts by name, and what computes the values that are not parameters of the claim.

    The sentence is the text "", or that of the claim's direction, "upper" or "lower", or the one that `values` names as
    "text".

    >>> one = Sentence({"": "The tree has {leaves} leaves{where}.", "bound": " and risk {value:up}"},
    ...                lambda value, direction, params: {"where": part(value < 1, "bound")})
    >>> one(0.12341, "upper", {"leaves": 3})
    'The tree has 3 leaves and risk 0.124.'
    """

    texts: Mapping[str, str]
    values: Values = parameters

    @classmethod
    def plain(cls, text: str) -> "Sentence":
        """Return the sentence of one text whose values are parameters of the claim."""
        return cls({"": text})

    def __call__(
        self,
        value: float,
        direction: str,
        params: Params,
        texts: Mapping[str, str] | None = None,
        terms: Mapping[str, str] | None = None,
    ) -> str:
        """Return the sentence of a claim, in English or in the texts and terms of another language."""
        texts = self.texts if texts is None else texts
        terms = TERMS if terms is None else terms
        computed = self.values(value, direction, params)
        main = computed.get("text", direction if direction in self.texts else "")
        return _Filled(texts, terms, direction).fill(texts[main], {**params, "value": value, **computed})


class _Filled(Formatter):
    """Fills in the texts of one sentence."""

    def __init__(self, texts: Mapping[str, str], terms: Mapping[str, str], direction: str) -> None:
        self.texts, self.terms, self.direction = texts, terms, direction
        self.known: Params = {}

    def fill(self, text: str, values: Params) -> str:
        outer, self.known = self.known, {**self.known, **values}
        try:
            return self.vformat(text, (), self.known)
        finally:
            self.known = outer

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Part):
            if not value.text:  # the sentence itself, of which it would be a part; a forged parameter can say that
                raise LookupError("a part of a sentence has no name")
            return self.fill(self.texts[value.text], value.values)
        if isinstance(value, (list, tuple)):
            return format_spec.join(self.format_field(item, "") for item in value)
        if format_spec == "term":
            return self.terms.get(str(value), str(value))
        if format_spec == "count":
            return f"{int(value)}"
        return self._number(value, format_spec)

    def _number(self, value: Any, format_spec: str) -> str:
        direction = {"up": "upper", "down": "lower", "out": self.direction}
        if format_spec.startswith("percent"):
            return percent(value, direction[format_spec.partition("-")[2] or "out"])
        kind = format_spec.rstrip("0123456789")
        if kind in direction:
            return outward(value, direction[kind], int(format_spec[len(kind) :] or 3))
        return str(super().format_field(value, format_spec))


def outward(value: float, direction: str, digits: int = 3) -> str:
    """Return a number with this number of digits, rounded to the side on which the statement stays true.

    >>> outward(0.12341, "upper"), outward(0.12349, "lower")
    ('0.124', '0.123')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if direction == "upper" else ROUND_FLOOR)
    return f"{float(context.create_decimal_from_float(float(value))):.{digits}g}"


def up(value: float, digits: int = 3) -> str:
    """Return a number rounded up."""
    return outward(value, "upper", digits)


def percent(value: float, direction: str = "upper") -> str:
    """Return a share in percent with two decimals, rounded to the side on which the statement stays true."""
    rounding = ROUND_CEILING if direction == "upper" else ROUND_FLOOR
    return f"{(100 * Decimal(value)).quantize(Decimal('0.01'), rounding)} %"


# Sentences that several claims share ------------------------------------------------------------------------

COMPARED = {"compared": ", Bonferroni-corrected for {compared} models compared on them"}
PROBLEM = {
    "loss": "{loss:term} loss",
    "C": "C = {C:g}",
    "number": "{name} = {number:g}",
    "penalty": "{name} penalty {number:g}",
    "weights": "class weights {weights:, }",
    "column": "intercept penalised as coefficient of a column of {column:g}",
    "free": "free intercept",
    "none": "no intercept",
}
GAP = PROBLEM | {
    "": "The training objective{which} ({problem:, }) is at most {value:up} above its minimum.",
    "pair": " of pair {pair} of classes",
    "class": " of class number {class} against the rest",
}
CLASSES = {"one": "class number {class} from the others", "all": "the classes"}
WEIGHED = " (rows counted by their weights, if they have any)"


def error_rate(how: str) -> Sentence:
    """Return the sentence of a bound on the error rate; `how` names in brackets what it comes from."""
    return Sentence.plain(f"The error rate on new data is at most {{value:percent}} ({how}).")


def mean_loss(how: str) -> Sentence:
    """Return the sentence of a bound on a mean loss."""
    return Sentence(
        COMPARED
        | {
            "": f"{{what}} is at most {{bound:out6}} ({how}{{choice}}).",
            "absolute": "The mean absolute error on new data, errors clipped at {clip:g},",
            "brier": "Half the Brier score on new data of the logistic function of the scores",
            "distance": "The mean squared distance of new data to the fitted centres or flat, clipped at {clip:g},",
            "log": "The mean of -ln p(x) on new data, clipped to [{low:g}, {high:g}],",
        },
        _mean_loss,
    )


def _mean_loss(value: float, direction: str, params: Params) -> Params:
    loss = params.get("loss", "absolute")
    low = params["low"] if loss == "log" else 0.0
    return {
        "what": Part(loss if loss in ("brier", "distance", "log") else "absolute"),
        "bound": low + value,
        "high": low + params["clip"],
        **compared(value, direction, params),
    }


def compared(value: float, direction: str, params: Params) -> Params:
    """Return, as `choice`, that the bound pays for several models compared on the same rows."""
    return {"choice": part(params.get("compared", 1) > 1, "compared")}


def distance_risk(what: str) -> Sentence:
    """Return the sentence of a bound on the mean squared distance to centres or a flat."""
    return Sentence.plain(
        f"The mean squared distance of new data to {what} is at most {{value:up6}}, if no row is longer than "
        "{radius:g}; both numbers fixed in advance ({rows} training rows)."
    )


def gap_sentence(loss: str = "") -> Sentence:
    """Return the sentence of a duality gap; `loss` names the loss of claims that have one alone."""

    def values(value: float, direction: str, params: Params) -> Params:
        which = part("pair" in params, "pair")
        stated = {"loss": loss, **params} if loss else params
        return {"which": part("class" in params, "class") or which, "problem": problem(stated)}

    return Sentence(GAP, values)


def problem(params: Params) -> list[Part]:
    """Name the problem completely: the loss and every number that defines the objective."""
    named = dict(params.get("loss_params", {})).items()
    penalties = dict(params.get("penalty", {})).items()
    parts = [Part("loss", {"loss": params.get("loss", "squared")})]
    parts += [Part("C")] if "C" in params else []
    parts += [Part("number", {"name": name, "number": number}) for name, number in named]
    parts += [Part("penalty", {"name": name, "number": number}) for name, number in penalties if number]
    if params.get("class_weight"):
        parts.append(Part("weights", {"weights": [f"{weight:g}" for weight in params["class_weight"]]}))
    intercept = "column" if params.get("column") else "free" if params["intercept"] else "none"
    return [*parts, Part(intercept)]


def classes(params: Params) -> Part:
    """Name what is separated: one class from the others, or the classes."""
    return Part("one" if "class" in params else "all")


def with_digits(value: float, direction: str, params: Params) -> Params:
    """Return the claim's `center` with six digits, and its distance to the true number."""
    shown = f"{params['center']:.6g}"
    return {"shown": shown, "within": value + abs(params["center"] - float(shown))}
