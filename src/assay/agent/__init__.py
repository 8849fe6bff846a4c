"""Agents: tabular Q-learning, and the four-part learning agent. `theory.concepts.VersionSpace.query` asks questions."""

from assay.agent._agents import Environment, LearningAgent, QLearning, Step, Transition

__all__ = ["Environment", "LearningAgent", "QLearning", "Step", "Transition"]
