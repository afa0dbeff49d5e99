"""Commands that another installed package adds."""

from __future__ import annotations

import re
import sys

import pytest

MODULE = """
import click


@click.command()
@click.argument("name")
def hello(name):
    '''Say hello.'''
    click.echo(f"hello {name}")
    return 5


not_a_command = 3
"""
COMMANDS = {
    "hello": "hello_package:hello",
    "info": "hello_package:hello",
    "broken": "hello_package_missing:hello",
    "number": "hello_package:not_a_command",
}


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """A package as pip would install it."""
    facts = tmp_path / "hello_package-1.0.dist-info"
    facts.mkdir()
    facts.joinpath("METADATA").write_text(
        "Metadata-Version: 2.1\nName: hello-package\nVersion: 1\n"
    )
    points = "".join(f"{name} = {target}\n" for name, target in COMMANDS.items())
    facts.joinpath("entry_points.txt").write_text(f"[longtake.commands]\n{points}")
    tmp_path.joinpath("hello_package.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("hello_package", None)


def test_it_runs_like_ours(run):
    code, out, err = run("hello", "you")
    assert (code, out, err) == (5, "hello you\n", "")


def test_help_lists_it_after_ours_without_importing_it(run):
    code, out, _ = run("--help")
    assert code == 0
    names = re.findall(r"[\w-]+", out.partition("\n\n")[2])
    added = ["broken", "hello", "number"]
    assert [name for name in names if name in added] == added
    assert names.index("cache") < names.index("broken")
    assert "Added by the package hello-package." in out
    assert "hello_package" not in sys.modules


def test_it_cannot_replace_a_command_of_ours(run):
    code, out, _ = run("info", "--help")
    assert code == 0
    assert "Show a film's length, picture, sound and subtitles." in out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "broken",
            "'broken', added by the package hello-package, cannot be loaded: ModuleNotFound",
        ),
        ("number", "is not a click command: hello_package:not_a_command"),
        ("helo", "did you mean 'hello'?"),
    ],
)
def test_problems_are_explained(run, name, says):
    code, out, err = run(name)
    assert (code, out) == (2, "")
    assert says in err
