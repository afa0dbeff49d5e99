"""How long work still takes, and what it has cost."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from longtake.cli.output import seconds_left
from longtake.index import together
from longtake.index.costs import Cost, add_costs, known_costs, usual_costs
from longtake.index.pace import Pace, beside, own_cpu, passes
from longtake.index.store import Store


def remaining(costs: list[float], loading: float = 0.0) -> list[tuple[float, float, float]]:
    """Time over, time left as told, time left in truth, after each step."""
    clock = [0.0]
    pace = Pace(len(costs), now=lambda: clock[0], work=lambda: clock[0])
    clock[0] = loading
    told = []
    for some in passes(len(costs)):
        for number in some:
            clock[0] += costs[number]
            share = pace.finished(number)
            truth = loading + sum(costs) - clock[0]
            told.append((clock[0], seconds_left(clock[0], share), truth))
    return told


EMPTY, FULL = 0.2, 2.0
FILMS = {
    "all alike": [1.0] * 60,
    "text at the end": [EMPTY] * 90 + [FULL] * 90,
    "text at the beginning": [FULL] * 40 + [EMPTY] * 160,
    "text here and there": ([EMPTY] * 15 + [FULL] * 15) * 6,
    "noise": np.random.default_rng(1).gamma(2.0, 0.5, 300).tolist(),
}


@pytest.mark.parametrize("loading", [0.0, 5.0])
@pytest.mark.parametrize("name", FILMS)
def test_the_time_left_holds_from_a_tenth_of_the_way_on(name, loading):
    total = loading + sum(FILMS[name])
    for over, told, truth in remaining(FILMS[name], loading)[1:]:
        # near the end, a second more or less is many per cent of what is left
        if over >= 0.1 * total:
            assert told == pytest.approx(truth, rel=0.3, abs=0.03 * total)


@pytest.mark.parametrize("name", FILMS)
def test_the_time_left_holds_again_soon_after_other_work_has_ended(name):
    costs = FILMS[name]
    work, clock, told = [0.0], [0.0], []
    pace = Pace(len(costs), now=lambda: clock[0], work=lambda: work[0])
    order = [number for some in passes(len(costs)) for number in some]
    for place, number in enumerate(order):
        work[0] += costs[number]
        # something else takes half of the machine until a quarter of the steps are done
        clock[0] += costs[number] * (2.0 if place < len(order) / 4 else 1.0)
        told.append((place, clock[0], seconds_left(clock[0], pace.finished(number))))
    total = clock[0]
    for place, over, left in told:
        # a tenth of the steps shows the new speed
        if place >= 0.35 * len(order):
            assert left == pytest.approx(total - over, rel=0.3, abs=0.03 * total)


def test_work_in_another_thread_is_left_out():
    before = own_cpu()
    with beside(lambda: 100.0):
        assert own_cpu() < before - 99.0
    assert own_cpu() >= before


def test_every_step_is_taken_once_and_ends_at_all():
    for count in (0, 1, 2, 9, 10, 137):
        steps = [number for some in passes(count) for number in some]
        assert sorted(steps) == list(range(count))
    assert remaining([3.0])[-1] == (3.0, 0.0, 0.0)
    assert seconds_left(5.0, 0.0) is None


def test_costs_of_all_films_give_a_rate_per_minute(tmp_path):
    store = Store(tmp_path)
    for number, length in (("a", 60.0), ("b", 180.0)):
        folder = store.film(number)
        folder.path.mkdir(parents=True)
        add_costs(folder, {"speech": Cost(9.0, 2.0, length / 2)})
        add_costs(folder, {"speech": Cost(9.0, 2.0, length / 2), "frames": Cost(1.0, None, 1.0)})
        assert known_costs(folder)["speech"] == Cost(18.0, 4.0, length)
    # what an earlier version recorded is shown, but says nothing about the processor
    old = store.film("c")
    old.path.mkdir()
    (old.path / "costs.json").write_text(json.dumps({"onscreen": 7.5}))
    assert known_costs(old) == {"onscreen": Cost(7.5, None)}
    assert usual_costs(store) == {"speech": 2.0}


def test_speech_that_began_earlier_is_shown_as_a_share_of_the_waiting(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(together.time, "perf_counter", lambda: clock[0])
    told, go_on = threading.Event(), threading.Event()

    class Speech:
        def left(self):
            return 1.0

        def build_held(self, advance):
            clock[0] = 80.0
            advance(0.8)
            told.set()
            go_on.wait()

    hearing = together._Beside(SimpleNamespace(duration=60.0), Speech())
    told.wait()
    assert 0.0 < hearing.cpu() < 60.0
    # 20 seconds were left at 80; waiting began there, and 5 of them are over
    clock[0] = 85.0
    share = hearing._waited(5.0)
    assert seconds_left(5.0, share) == pytest.approx(15.0)
    go_on.set()
    assert hearing.finish(lambda share: None).film_seconds == 60.0
