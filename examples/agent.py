"""Three agents: one learns the values of a chain, one asks questions, one is made of four parts
=============================================================================================

Run `python examples/agent.py` to print what they learnt.
"""

import numpy as np

from assay.agent import LearningAgent, QLearning
from assay.textbook.concepts import VersionSpace


class Chain:
    """Two states. Action 1 goes from "left" to "right" with probability 0.8; in "right" it pays 1 and stays with
    probability 0.9. Action 0 pays 0.2 in "left" and leads back to it from everywhere."""

    LEFT, RIGHT = "left", "right"

    def __init__(self, seed: int = 0) -> None:
        self.random, self.state = np.random.default_rng(seed), self.LEFT

    def reset(self) -> str:
        self.state = self.RIGHT if self.random.random() < 0.5 else self.LEFT
        return self.state

    def step(self, action: int) -> tuple[str, float, bool]:
        here, chance = self.state, self.random.random()
        if action == 0:
            self.state = self.LEFT
            return self.state, 0.2 if here == self.LEFT else 0.0, False
        if here == self.LEFT:
            self.state = self.RIGHT if chance < 0.8 else self.LEFT
            return self.state, 0.0, False
        self.state = self.RIGHT if chance < 0.9 else self.LEFT
        return self.state, 1.0, False


def threshold_questions(n: int, truth: int) -> tuple[int, int]:
    """Return the threshold over 0..n-1 that questions find, and how many they are."""
    rules = [lambda rows, t=t: np.where(np.asarray(rows) >= t, 1, -1) for t in range(n + 1)]
    space, asked, points = VersionSpace(rules), 0, list(range(n))
    while (place := space.query(points)) is not None:
        space.observe(points[place], 1 if points[place] >= truth else -1)
        asked += 1
    return int(np.sum(space.hypotheses[0](points) < 0)), asked


def taster(generator: bool, inputs: list[str], dishes: tuple[str, ...] = ("soup", "salad", "cake")) -> LearningAgent:
    """Return an agent that learns which of three dishes each guest likes; with a generator it tries what it never
    tried, also for guests who have not come yet."""
    likes = {guest: dishes[i % len(dishes)] for i, guest in enumerate(inputs)}
    believed: dict[str, dict[str, float]] = {}

    def act(guest: str) -> str:
        scores = believed.get(guest, {})
        return max(dishes, key=lambda dish: scores.get(dish, 0.0))

    def learn(guest: str, dish: str, score: float) -> None:
        believed.setdefault(guest, {})[dish] = score

    def propose(steps: list) -> tuple[str, str] | None:
        return next(((g, d) for g in inputs for d in dishes if d not in believed.get(g, {})), None)

    return LearningAgent(
        act, lambda guest, dish: float(likes[guest] == dish) - 0.1, learn, propose if generator else None
    )


def main() -> None:
    agent = QLearning(2, gamma=0.8, epsilon=0.3, episodes=200).learn(Chain())
    for state in (Chain.LEFT, Chain.RIGHT):
        seen = agent.transition(state, 1)
        print(f"{state}: value {agent.value(state):.3f}, planned {agent.plan()[state]:.3f}, action {agent.act(state)};")
        print(f"  action 1 was tried {seen.times} times, pays {seen.reward:.2f}, leads to {seen.next_states}")
    found, asked = threshold_questions(100, 37)
    print(f"threshold {found} among 100 points found with {asked} questions")
    guests = [f"guest {i}" for i in range(6)]
    for generator in (False, True):
        agent_of_parts = taster(generator, guests)
        scores = agent_of_parts.run(guests[:3] * 10)
        first, last, met = np.mean(scores[:6]), np.mean(scores[-6:]), len(agent_of_parts.asked)
        print(f"generator {generator}: score {first:.2f} -> {last:.2f}, {met} of 6 guests met")


if __name__ == "__main__":
    main()
