"""Receivers of events: the console, a trace file, the meter."""
