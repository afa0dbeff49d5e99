"""A film whose scenes match single words, and scripted models, for tests of VideoDetective."""

import json
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from longtake.agents.run import Run
from longtake.config import BudgetSettings
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.videodetective.method import VideoDetective
from longtake.runner.session import solve
from longtake.tracing.events import ScoresSet
from longtake.types import Question, Segment
from support.footages import TestFootage
from support.listening import listening
from support.patience import PATIENCE

QUESTION = Question("Where is it?", ("cat", "dog", "car"))
FACETS = {"question": ["sea"], "A": ["cat"], "B": ["dog"], "C": ["car"]}
FILM = ["sea", "cat", "tree", "dog", "car", "hill", "lake", "road", "barn", "moon", "star", "wood"]


class SceneFootage(TestFootage):
    """A film with one scene of ``length`` seconds per word in ``scenes``.

    Pictures, texts and queries share one space, with one axis per word.
    """

    def __init__(self, scenes: Sequence[str], *, length: int = 10, speech=(), onscreen=()):
        super().__init__(len(scenes) * length, lines=speech, onscreen=onscreen)
        self.length = length
        self.encoder.thresholds["scene"] = 0.5
        self._scenes = list(scenes)
        self._axes = {word: axis for axis, word in enumerate(dict.fromkeys(scenes))}

    def embeddings(self):
        return np.repeat(self.encode(self._scenes), self.length, axis=0)

    def encode(self, texts):
        rows = np.zeros((len(texts), len(self._axes) + 1), np.float32)
        for row, text in zip(rows, texts, strict=True):
            known = [self._axes[word] for word in text.lower().split() if word in self._axes]
            row[known or [-1]] = 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def meanings(self, texts):
        return self.encode(texts)

    def scene(self, number: int) -> Segment:
        return Segment(number * float(self.length), (number + 1) * float(self.length))


class Detectives:
    """An LLM with a given decomposition, and a VLM with a given report per scene."""

    def __init__(
        self,
        facets: Mapping[str, Sequence[str]] | None = None,
        reports: Mapping[int, tuple[str, bool, str]] | None = None,
        *,
        length: int = 10,
        choice: str = "A",
        mute: Sequence[str] = (),
        events: Sequence[Mapping[str, object]] = (),
        together: int = 0,
    ):
        self.facets = dict(facets or {})
        """Keywords by facet: ``question``, letters or numbers; together they are its event."""
        self.reports = dict(reports or {})
        self.length, self.choice, self.mute, self.events = length, choice, mute, events
        self.steps: list[str] = []
        self.prompts: dict[str, list[str]] = {}
        self.observed: list[int] = []
        """Scenes in the order they were looked at."""
        self.shown: dict[str, list[list[float]]] = {}
        self._lock = threading.Lock()
        self._gate = threading.Barrier(together, timeout=PATIENCE) if together else None

    def llm(self, messages, options):
        return self._say("llm", messages, options)

    def vlm(self, messages, options):
        return self._say("vlm", messages, options)

    def _say(self, role, messages, options):
        step = options.prompt.partition("/")[2]
        times = [
            part.time for message in messages for part in message.parts if hasattr(part, "time")
        ]
        with self._lock:
            if len(messages) == 2:
                self.steps.append(f"{role} {step}")
                self.prompts.setdefault(step, []).append(
                    "\n".join(message.text for message in messages)
                )
                self.shown.setdefault(step, []).append(times)
            first = step == "observe" and self._gate and len(self.shown[step]) <= self._gate.parties
        if first:
            self._gate.wait()
        if step in self.mute:
            return "hm"
        return json.dumps(getattr(self, step)(times, options))

    def decompose(self, times, options):
        def part(name):
            words = list(self.facets.get(name, []))
            return {"entities": words, "event_query": " ".join(words)}

        general = list(self.facets.get("question", []))
        reply = {
            "query_keywords": general,
            "general_query": " ".join(general),
            "temporal_plan": "early",
            "vlm_query": "what is there",
        }
        names = [name for name in self.facets if name != "question"]
        if "facets" in options.schema["properties"]:
            return reply | {"facets": [part(name) for name in names]}
        return reply | {"options": [{"option": name, **part(name)} for name in names]}

    def timeline(self, times, options):
        return {"events": list(self.events)}

    def observe(self, times, options):
        scene = int(times[0] // self.length) if times else -1
        with self._lock:
            self.observed.append(scene)
        caption, more, missing = self.reports.get(scene, ("", True, ""))
        return {
            "reasoning": "",
            "caption": caption,
            "needs_more_info": more,
            "missing_keyword": missing,
        }

    def answer(self, times, options):
        field = "choice" if "choice" in options.schema["properties"] else "answer"
        return {"reason": "so it seems", field: self.choice}


def play(detectives, footage, question=QUESTION, method=None, **limits):
    """The result and all events."""
    run = Run(
        {"llm": ScriptedChat(detectives.llm), "vlm": ScriptedChat(detectives.vlm)},
        budget=BudgetSettings(**limits),
    )
    with listening() as heard:
        result = solve(method or VideoDetective(), footage, question, run)
    return result, heard


def looks(heard):
    """Facet, scene and reason of each observation, in order."""
    return [(n.data["facet"], n.data["scene"], n.data["why"]) for n in heard.notes("observed")]


def scores(heard, label):
    """The score events with this label."""
    return [event for event in heard.of(ScoresSet) if event.label == label]
