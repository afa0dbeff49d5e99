"""Host names in one form."""

from longtake.llm.http import normalize_host


def test_names_are_compared_in_one_form() -> None:
    assert normalize_host("API.Example.") == normalize_host("api.example:443") == "api.example"
    assert normalize_host("[2001:DB8::1]:443") == normalize_host("2001:db8::1") == "2001:db8::1"
    assert normalize_host("bücher.example") == normalize_host("xn--bcher-kva.example")
    assert normalize_host("::ffff:192.0.2.1") == "192.0.2.1"
