"""The learning agent of the notes: four parts in one loop.

    performance element   acts on what it knows
    critic                judges the outcome against a standard outside of the agent
    learning element      changes the performance element by the judgement
    problem generator     proposes actions that teach something, though they may do worse at once
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One turn: the input, the action, its score, and whether the generator proposed it."""

    input: Any
    action: Any
    score: float
    explored: bool


@dataclass
class LearningAgent:
    """One loop: act, judge, update, explore.

    Parameters
    ----------
    performance : function of an input
        Returns the action.
    critic : function of (input, action)
        Returns a score, larger for better.
    learning : function of (input, action, score)
        Changes what `performance` knows.
    generator : function of the steps so far, or None
        Returns (input, action) to try next, or None for none.

    Attributes
    ----------
    steps : list of Step

    Examples
    --------
    >>> known = {}
    >>> agent = LearningAgent(
    ...     performance=lambda x: known.get(x, "?"),
    ...     critic=lambda x, action: float(action == x.upper()),
    ...     learning=lambda x, action, score: known.update({x: x.upper()}),
    ... )
    >>> agent.run(["a", "a"])
    [0.0, 1.0]
    """

    performance: Callable[[Any], Any]
    critic: Callable[[Any, Any], float]
    learning: Callable[[Any, Any, float], None]
    generator: Callable[[list[Step]], tuple[Any, Any] | None] | None = None
    steps: list[Step] = field(default_factory=list)

    def turn(self, given: Any) -> float:
        """Act on an input and learn from it; then try what the generator proposes. Return the score of the first."""
        score = self._try(given, self.performance(given), explored=False)
        proposed = None if self.generator is None else self.generator(self.steps)
        if proposed is not None:
            self._try(*proposed, explored=True)
        return score

    def _try(self, given: Any, action: Any, *, explored: bool) -> float:
        score = float(self.critic(given, action))
        self.learning(given, action, score)
        self.steps.append(Step(given, action, score, explored))
        return score

    def run(self, inputs: Iterable[Any]) -> list[float]:
        """Take a turn for each input and return the scores of the agent's own actions; an interrupt ends the run."""
        scores = []
        try:
            for given in inputs:
                scores.append(self.turn(given))
        except KeyboardInterrupt:
            pass
        return scores

    @property
    def asked(self) -> set[Any]:
        """The inputs that were acted on or tried so far."""
        return {step.input for step in self.steps}
