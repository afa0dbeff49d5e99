"""An empty library, with encoders that need no model."""

import pytest
from unit.library.shelf import SETTINGS

from longtake.config import cache_folder
from longtake.library import Library
from longtake.perception.loader import PerceptionModels
from longtake_bench.lab.footage import LabEncoder


@pytest.fixture
def library(tmp_path):
    perception = PerceptionModels(SETTINGS.perception, cache_folder(SETTINGS), images=LabEncoder())
    return Library(tmp_path / "library", SETTINGS, perception=perception, sentences=LabEncoder())
