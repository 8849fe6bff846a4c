"""Agents against the Bellman equations, counts and the parts that they consist of."""

import numpy as np
import pytest

from assay.agent import LearningAgent, QLearning
from examples import agent as example

LEFT, RIGHT = example.Chain.LEFT, example.Chain.RIGHT


def bellman(gamma):
    """Return the values of the chain with action 1 everywhere, from the linear system, and check that it is best."""
    P = np.array([[0.2, 0.8], [0.1, 0.9]])
    r = np.array([0.0, 1.0])
    v = np.linalg.solve(np.eye(2) - gamma * P, r)
    assert 0.2 + gamma * v[0] < v[0]  # action 0 in the left state is worse
    assert gamma * v[0] < v[1]
    return v


@pytest.mark.mission("CON-43")
@pytest.mark.parametrize("gamma", [0.5, 0.8])
def test_values_are_those_of_the_bellman_equations(gamma):
    agent = QLearning(2, gamma=gamma, epsilon=0.4, episodes=600, random_state=1).learn(example.Chain())
    v = bellman(gamma)
    assert [agent.act(LEFT), agent.act(RIGHT)] == [1, 1]
    assert [agent.value(LEFT), agent.value(RIGHT)] == pytest.approx(v, abs=0.05)
    counted = agent.plan()
    assert [counted[LEFT], counted[RIGHT]] == pytest.approx(v, abs=0.05)


class Deterministic:
    """Two states and no chance: action 1 swaps them, which pays 1 from the second; action 0 stays and pays nothing."""

    def reset(self):
        self.state = 0
        return 0

    def step(self, action):
        reward = float(action == 1 and self.state == 1)
        self.state = 1 - self.state if action == 1 else self.state
        return self.state, reward, False


@pytest.mark.mission("CON-43")
def test_a_chain_without_chance_to_a_hundredth():
    agent = QLearning(2, alpha=0.5, gamma=0.9, epsilon=0.3, episodes=60, max_steps=100).learn(Deterministic())
    v = np.linalg.solve(np.array([[1.0, -0.9], [-0.9, 1.0]]), [0.0, 1.0])  # v0 = 0.9 v1, v1 = 1 + 0.9 v0
    assert [agent.value(0), agent.value(1)] == pytest.approx(v, abs=0.01)
    assert agent.plan() == pytest.approx({0: v[0], 1: v[1]}, abs=1e-6)


def test_the_world_is_counted():
    agent = QLearning(2, epsilon=0.5, episodes=200, random_state=2).learn(example.Chain())
    seen = agent.transition(LEFT, 1)
    assert seen.next_states[RIGHT] == pytest.approx(0.8, abs=0.03)
    assert sum(seen.next_states.values()) == pytest.approx(1.0)
    assert agent.transition(RIGHT, 1).reward == 1.0
    assert agent.transition(LEFT, 0).reward == pytest.approx(0.2)
    assert sum(sum(one.values()) for one in agent.counts_.values()) == 200 * 200
    with pytest.raises(ValueError, match="never tried"):
        agent.transition("elsewhere", 0)
    assert agent.act("elsewhere") == 0
    assert agent.value("elsewhere") == 0.0


def test_episodes_end_and_seeds_decide():
    class Once:
        def reset(self):
            return 0

        def step(self, action):
            return 1, 1.0, True

    one, two = (QLearning(3, episodes=20, random_state=7).learn(Once()) for _ in range(2))
    assert one.returns_ == two.returns_ == [1.0] * 20
    assert one.value(0) == pytest.approx(1.0)
    assert one.value(1) == 0.0  # what comes after the end is worth nothing
    assert np.array_equal(one.q_[0], two.q_[0])


@pytest.mark.parametrize(
    "bad", [{"n_actions": 0}, {"gamma": 1.0}, {"epsilon": 2.0}, {"alpha": 0}, {"alpha": 1.5}, {"episodes": 0}], ids=str
)
def test_parameters_are_checked(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        QLearning(**{"n_actions": 2, **bad}).learn(Deterministic())


def test_an_interrupt_keeps_what_was_learnt():
    class Stop(Deterministic):
        steps = 0

        def step(self, action):
            self.steps += 1
            if self.steps > 500:
                raise KeyboardInterrupt
            return super().step(action)

    agent = QLearning(2, episodes=100, max_steps=50).learn(Stop())
    assert len(agent.returns_) == 10
    assert sum(sum(one.values()) for one in agent.counts_.values()) == 500


@pytest.mark.mission("CON-44")
class TestFourParts:
    guests = [f"guest {i}" for i in range(6)]

    def test_the_score_rises_on_a_task_that_stays(self):
        scores = example.taster(True, self.guests).run(self.guests * 8)
        thirds = [np.mean(scores[i : i + 16]) for i in (0, 16, 32)]
        assert thirds[0] < thirds[1] <= thirds[2]
        assert thirds[2] == pytest.approx(0.9)

    def test_without_a_generator_some_inputs_are_never_asked(self):
        alone, curious = (example.taster(generator, self.guests) for generator in (False, True))
        for agent in (alone, curious):
            agent.run(self.guests[:3] * 10)
        assert alone.asked == set(self.guests[:3])
        assert curious.asked == set(self.guests)
        assert not any(step.explored for step in alone.steps)
        tried = {(step.input, step.action) for step in curious.steps}
        assert len(tried) == 6 * 3

    def test_parts_are_called_in_order(self):
        calls = []
        agent = LearningAgent(
            lambda x: calls.append("act") or x,
            lambda x, action: calls.append("judge") or 1.0,
            lambda x, action, score: calls.append("learn"),
            lambda steps: calls.append("propose"),
        )
        assert agent.turn("x") == 1.0
        assert calls == ["act", "judge", "learn", "propose"]

    def test_an_interrupt_ends_the_run(self):
        def critic(x, action):
            if x == 3:
                raise KeyboardInterrupt
            return 0.5

        agent = LearningAgent(lambda x: x, critic, lambda *one: None)
        assert agent.run(range(10)) == [0.5] * 3


@pytest.mark.mission("CON-45")
def test_the_example_asks_few_questions(capsys):
    found = [example.threshold_questions(100, truth) for truth in range(101)]
    assert [threshold for threshold, _ in found] == list(range(101))
    assert max(asked for _, asked in found) == 7
    example.main()
    assert "6 of 6 guests met" in capsys.readouterr().out
