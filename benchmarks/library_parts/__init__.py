"""The parts of ``benchmarks/library.py``."""
