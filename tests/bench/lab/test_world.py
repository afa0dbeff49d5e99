"""Worlds: deterministic and consistent."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtake.errors import ConfigError
from longtake_bench.lab.facts import Deed, Sign
from longtake_bench.lab.profile import PROFILE
from longtake_bench.lab.world import make_script


def test_another_seed_gives_another_world():
    assert len({make_script(seed, 10).to_json() for seed in range(20)}) == 20


@settings(max_examples=25)
@given(seed=st.integers(0, 16383), minutes=st.integers(1, 90))
def test_a_script_is_sound(seed, minutes):
    script = make_script(seed, minutes)
    assert (script.scenes[0].start, script.scenes[-1].end) == (0, minutes * 60)
    assert all(a.end == b.start and a.place != b.place for a, b in pairwise(script.scenes))
    assert all(scene.end - scene.start >= 15 for scene in script.scenes)
    assert all(a.end <= b.start for a, b in pairwise(script.deeds)), "one deed at a time"
    deeds = [h.fact for h in script.deeds]
    assert len(set(deeds)) == len(deeds), "nothing happens twice"
    signs = [h.fact for h in script.signs]
    assert len({sign.text for sign in signs}) == len(signs)
    assert len({(sign.colour, sign.place) for sign in signs}) == len(signs)
    for scene in script.scenes:
        for happening in (*scene.deeds, *scene.signs):
            assert scene.start <= happening.start < happening.end <= scene.end
            assert happening.fact.place == scene.place
        assert all(h.fact.person in scene.people for h in scene.deeds)
    assert all(a.end <= b.start for a, b in pairwise(script.spoken))


def test_a_coat_alone_identifies_nobody_and_deeds_have_twins():
    script = make_script(5, 60)
    coats = [person.coat for person in script.cast]
    assert all(coats.count(coat) == 2 for coat in coats)
    deeds = [h.fact for h in script.deeds]

    def respects(a: Deed, b: Deed) -> int:
        names = ("person", "verb", "thing", "place")
        return sum(getattr(a, name) == getattr(b, name) for name in names)

    twins = sum(any(respects(a, b) == 3 for b in deeds) for a in deeds)
    assert twins > len(deeds) / 4


def test_events_and_lines_are_as_short_as_measured_ones():
    world = PROFILE.world
    scripts = [make_script(seed, 60) for seed in range(10)]
    lengths = [h.end - h.start for script in scripts for h in (*script.deeds, *script.signs)]
    # one event in ten lasts a second by itself, and a small one always does
    assert lengths.count(1) / len(lengths) == pytest.approx(
        world.small + (1 - world.small) / 10, abs=0.03
    )
    assert max(lengths) == max(world.event)
    longer = [length for length in lengths if length > 1]
    # scenes cut some of the long ones short
    assert np.mean(longer) == pytest.approx(np.mean([n for n in world.event if n > 1]), rel=0.1)
    said = [line.end - line.start for script in scripts for line in script.spoken]
    assert np.mean(said) == pytest.approx(np.mean(world.line), rel=0.05)
    facts = [len(script.sayings) for script in scripts]
    assert np.mean(facts) == pytest.approx(84, rel=0.1)


def test_what_is_visible_is_what_the_scene_holds():
    script = make_script(5, 20)
    deed, sign = script.deeds[3], script.signs[2]
    assert deed.fact in script.visible(deed.start)
    assert deed.fact not in script.visible(deed.end)
    assert sign.fact in script.visible(sign.end - 1)
    assert not any(
        isinstance(fact, Sign) and fact == sign.fact for fact in script.visible(sign.start - 1)
    )


@pytest.mark.parametrize(("seed", "minutes"), [(-1, 5), (20_000, 5), (3, 0), (3, 256)])
def test_worlds_that_do_not_fit_into_the_code_are_rejected(seed, minutes):
    with pytest.raises(ConfigError):
        make_script(seed, minutes)
