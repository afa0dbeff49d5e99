"""Symphony: a planner, and the agents it sends."""

from longtake.methods.symphony.planning import Symphony

__all__ = ["Symphony"]
