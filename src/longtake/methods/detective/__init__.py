"""The parts of VideoDetective: the graph with its belief, facets, observations, evidence."""
