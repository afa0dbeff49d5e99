"""Planning: what a simulated model does next, given the question and the steps so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longtake.lab.facts import Sighting
from longtake.lab.grammar import facts_in
from longtake.lab.mind import Mind, scope_of
from longtake.lab.solving import SPOKEN_FORMS
from longtake.lab.worded import is_form
from longtake.models.chat import ToolSpec
from longtake.timecode import clock
from longtake.types import Segment

SIMPLE = frozenset({"what", "who", "where", "deed", "colour", "sign"})
"""Forms of questions that a single scene answers, so a search can find it."""
GROUNDINGS = 3
"""How often a planner searches for moments before it gives up."""
TOOL_USES = 3
"""How many tools an agent uses before it answers with what it has."""

ROLES: Mapping[str, str] = {
    "ground": r"ground|locali[sz]|retriev|search",
    "perceive": r"percep|visual|inspect|look|watch",
    "subtitle": r"subtitle|speech|listen|transcript",
    "finish": r"finish|answer|done|conclude",
}
"""Role of an agent to a pattern for its name."""


def role_of(name: str) -> str:
    """The role that an agent's name suggests; empty if none matches."""
    for role, pattern in ROLES.items():
        if re.search(pattern, name, re.IGNORECASE):
            return role
    return ""


def history(mind: Mind, names: Sequence[str]) -> list[str]:
    """The roles that have acted so far, in order, from lines that begin with an agent's name."""
    # longest first, so that no name hides another that begins with it
    listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    acted = re.findall(
        rf'^[\W\d]*(?:step\W*\d+\W*)?(?:agent\W*)?({listed})\b|"agent":\s*"({listed})"',
        "\n".join(_material(mind)),
        re.IGNORECASE | re.MULTILINE,
    )
    return [role_of(first or second) for first, second in acted]


def _material(mind: Mind) -> list[str]:
    quoted = re.findall(r"<material[^>]*>(.*?)</material>", mind.shown.text, re.DOTALL)
    said = [m.text for m in mind.shown.messages if m.role in ("assistant", "tool")]
    # instructions also name agents; they count only if nothing else is there
    return [*quoted, *said] or [mind.shown.text]


def next_agent(mind: Mind, names: Sequence[str]) -> str:
    """The agent that acts next.

    A plan never finishes before what grounding returned has been looked at. Questions about speech
    go to the subtitles first. Anything unsettled is grounded and looked at, up to three times.
    """
    done = history(mind, names)
    by_role = {role_of(name): name for name in names}
    spoken = mind.query is not None and mind.query.form in SPOKEN_FORMS
    if done and done[-1] == "ground" and "perceive" in by_role:
        role = "perceive"
    elif mind.grade == 3:
        role = "finish"
    elif spoken and "subtitle" not in done:
        role = "subtitle"
    elif spoken or done.count("ground") >= GROUNDINGS:
        role = "finish"
    else:
        role = "ground"
    return by_role.get(role) or by_role.get("finish") or names[0]


def instruction(mind: Mind) -> str:
    """The instruction for the chosen agent: what to look for, and where."""
    named = [f"{clock(s.start)} to {clock(s.end)}" for s in best_intervals(mind)[:4]]
    where = f" Look at {', '.join(named)}." if named else ""
    return f"Look for this: {mind.retrieval}.{where}"


def best_intervals(mind: Mind) -> list[Segment]:
    """The time ranges that the prompt names, most relevant lines first."""
    start, end = scope_of(mind)
    ranked: list[tuple[float, int, Segment]] = []
    for line in mind.shown.text.splitlines():
        if is_form(line):
            continue
        stated = [Sighting(fact, None) for _, fact in facts_in(line)]
        relevance = mind.relevance(stated)
        for segment in mind.shown.intervals(line):
            # the whole film is not worth naming
            if segment.overlap(Segment(start, end)) > 0 and segment.duration < mind.shown.duration:
                ranked.append((-relevance, len(ranked), segment))
    ranked.sort(key=lambda entry: entry[:2])
    return list(dict.fromkeys(segment for _, _, segment in ranked))


def uses(mind: Mind) -> int:
    """How many tools were used so far."""
    native = sum(len(message.tool_calls) for message in mind.shown.messages)
    worded = sum(m.role == "assistant" and '"tool"' in m.text for m in mind.shown.messages)
    return native or worded


def wants_tool(mind: Mind) -> bool:
    """Whether another tool call is worthwhile."""
    return mind.grade < 3 and uses(mind) < TOOL_USES


def choose_tool(mind: Mind, names: Sequence[str]) -> str:
    """The name of the tool to use.

    Among search tools: search for what a single scene answers, score everything else. Otherwise
    inspect the time ranges that the prompt names, or survey the film if it names none.
    """
    for pattern in _tool_patterns(mind, names):
        for name in names:
            if re.search(pattern, name, re.IGNORECASE):
                return name
    return names[0]


def _tool_patterns(mind: Mind, names: Sequence[str]) -> list[str]:
    """Patterns for the names of suitable tools, best first."""
    if any(re.search("retriev|search", name) for name in names):
        simple = mind.query is not None and mind.query.form in SIMPLE
        return ["retriev|search", "score"] if simple else ["score", "retriev|search"]
    named = best_intervals(mind)
    if not named:
        return ["summary|global|survey", "inspect"]
    several_new = len(named) > 1 and uses(mind) == 0
    return ["multi", "inspect"] if several_new else ["inspect", "multi"]


def next_segment(mind: Mind) -> Segment:
    """The segment to look at next; each use of a tool takes the next named time range."""
    start, end = scope_of(mind)
    named = best_intervals(mind)
    return named[uses(mind) % len(named)] if named else Segment(start, end)


def pick_tool(mind: Mind, tools: Sequence[ToolSpec]) -> ToolSpec:
    """The specification of the tool to use."""
    chosen = choose_tool(mind, [tool.name for tool in tools])
    return next(tool for tool in tools if tool.name == chosen)


PLANNING: Mapping[str, Callable[[Mind], Any]] = {
    **dict.fromkeys(("instruct", "instruction"), instruction),
    **dict.fromkeys(("start", "start_time", "begin"), lambda mind: next_segment(mind).start),
    **dict.fromkeys(("end", "end_time", "stop"), lambda mind: next_segment(mind).end),
}
"""Skills for the fields of plans and tool arguments.

``agent`` and ``tool`` are filled in :mod:`longtake.lab.forms`, because they depend on the choices.
"""
