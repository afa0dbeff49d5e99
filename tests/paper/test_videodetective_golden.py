"""``preset=released`` of VideoDetective beside the authors' own results (commit 69eb0ee).

What remains different is named here, case by case, and in docs/methods/videodetective.md.
"""

import dataclasses
import re

import numpy as np
import pytest
from support.detecting import Detectives, play
from support.footages import TestFootage
from support.golden import TOLERANCE, cases, film

from longtake.algorithms import scene_graph, segmentation
from longtake.methods.base import configure
from longtake.methods.videodetective import scores as score
from longtake.methods.videodetective.method import VideoDetective
from longtake.methods.videodetective.plan import Facet, SearchPlan, event_cosines, keyword_cosines
from longtake.methods.videodetective.scenes import Belief, Observer, SceneGraph, SceneText
from longtake.methods.videodetective.search import SceneSearch
from longtake.types import Question, Segment

RELEASED = configure(VideoDetective, {"preset": "released"})
PAPER = configure(VideoDetective, {"preset": "paper"})
REASONS = {
    "no score reaches": "low_max_rel",
    "scores are below": "low_mean_rel",
    "the best score": "flat_gap",
    "more than": "low_ratio",
}


class VectorFootage(TestFootage):
    """A film of given rows and texts of given vectors; other texts have none."""

    def __init__(self, rows, texts):
        super().__init__(len(rows))
        self.encoder.thresholds = {}
        self._rows, self._texts = np.asarray(rows), texts

    def embeddings(self):
        return self._rows

    def encode(self, texts):
        rows = np.zeros((len(texts), self._rows.shape[1]))
        for row, text in zip(rows, texts, strict=True):
            # several events in one scene: the normalised sum
            parts = re.findall(r"event \d+", text) or [text]
            if all(part in self._texts for part in parts):
                row[:] = np.sum([self._texts[part] for part in parts], axis=0)
                row /= np.linalg.norm(row) if len(parts) > 1 else 1.0
        return rows


@pytest.mark.parametrize(
    "method", [RELEASED, PAPER, VideoDetective()], ids=["released", "paper", "full"]
)
@pytest.mark.parametrize(("given", "expected"), cases("videodetective_scenes"))
def test_scenes(given, expected, method):
    rule = method.graph
    found = segmentation.scenes(
        film(given), given["threshold"], shortest=given["min_len"], likeness=rule.likeness
    )
    assert [begin for begin, _ in found] == expected["starts"]
    assert min(end - begin for begin, end in found) == expected["shortest"]


@pytest.mark.parametrize(
    ("seconds", "least", "most", "by_cosine"), [(1, 20, 30, 2), (2, 95, 110, 34)]
)
def test_an_hour_of_fast_cuts_does_not_become_one_scene(seconds, least, most, by_cosine):
    random, count = np.random.default_rng(1), 3600 // seconds
    base = random.normal(size=64)
    # shots of one film: their cosines are about 0.8
    shots = np.sqrt(0.8) * base / np.linalg.norm(base)
    shots = shots + np.sqrt(0.2 / 64) * random.normal(size=(count, 64))
    rows = np.repeat(shots / np.linalg.norm(shots, axis=1, keepdims=True), seconds, axis=0)
    assert least <= len(segmentation.scenes(rows, 0.82)) <= most
    assert len(segmentation.scenes(rows, 0.82, likeness="cosine")) == by_cosine


@pytest.mark.parametrize(("given", "expected"), cases("videodetective_graph"))
def test_graph_and_belief(given, expected):
    names = ("alpha", "tau", "top", "beta", "iterations")
    rule = dataclasses.replace(RELEASED.graph, **{name: given[name] for name in names})
    spans = [(first, last + 1) for first, last in given["scenes"]]
    centres = np.array([(begin + end) / 2 for begin, end in spans])
    nodes = np.array(given["nodes"])
    weights = scene_graph.affinity(nodes, centres, alpha=rule.alpha, tau=rule.tau, top=rule.top)
    spreading = scene_graph.normalise(weights)
    found = np.argwhere(np.triu(weights) > 0).tolist()
    assert found == [edge[:2] for edge in expected["edges"]]
    for i, j, weight, normal in expected["edges"]:
        assert weights[i, j] == pytest.approx(weight, abs=TOLERANCE)
        assert spreading[i, j] == pytest.approx(normal, abs=TOLERANCE)
    belief = Belief(graph_of(nodes, weights), np.array(given["prior"], float), rule)
    assert belief.field == pytest.approx(np.array(expected["F0"]), abs=TOLERANCE)
    for (node, seen), field in zip(given["injected"], expected["F"], strict=True):
        belief.inject(node, seen)
        assert belief.field == pytest.approx(np.array(field), abs=TOLERANCE)


def graph_of(nodes, weights):
    """A graph of scenes of one second."""
    rows = np.arange(len(nodes))
    spans = [(n, n + 1) for n in rows.tolist()]
    segments = tuple(Segment(float(begin), float(end)) for begin, end in spans)
    normal = scene_graph.normalise(weights)
    return SceneGraph(rows, nodes, spans, segments, nodes, weights, normal)


@pytest.mark.parametrize(("given", "expected"), cases("videodetective_nms"))
def test_graph_nms(given, expected):
    count = given["scenes"]
    weights = np.zeros((count, count))
    for i, j, weight in given["edges"]:
        weights[i, j] = weights[j, i] = weight
    belief, nobody = np.array(given["belief"], float), np.zeros((0, count))
    chosen = scene_graph.graph_nms(
        belief, nobody, weights, max_scenes=given["most"], eta=given["eta"]
    )
    assert chosen == expected["selected"]


def search_of(given):
    """A search that has not begun, from the scores of the prior."""
    nodes, texts = np.array(given["nodes"]), given["texts"]
    footage = VectorFootage(nodes, texts)
    facets = [Facet("question", tuple(given["query_keywords"]), ())]
    for name, keywords in given["keywords"].items():
        query = given["queries"].get(name)
        facets.append(Facet(name, tuple(keywords), (query,) if query else ()))
    plan = SearchPlan(tuple(facets), "")
    keyword = keyword_cosines(footage, nodes, plan)
    event = event_cosines(footage, [text or "" for text in given["events"]], plan, 50)
    anchors = score.prior(keyword, event, weight=RELEASED.prior_weight)
    count = len(nodes)
    graph = graph_of(nodes, np.zeros((count, count)))
    belief = Belief(graph, np.zeros(count), RELEASED.graph)
    return SceneSearch(
        footage,
        Question("What?", tuple(given["keywords"])),
        graph,
        plan,
        None,
        keyword,
        event,
        anchors,
        belief,
        10,
        0.2,
        print,
    )


IN_VAIN = {9}
"""Unseen scenes have negative cosines: theirs takes a seen one, in vain (must not)."""


@pytest.mark.parametrize(
    ("number", "given", "expected"),
    [(n, *case) for n, case in enumerate(cases("videodetective_prior"))],
)
def test_prior_and_anchors(number, given, expected):
    search = search_of(given)
    prior = np.maximum(0.0, search.keyword.max(axis=0))
    assert prior == pytest.approx(np.array(expected["Y0"]), abs=TOLERANCE)
    names = list(given["keywords"])
    for row, name in enumerate(names, start=1):
        keyword = np.maximum(0.0, search.keyword[row])
        assert keyword == pytest.approx(np.array(expected["keyword"][name]), abs=TOLERANCE)
        event = score.stretched(search.event[row])
        assert event == pytest.approx(np.array(expected["event"][name]), abs=TOLERANCE)
        assert search.anchors[row] == pytest.approx(
            np.array(expected["fused"][name]), abs=TOLERANCE
        )
    assert search.question_scene() == expected["query_anchor"]
    anchors = {names[facet - 1]: node for facet, node in search.released_anchors().items()}
    assert list(anchors.items()) == list(expected["anchors"].items())
    seen = {*anchors.values(), search.question_scene()} - {None}
    search.belief.open[list(seen)] = False
    for row, name in enumerate(names, start=1):
        open_ = search.belief.open.copy()
        best = []
        while len(best) < 3:
            node = scene_graph.most_believed(search.anchors[row], open_)
            # theirs is not exactly 0 where the lowest event score is subtracted
            if node is None or search.anchors[row, node] <= TOLERANCE:
                break
            best.append(node)
            open_[node] = False
        wanted = expected["next_best_after_anchors"][name]
        assert best == [node for node in wanted if expected["fused"][name][node] > TOLERANCE]
    if search.belief.open.any():
        same = search.closest(given["missing"]) == expected["closest_unseen_to_missing"]
        assert same is (number not in IN_VAIN)


class Scripted(Detectives):
    """Replies of a run: its timeline, its decomposition, and what a look at a scene misses."""

    def __init__(self, given, starts):
        super().__init__(
            events=[
                {"start": str(begin), "end": str(end), "description": text}
                for begin, end, text in given["events"]
            ]
        )
        self.given, self.starts = given, starts

    def decompose(self, times, options):
        given = self.given
        return {
            "query_keywords": given["query_keywords"],
            "general_query": given["general_query"],
            "options": [
                {"option": name, "entities": words, "event_query": given["queries"][name]}
                for name, words in given["keywords"].items()
            ],
        }

    def observe(self, times, options):
        scene = self.starts.index(int(times[0]))
        self.observed.append(scene)
        missing = self.given["missing"][scene]
        return {
            "caption": f"scene {scene}",
            "needs_more_info": bool(missing),
            "missing_keyword": missing,
        }


def run_of(given, expected, monkeypatch, **changes):
    """A run with scripted scores and as many looks, and what was recorded of it."""
    recorded = {}

    def rated(observer, sources):
        number = int(sources["caption"].split()[1])
        scored = (given["scores"][number],) * len(observer.plan.facets)
        return (SceneText("caption", sources["caption"], scored),)

    def record(graph, label, values, nodes=None):
        recorded.setdefault(label, []).append((list(values), nodes))

    monkeypatch.setattr(Observer, "rated", rated)
    monkeypatch.setattr(SceneGraph, "record", record)
    footage = VectorFootage(film(given), given["texts"])
    models = Scripted(given, expected["scenes"])
    question = Question(given["question"], tuple(f"option {name}" for name in given["options"]))
    # a step without a look is not copied
    looks = len(dict.fromkeys(expected["observed"]))
    fields = {"frames": given["frames"], "base_steps": looks, "steps_per_option": 0}
    method = configure(VideoDetective, {"preset": "released", **fields, **changes})
    assert RELEASED.steps(question) == expected["steps"]
    _, heard = play(models, footage, question, method)
    return models, heard, recorded


AGAIN = {6, 23, 24, 25, 30}
"""All scenes were seen: theirs observes one again and diffuses again (must not)."""
PACKS = {8, 18}
"""Theirs groups the frames of "not correct" questions by option (docs: not copied)."""


@pytest.mark.parametrize(
    ("number", "given", "expected"),
    [(n, *case) for n, case in enumerate(cases("videodetective_runs"))],
)
def test_runs(number, given, expected, monkeypatch):
    models, heard, recorded = run_of(given, expected, monkeypatch)
    fields = [np.array(values) for values, _ in recorded["belief"]]
    why = [note.data["why"] for note in heard.notes("fallback")]
    rules = [name for text, name in REASONS.items() if why and why[0].startswith(text)]
    assert models.shown["timeline"][0] == expected["timeline_frames"]
    assert models.observed == list(dict.fromkeys(expected["observed"]))
    assert models.shown["observe"][:3] == expected["observed_frames"]
    assert fields[0] == pytest.approx(np.array(expected["F0"]), abs=TOLERANCE)
    tolerance = 0.02 if number in AGAIN else TOLERANCE
    assert fields[-1] == pytest.approx(np.array(expected["F"]), abs=tolerance)
    assert rules == ([expected["fallback"]] if expected["fallback"] else [])
    if expected["selected"] is not None:
        assert recorded["selected"][0][1] == expected["selected"]
    assert (models.shown["answer"][0] == expected["frames"]) is (number not in PACKS)


def test_without_refinement_the_released_search_ends_with_its_anchors(monkeypatch):
    given, expected = cases("videodetective_runs")[6]
    models, heard, _ = run_of(given, expected, monkeypatch, refinement=False)
    assert {note.data["why"] for note in heard.notes("observed")} == {"anchor"}
    assert models.observed == expected["observed"][: len(models.observed)]
    assert len(models.observed) < len(set(expected["observed"]))
