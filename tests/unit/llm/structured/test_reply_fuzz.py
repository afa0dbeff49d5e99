"""Thousands of replies whose truth is known: none is read as something else."""

from __future__ import annotations

from support.replyfuzz import cases, outcomes

NUMBER = 2_000
"""``benchmarks/replies.py --fuzz`` tries more."""


def test_nothing_is_misread() -> None:
    read = list(outcomes(1, NUMBER))
    wrong = [one for one in read if one.misread]
    assert not wrong, "\n".join(
        f"{one.case.text!r} of {one.case.question} was read as {one.read}" for one in wrong[:5]
    )
    whole = [one for one in read if one.case.truth is not None and not one.case.cut]
    share = sum(one.abstained for one in whole) / len(whole)
    print(f"{share:.1%} of the replies that say something, whole, could not be read")
    assert share < 0.15


def test_cases_repeat() -> None:
    assert list(cases(7, 50)) == list(cases(7, 50)) != list(cases(8, 50))
