"""Footage made of words, and a team with scripted replies."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longtake.agents.run import Agent
from longtake.footage.plain import CaptionedFootage
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Message, Options

WORDS = ("cat", "dog", "car", "boat")
UNREADABLE = "I cannot say."
"""A reply in which nothing can be read, not even a text."""


class WordSpace:
    """Encodes texts as counts of a few words, so that cosines can be worked out by hand."""

    name = "words"

    def texts(self, texts: Sequence[str]) -> Any:
        counts = [[0.1 + len(re.findall(word, text.lower())) for word in WORDS] for text in texts]
        rows = np.asarray(counts, np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class TalkingFootage(CaptionedFootage):
    """One caption per second: ``[("cat", 50), ("dog", 50)]`` is 50 s of cat, then 50 s of dog."""

    def __init__(self, scenes: Sequence[tuple[str, int]]) -> None:
        captions = []
        for what, seconds in scenes:
            captions += [f"a {what} at {second % 7}" for second in range(seconds)]
        super().__init__("talking", captions, WordSpace())


class Team:
    """Agents with given answers per round and given scores; other replies follow from these."""

    def __init__(
        self,
        answers: Mapping[str, Sequence[str | None]],
        scores: Mapping[str, Mapping[str, int]],
        *,
        groups: list[list[int]] | None = None,
        whole: bool = False,
        mute: Sequence[str] = (),
        decision: str = "",
    ) -> None:
        self._answers, self._scores, self._groups = answers, scores, groups
        self._whole, self._mute, self._decision = whole, mute, decision
        self._lock = threading.Lock()
        self._round = dict.fromkeys(answers, 0)
        self.asked: list[tuple[str, str, str]] = []
        """Agent, prompt, and all words it was told; what was asked again is left out."""
        self.agents = [
            Agent(
                name, ScriptedChat(lambda m, o, name=name: self._say(name, m, o), card=Card(name))
            )
            for name in answers
        ]

    def calls(self, prompt: str) -> int:
        return sum(asked == prompt for _, asked, _ in self.asked)

    def told(self, prompt: str) -> list[str]:
        return [text for _, asked, text in self.asked if asked == prompt]

    def times(self, prompt: str) -> list[list[int]]:
        """The moments shown, call by call."""
        clocks = [
            re.findall(r"^\[(\d\d):(\d\d):(\d\d)\]", text, re.MULTILINE)
            for text in self.told(prompt)
        ]
        return [[int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in found] for found in clocks]

    def _say(self, name: str, messages: Sequence[Message], options: Options) -> str:
        text = "\n".join(message.text for message in messages)
        prompt = options.prompt
        with self._lock:
            if len(messages) == 2:
                self.asked.append((name, prompt, text))
                if prompt.endswith(("/answer", "/act")):
                    self._round[name] += 1
        if prompt in self._mute:
            return UNREADABLE
        return self._reply(name, prompt, text, options)

    def _reply(self, name: str, prompt: str, text: str, options: Options) -> str:
        number = self._round[name]
        fields = list((options.schema or {}).get("properties", {}))
        if prompt.endswith(("/answer", "/act")):
            said = self._answers[name][number - 1]
            given = {"reason": "so it seems"} if "reason" in fields else {}
            return UNREADABLE if said is None else json.dumps({**given, fields[-1]: said})
        if prompt == "shared/score":
            if name not in self._scores:
                return "all are fine"
            asked = (options.schema or {})["properties"]
            judged = {
                field: asked[field]["description"].removeprefix("score of ") for field in fields
            }
            card = self._scores[name]
            return json.dumps({field: card[who] for field, who in judged.items() if who in card})
        if prompt == "lvagent/decide":
            return json.dumps({fields[0]: self._decision})
        first, again = f"{name} looks for a dog", f"{name} looks for a car"
        said = re.findall(r"\w+ says .* in round \d", text)
        replies = {
            "clue": {"clue": first},
            "refine": {"clue": again},
            "reason": {
                "reason": f"{name} says {self._answers[name][number - 1]} in round {number}"
            },
            "gate": {"whole_video": self._whole},
            "summarise": {"explanation": "in short: " + "; ".join(said)},
            "key": {"key_information": first},
            "key_again": {"key_information": again},
            "same_meaning": {
                "groups": (self._groups or [])[: 1 + len(re.findall("\n[23]: ", text))]
            },
        }
        reply = replies[prompt.partition("/")[2]]
        assert list(reply) == fields, f"{prompt} is answered with {fields}"
        return json.dumps(reply)
