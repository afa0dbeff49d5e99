"""Every prompt is used, and every use fills its slots."""

import ast
from pathlib import Path

import pytest

import longtake
from longtake import prompts

SOURCE = Path(longtake.__file__).parent
ASK = {"frames", "default", "temperature", "max_tokens", "seed", "turns", "reply"}


def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted(SOURCE.rglob("*.py"))]


def strings(tree: ast.AST) -> set[str]:
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def uses() -> list[tuple[str, str, set[str]]]:
    """Where a prompt named outright is filled: place, name, and the slots given."""
    found = []
    for path, tree in trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or any(
                keyword.arg is None for keyword in node.keywords
            ):
                continue
            given = {keyword.arg or "" for keyword in node.keywords}
            called = node.func
            name: object = None
            if (
                isinstance(called, ast.Name)
                and called.id in ("ask", "use_tools")
                and len(node.args) > 1
            ):
                name, given = getattr(node.args[1], "value", None), given - ASK
            elif (
                isinstance(called, ast.Attribute)
                and called.attr == "render"
                and isinstance(called.value, ast.Call)
            ):
                name = getattr(called.value.args[0], "value", None) if called.value.args else None
            if isinstance(name, str):
                found.append((f"{path.name}:{node.lineno}", name, given))
    return found


@pytest.mark.parametrize("name", prompts.names())
def test_every_prompt_is_used(name: str) -> None:
    assert any(name in strings(tree) for _, tree in trees()), f"nothing names {name}"


def test_slots_match_call_sites() -> None:
    found = uses()
    assert len(found) >= 5, "the test finds the calls it is about"
    for place, name, given in found:
        assert prompts.load(name).slots == given, f"{place} fills {name} wrongly"


@pytest.mark.parametrize("name", prompts.names())
def test_every_prompt_has_text_and_a_hash(name: str) -> None:
    prompt = prompts.load(name)
    assert prompt.text.strip()
    assert len(prompt.digest) == 16
    assert prompts.digests()[name] == prompt.digest
