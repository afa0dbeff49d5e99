"""Where events go: the console, a trace file, the meter."""
