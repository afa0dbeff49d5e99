"""A scripted planner and agents, for tests of Symphony."""

from __future__ import annotations

import json
import re

from longtake.agents.run import Run
from longtake.config import BudgetSettings
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Reply, ToolCall, Unsupported, images
from longtake.methods.symphony.method import Symphony
from longtake.runner.session import solve
from longtake.types import Question
from support.footages import TestFootage
from support.listening import listening

QUESTION = Question("What is on the sofa?", ("a cat", "a toy", "a hat"))
OPEN = Question("What is on the sofa?")


def plan(agent, instruct="find the sofa", **rest):
    return {"reason": "it is time", "agent": agent, "instruct": instruct, **rest}


def finish(choice="B", reason="seen at 00:00:30"):
    return plan("finish", "", answer=choice) | {"reason": reason}


class Script:
    """A planner with given plans and agents with given replies; keeps what each was shown."""

    def __init__(
        self,
        plans,
        *,
        tool="retrieve",
        uses=(),
        score=None,
        verdicts=(),
        native=True,
        subtitles=None,
        context=None,
        finish="C",
    ):
        self.plans, self.uses, self.verdicts = list(plans), list(uses), list(verdicts)
        self.tool, self.score, self.native = tool, score, native
        self.subtitles, self.last = subtitles, finish
        self.shown = {}
        self.chats = {
            "llm": ScriptedChat(self.llm, card=Card("llm", context=context)),
            "vlm": ScriptedChat(self.vlm, card=Card("vlm", vision=True)),
        }

    def keep(self, messages, options):
        name = options.prompt.removeprefix("symphony/")
        self.shown.setdefault(name, []).append(messages)
        return name

    def llm(self, messages, options):
        name = self.keep(messages, options)
        if name == "plan":
            said = self.plans.pop(0) if self.plans else finish()
            return said if isinstance(said, str) else json.dumps(said)
        if name == "ground":
            asked = r"You are asked:\s*(.*?)First turn"
            instruction = re.search(asked, messages[1].text, re.DOTALL)[1]
            return json.dumps({"tool": self.tool, "cue": "a toy", "instruction": instruction})
        if name == "perceive":
            return self.perceive(messages, options)
        if name == "subtitles":
            said = self.subtitles(messages[-1].text)
            return said if isinstance(said, Reply) else json.dumps(said)
        if name == "reflect":
            said = self.verdicts.pop(0) if self.verdicts else {"credible": True, "comment": None}
            return said if isinstance(said, str) else json.dumps(said)
        assert name == "finish"
        return json.dumps({"reason": "it seems so", "choice": self.last})

    def perceive(self, messages, options):
        if options.tools and not self.native:
            raise Unsupported("llm", "tools")
        may = options.tools or "You may use tools" in messages[0].text
        done = sum("No more tools" in m.text for m in messages)
        if may and self.uses and not done:
            name, arguments = self.uses.pop(0)
            if options.tools:
                return Reply("", tool_calls=(ToolCall("1", name, json.dumps(arguments)),))
            return json.dumps({"tool": name, "arguments": arguments})
        return json.dumps({"findings": "[00:00:30] a toy lies on the sofa"})

    def vlm(self, messages, options):
        name = self.keep(messages, options)
        times = [image.time for image in images(messages)]
        if name == "score":
            said = self.score(times)
            if isinstance(said, str):
                return said
            return json.dumps({"caption": "a room", "score": said, "reason": "why"})
        observation = f"[00:00:30] something at {times[0]:.0f}" if times else "words"
        return json.dumps({"observation": observation})

    def times(self, name, number=0):
        return [image.time for image in images(self.shown[name][number])]

    def history(self, number=-1):
        return self.shown["plan"][number][-1].text


def play(script, footage=None, method=None, question=QUESTION, **limits):
    footage = footage or TestFootage(600, {"a toy": [305, 306, 307]})
    run = Run(script.chats, budget=BudgetSettings(**limits))
    with listening() as heard:
        result = solve(method or Symphony(), footage, question, run)
    return result, heard
