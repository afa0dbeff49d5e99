"""What the package says it offers is what it offers."""

import inspect

import pytest

import longtake


def test_all_is_what_is_exported():
    for name in longtake.__all__:
        assert getattr(longtake, name) is not None
    named = {n for n, v in vars(longtake).items() if not n.startswith("_") and inspect.isclass(v)}
    assert named <= set(longtake.__all__) | {"Any"}
    assert set(longtake.__all__) <= set(dir(longtake))  # which shells complete
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        longtake.opne  # noqa: B018
