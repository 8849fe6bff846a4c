"""Agents: tabular Q-learning and the four-part learning agent. Queries: `textbook.concepts.VersionSpace.query`."""

from assay.agent._agents import Environment, LearningAgent, QLearning, Step, Transition

__all__ = ["Environment", "LearningAgent", "QLearning", "Step", "Transition"]
