"""Evaluation: benchmarks, runs that can be resumed, scores with intervals, and reports."""
