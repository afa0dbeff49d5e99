"""Symphony: a planner, three agents that it sends out, and one that reviews the answer."""
