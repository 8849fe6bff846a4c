"""Agents: tabular Q-learning, and the four-part learning agent. `theory.concepts.VersionSpace.query` asks questions."""

from assay.agent._learning_agent import LearningAgent, Step
from assay.agent._q_learning import Environment, QLearning, Transition

__all__ = ["Environment", "LearningAgent", "QLearning", "Step", "Transition"]
