"""Measuring methods: benchmarks, runs that survive anything, and scores that mean something."""
