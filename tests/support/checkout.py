"""Tests that read files of the repository which are not beside them when a wheel is tested."""

from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
"""The package's source; ``make release-check`` runs the tests without it."""

reads_the_source = pytest.mark.skipif(not SOURCE.is_dir(), reason="reads the source")
