"""Agents that learn: four parts in one loop.

performance element   acts on what it knows
critic                judges the outcome against a standard outside of the agent
learning element      changes the performance element by the judgement
problem generator     proposes actions that teach something, though they may do worse at once

`QLearning` is Q-learning in a table (Watkins 1989), and the model of the world that experience gives.

    Q(s, a) <- Q(s, a) + alpha (r + gamma max_a' Q(s', a') - Q(s, a))

An environment is any object with `reset()`, which returns a state, and `step(action)`, which returns (state, reward,
done). States are anything that can be a key of a dictionary; actions are numbered.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from assay.params import Count, Number, Positive, check, refuse

State = Hashable


class Step(NamedTuple):
    """One turn: the input, the action, its score, and whether the generator proposed it.

    Parameters
    ----------
    input : object
        What was perceived.
    action : object
        What was done.
    score : float
        The critic's score.
    explored : bool
        Whether the generator proposed the action.
    """

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
        """Act on an input and learn from it; then try what the generator proposes. Return the score of the first.

        Parameters
        ----------
        given : object
            What is perceived.
        """
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
        """Take a turn for each input and return the scores of the agent's own actions; an interrupt ends the run.

        Parameters
        ----------
        inputs : iterable of object
            Inputs, one for each turn.
        """
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


class Environment(Protocol):
    """A world that answers actions."""

    def reset(self) -> State:
        """Begin anew and return the first state."""

    def step(self, action: int) -> tuple[State, float, bool]:
        """Act; return the next state, the reward, and whether the episode is over.

        Parameters
        ----------
        action : int
            The action to take.
        """


class Transition(NamedTuple):
    """What was seen after an action in a state: how often, the share of each next state, and the mean reward.

    Parameters
    ----------
    times : int
        How often the action was taken.
    next_states : dict
        Share of each next state.
    reward : float
        Mean reward.
    """

    times: int
    next_states: dict[State, float]
    reward: float


@dataclass
class QLearning:
    """Values of actions, learnt by trying them, and counts of what they did.

    Parameters
    ----------
    n_actions : int
    alpha : float in (0, 1], or "visits"
        Step size; "visits" is n^-0.8 at the n-th visit of a state and action, with which the values converge.
    gamma : float in [0, 1)
        What a reward of the next step is worth now.
    epsilon : float in [0, 1]
        Share of actions that are drawn at random.
    episodes, max_steps : int
        How often to begin anew, and steps of an episode at most.
    random_state : int

    Attributes
    ----------
    q_ : dict of state to array (n_actions,)
    counts_ : dict of (state, action) to dict of next state to count
    rewards_ : dict of (state, action) to sum of rewards
    returns_ : list of float
        Sum of rewards of each episode.

    Examples
    --------
    >>> class Coin:  # guess 1 to win
    ...     def reset(self): return "table"
    ...     def step(self, action): return "table", float(action), True
    >>> agent = QLearning(2, gamma=0.0, episodes=50).learn(Coin())
    >>> agent.act("table"), round(agent.value("table"), 6)
    (1, 1.0)
    """

    constraints: ClassVar = {
        "n_actions": Count(),
        "gamma": Number(low=0.0, high=1.0, open_high=True),
        "epsilon": Number(low=0.0, high=1.0),
        "episodes": Count(),
        "max_steps": Count(),
    }

    n_actions: int
    alpha: Any = "visits"
    gamma: float = 0.9
    epsilon: float = 0.1
    episodes: int = 500
    max_steps: int = 200
    random_state: int = 0
    q_: dict[State, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    counts_: dict[tuple[State, int], dict[State, int]] = field(default_factory=dict, init=False, repr=False)
    rewards_: dict[tuple[State, int], float] = field(default_factory=dict, init=False, repr=False)
    returns_: list[float] = field(default_factory=list, init=False, repr=False)

    def learn(self, environment: Environment) -> "QLearning":
        """Live through the episodes; an interrupt keeps what was learnt so far.

        Parameters
        ----------
        environment : Environment
            The world to act in.
        """
        check(self)
        if self.alpha != "visits":
            Positive().check(self, "alpha")
            if self.alpha > 1:
                raise refuse(self, f"alpha must be at most 1, or 'visits'; got {self.alpha!r}.")
        self.q_, self.counts_, self.rewards_, self.returns_ = {}, {}, defaultdict(float), []
        random = np.random.default_rng(self.random_state)
        try:
            for _ in range(self.episodes):
                self.returns_.append(self._episode(environment, random))
        except KeyboardInterrupt:
            pass
        return self

    def _episode(self, environment: Environment, random: np.random.Generator) -> float:
        state, total = environment.reset(), 0.0
        for _ in range(self.max_steps):
            values = self._values(state)
            if random.random() < self.epsilon:
                action = int(random.integers(self.n_actions))
            else:
                action = int(random.choice(np.flatnonzero(values == values.max())))
            following, reward, done = environment.step(action)
            self.observe(state, action, float(reward), following, done)
            state, total = following, total + float(reward)
            if done:
                break
        return total

    def observe(self, state: State, action: int, reward: float, following: State, done: bool = False) -> None:
        """Learn from one step, however it came about.

        Parameters
        ----------
        action : int
            The action that was taken.
        reward : float
            Reward of the step.
        following : State
            The state that followed.
        done : bool, default=False
            Whether the episode is over.
        """
        seen = self.counts_.setdefault((state, action), defaultdict(int))
        seen[following] += 1
        self.rewards_[state, action] = self.rewards_.get((state, action), 0.0) + reward
        rate = 1.0 / sum(seen.values()) ** 0.8 if self.alpha == "visits" else float(self.alpha)
        best = 0.0 if done else float(self._values(following).max())
        values = self._values(state)
        values[action] += rate * (reward + self.gamma * best - values[action])

    def _values(self, state: State) -> np.ndarray:
        if state not in self.q_:
            self.q_[state] = np.zeros(self.n_actions)
        return self.q_[state]

    def act(self, state: State) -> int:
        """Return the action of largest value; the first of equal ones, and 0 in a state that was never seen."""
        return int(self.q_[state].argmax()) if state in self.q_ else 0

    def value(self, state: State) -> float:
        """Return the value of a state: that of its best action."""
        return float(self.q_[state].max()) if state in self.q_ else 0.0

    # How the world develops and what actions do --------------------------------------------------------------

    def transition(self, state: State, action: int) -> Transition:
        """Return what was seen after an action in a state.

        Parameters
        ----------
        action : int
            The action that was taken.
        """
        seen = self.counts_.get((state, action))
        if not seen:
            raise refuse(self, f"action {action!r} was never tried in state {state!r}.")
        total = sum(seen.values())
        shares = {following: count / total for following, count in seen.items()}
        return Transition(total, shares, self.rewards_[state, action] / total)

    def plan(self, tol: float = 1e-10, max_iter: int = 100_000) -> dict[State, float]:
        """Return the values of states in the world as it was counted, by value iteration; states that were only reached
        count 0. Actions that were never tried are not planned with.

        Parameters
        ----------
        tol : float, default=1e-10
            Change of the values that ends the iterations.
        max_iter : int, default=100000
            Largest number of iterations.
        """
        known: dict[State, list[Transition]] = defaultdict(list)
        for state, action in self.counts_:
            known[state].append(self.transition(state, action))
        values = dict.fromkeys(known, 0.0)
        for _ in range(max_iter):
            new = {
                state: max(
                    option.reward + self.gamma * sum(p * values.get(s, 0.0) for s, p in option.next_states.items())
                    for option in options
                )
                for state, options in known.items()
            }
            moved = max((abs(new[s] - values[s]) for s in new), default=0.0)
            values = new
            if moved <= tol * (1 - self.gamma):
                break
        return values
