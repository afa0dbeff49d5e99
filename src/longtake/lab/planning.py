"""Planning, tools and times: what a simulated model does next, by the question's type and what was done so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longtake.lab.facts import Sighting
from longtake.lab.grammar import facts_in
from longtake.lab.mind import Mind, scope_of
from longtake.lab.solving import SPOKEN_FORMS
from longtake.models.chat import ToolSpec
from longtake.timecode import clock
from longtake.types import Segment

SIMPLE = frozenset({"what", "who", "where", "deed", "colour", "sign"})
"""Forms that one scene answers: a search finds them."""
GROUNDINGS = 3
"""Times that a planner looks for moments before it gives up."""
TOOL_USES = 3
"""Tools that an agent uses before it answers with what it has."""

ROLES: Mapping[str, str] = {
    "ground": r"ground|locali[sz]|retriev|search",
    "perceive": r"percep|visual|inspect|look|watch",
    "subtitle": r"subtitle|speech|listen|transcript",
    "finish": r"finish|answer|done|conclude",
}
"""What an agent does, by what it is called."""


def role_of(name: str) -> str:
    """The role that a name stands for, empty where none fits."""
    return next(
        (role for role, words in ROLES.items() if re.search(words, name, re.IGNORECASE)), ""
    )


def history(mind: Mind, names: Sequence[str]) -> list[str]:
    """The roles that have acted so far, in order, read off lines that begin with an agent's name."""
    listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    found = re.findall(
        rf'^[\W\d]*(?:step\W*\d+\W*)?(?:agent\W*)?({listed})\b|"agent":\s*"({listed})"',
        "\n".join(_material(mind)),
        re.IGNORECASE | re.MULTILINE,
    )
    return [role_of(first or second) for first, second in found]


def _material(mind: Mind) -> list[str]:
    quoted = re.findall(r"<material[^>]*>(.*?)</material>", mind.shown.text, re.DOTALL)
    said = [m.text for m in mind.shown.messages if m.role in ("assistant", "tool")]
    return [*quoted, *said] or [mind.shown.text]


def next_agent(mind: Mind, names: Sequence[str]) -> str:
    """Who acts next.

    Nothing is finished before somebody has looked at what grounding returned. Spoken questions go to the
    subtitles first. What is still open is grounded, looked at, and grounded again, up to three times.
    """
    done = history(mind, names)
    by_role = {role_of(name): name for name in names}
    spoken = mind.query is not None and mind.query.form in SPOKEN_FORMS
    if done and done[-1] == "ground" and "perceive" in by_role:
        role = "perceive"
    elif mind.finding.level == 3:
        role = "finish"
    elif spoken and "subtitle" not in done:
        role = "subtitle"
    elif spoken or done.count("ground") >= GROUNDINGS:
        role = "finish"
    else:
        role = "ground"
    return by_role.get(role) or by_role.get("finish") or names[0]


def instruction(mind: Mind) -> str:
    """What the chosen agent is told: what to look for, and where."""
    named = [f"{clock(s.start)} to {clock(s.end)}" for s in best_intervals(mind)[:4]]
    where = f" Look at {', '.join(named)}." if named else ""
    return f"Look for this: {mind.retrieval}.{where}"


def best_intervals(mind: Mind) -> list[Segment]:
    """The stretches that the prompt names, those first whose line speaks of what is wanted."""
    start, end = scope_of(mind)
    ranked: list[tuple[float, int, Segment]] = []
    for line in mind.shown.text.splitlines():
        if line.startswith('{"') and ('"properties"' in line or '"description"' in line):
            continue  # the form of a reply, or what a tool is told to be good for
        told = [Sighting(fact, None) for _, fact in facts_in(line)]
        worth = mind.relevance(told)
        for segment in mind.shown.intervals(line):
            if segment.overlap(Segment(start, end)) > 0 and segment.duration < mind.shown.duration:
                ranked.append((-worth, len(ranked), segment))
    return list(dict.fromkeys(segment for _, _, segment in sorted(ranked, key=lambda one: one[:2])))


def uses(mind: Mind) -> int:
    """Tools that were used so far."""
    native = sum(len(message.tool_calls) for message in mind.shown.messages)
    worded = sum(m.role == "assistant" and '"tool"' in m.text for m in mind.shown.messages)
    return native or worded


def wants_tool(mind: Mind) -> bool:
    """Whether another look is worth it."""
    return mind.finding.level < 3 and uses(mind) < TOOL_USES


def choose_tool(mind: Mind, names: Sequence[str]) -> str:
    """Search for what one scene answers, score the rest; inspect stretches that are named, else survey."""
    simple = mind.query is not None and mind.query.form in SIMPLE
    named = best_intervals(mind)
    wanted: list[str] = []
    if any(re.search("retriev|search", name) for name in names):
        wanted = ["retriev|search", "score"] if simple else ["score", "retriev|search"]
    elif named:
        wanted = (
            ["multi", "inspect"] if len(named) > 1 and uses(mind) == 0 else ["inspect", "multi"]
        )
    else:
        wanted = ["summary|global|survey", "inspect"]
    hits = (name for pattern in wanted for name in names if re.search(pattern, name, re.IGNORECASE))
    return next(hits, names[0])


def stretch(mind: Mind) -> Segment:
    """The stretch to look at next: each use of a tool takes the next of those that are named."""
    start, end = scope_of(mind)
    named = best_intervals(mind)
    return named[uses(mind) % len(named)] if named else Segment(start, end)


def pick_tool(mind: Mind, tools: Sequence[ToolSpec]) -> ToolSpec:
    """The tool to use."""
    chosen = choose_tool(mind, [tool.name for tool in tools])
    return next(tool for tool in tools if tool.name == chosen)


PLANNING: Mapping[str, Callable[[Mind], Any]] = {
    **dict.fromkeys(("instruct", "instruction"), instruction),
    **dict.fromkeys(("start", "start_time", "begin"), lambda mind: stretch(mind).start),
    **dict.fromkeys(("end", "end_time", "stop"), lambda mind: stretch(mind).end),
}
"""Fields of plans and of tools' arguments; ``agent`` and ``tool`` need to know what there is to choose from."""
