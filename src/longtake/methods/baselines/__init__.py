"""The baselines ``uniform`` and ``blind``."""
