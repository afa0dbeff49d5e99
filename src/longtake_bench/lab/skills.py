"""Skills: what a simulated model writes into the fields of a reply, by the name of the field.

:data:`VALUES` and :data:`LISTS` map names to skills: planning and tools first, then judging and
telling, then lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from longtake._util.timecode import CLOCK, SHORT_CLOCK, clock, parse_time
from longtake.types import LETTERS, Segment
from longtake_bench.lab.facts import Deed, Fact, Saying, Sighting, Sign, facts_in, sentence, wish
from longtake_bench.lab.mind import Mind, scope_of, timed
from longtake_bench.lab.prompt import intervals_in, is_form
from longtake_bench.lab.queries import RELATIONS, WHOLE_FILM, option_of, same

SIMPLE = frozenset({"what", "who", "where", "deed", "colour", "sign"})
"""Forms of questions that a single scene answers, so a search can find it."""

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
    messages = [m.text for m in mind.shown.messages if m.role in ("assistant", "tool")]
    # instructions also name agents; they count only if nothing else is there
    return [*quoted, *messages] or [mind.shown.text]


def next_agent(mind: Mind, names: Sequence[str]) -> str:
    """The agent that acts next.

    A plan never finishes before what grounding returned has been looked at. Questions about speech
    go to the subtitles first. Anything unsettled is grounded and looked at, up to three times.
    """
    done = history(mind, names)
    by_role = {role_of(name): name for name in names}
    spoken = mind.query is not None and mind.query.form in RELATIONS
    if done and done[-1] == "ground" and "perceive" in by_role:
        role = "perceive"
    elif mind.grade == 3:
        role = "finish"
    elif spoken and "subtitle" not in done:
        role = "subtitle"
    elif spoken or done.count("ground") >= 3:
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
    scope = scope_of(mind)
    ranked: list[tuple[float, Segment]] = []
    for line in mind.shown.text.splitlines():
        if is_form(line):
            continue
        stated = [Sighting(fact, None) for _, fact in facts_in(line)]
        relevance = mind.relevance(stated)
        for segment in intervals_in(line):
            # the whole film is not worth naming
            if segment.overlap(scope) > 0 and segment.duration < mind.shown.duration:
                ranked.append((relevance, segment))
    ranked.sort(key=lambda entry: -entry[0])
    return list(dict.fromkeys(segment for _, segment in ranked))


def uses(mind: Mind) -> int:
    """How many tools were used so far."""
    native = sum(len(message.tool_calls) for message in mind.shown.messages)
    worded = sum(m.role == "assistant" and '"tool"' in m.text for m in mind.shown.messages)
    return native or worded


def wants_tool(mind: Mind) -> bool:
    """Whether another tool call is worthwhile."""
    return mind.grade < 3 and uses(mind) < 3


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
    named = best_intervals(mind)
    return named[uses(mind) % len(named)] if named else scope_of(mind)


_SCORES = {(3, True): 9, (2, True): 6, (2, False): 4, (3, False): 3}
"""Score by how far the stated facts settle the question, and whether they support the answer."""


def peer_score(mind: Mind, statement: str) -> int:
    """How convincing one answer with its reason is, 1 to 10."""
    return mind.judged(_from_facts(mind, statement), range(1, 11), statement)


def _from_facts(mind: Mind, statement: str) -> int:
    """The score that the stated facts deserve."""
    stated = [
        Sighting(fact, _clock_before(statement, place)) for place, fact in facts_in(statement)
    ]
    finding = mind.find(stated)
    if finding.level == 1 or not stated:
        return 2
    options = mind.shown.options
    letter = re.match(r"\(?([A-Z])\b[.):]?", statement)
    if options and letter:
        supported = option_of(finding, options)
        agrees = supported is not None and LETTERS[supported] == letter[1]
    else:
        agrees = finding.value is not None and finding.value.lower() in statement.lower()
    return _SCORES[finding.level, agrees]


def _clock_before(text: str, place: int) -> float | None:
    """The last time stamp before a position, in seconds."""
    stamps = re.findall(rf"\[({CLOCK})\]", text[:place])
    return parse_time(stamps[-1]) if stamps else None


def describe(mind: Mind) -> str:
    """Describe the pictures; without pictures, summarise the notes."""
    return mind.describe() if mind.shown.moments else summary(mind)


def summary(mind: Mind) -> str:
    """Summarise what is known: first what supports the answer, then everything else."""
    sentences = [sentence(sighting.fact) for sighting in _known(mind)[:6]]
    return mind.padded(" ".join(sentences) or "There is little to tell.")


def findings(mind: Mind) -> str:
    """Report with times what is known: first what supports the answer, then everything else."""
    sentences = [timed(sighting) for sighting in _known(mind)[:8]]
    return mind.padded(" ".join(sentences) or "Nothing was found.")


def _known(mind: Mind) -> list[Sighting]:
    """The first sighting of each fact that is worth telling, supporting facts first."""
    known: dict[Fact, Sighting] = {}
    for sighting in [*mind.finding.support, *mind.shown.sightings]:
        if isinstance(sighting.fact, Deed | Sign | Saying) and _complete(sighting.fact):
            known.setdefault(sighting.fact, sighting)
    return list(known.values())


def _complete(fact: Fact) -> bool:
    return not isinstance(fact, Sign) or (fact.text is not None and fact.colour is not None)


def missing_keyword(mind: Mind) -> str:
    """What to look for next; empty if nothing is missing."""
    return wish(mind.needs[0]) if mind.needs and mind.grade < 3 else ""


def score(mind: Mind) -> int:
    """Relevance, 1 to 4, of the pictures (or else the notes) to what is asked or searched for."""
    relevance = mind.relevance(mind.shown.seen if mind.shown.moments else mind.shown.sightings)
    return 1 + (relevance >= 0.34) + (relevance >= 0.6) + (relevance >= 0.99)


def temporal_plan(mind: Mind) -> str:
    """Which part of the film the question is about."""
    if mind.query is not None and mind.query.form in ("before", "after", "next", "previous"):
        return f"find the moment that is named, then look {mind.query.form} it"
    return f"{clock(scope_of(mind).start)} to {clock(scope_of(mind).end)}"


_PROPOSED_LETTER = re.compile(r"(?:answer|choice|proposed|proposal)\W{1,4}(?:is\W+)?([A-Z])\b")
_PROPOSED_LINE = re.compile(r"\b(?:answer|proposed)\W*:", re.IGNORECASE)


def credible(mind: Mind) -> bool:
    """The verdict on the proposed answer."""
    return mind.judged(is_settled(mind), (True, False), "credible")


def is_settled(mind: Mind) -> bool:
    """Whether the notes settle the question in favour of the proposed answer, if there is one."""
    if mind.finding.level < 3:
        return False
    if mind.shown.options:
        # the last proposal counts: earlier ones may have been rejected
        letters = _PROPOSED_LETTER.findall(mind.shown.text)
        return not letters or letters[-1] == mind.letter
    lines = [line for line in mind.shown.text.splitlines() if _PROPOSED_LINE.search(line)]
    return not lines or any(mind.answer.lower() in line.lower() for line in lines)


def comment(mind: Mind) -> str:
    """What supports the proposed answer, or what is missing."""
    if credible(mind):
        return f"The notes support it: {mind.reason}"
    return f"The notes do not settle it; look for {mind.retrieval}."


def topic(mind: Mind) -> str:
    """What the spoken lines are about."""
    sayings = [s.fact for s in mind.shown.read_facts if isinstance(s.fact, Saying)]
    subjects = [saying.subject for saying in sayings if saying.subject]
    if not subjects:
        return "nothing in particular"
    return f"the narrator speaks of the {', the '.join(subjects[:4])}"


VALUES: Mapping[str, Callable[[Mind], Any]] = {
    # the answer in words, or its letter if the field accepts only letters
    **dict.fromkeys(("answer", "final_answer", "prediction"), attrgetter("answer")),
    **dict.fromkeys(("choice", "letter", "option"), lambda mind: mind.letter or mind.answer),
    "text": lambda mind: mind.answer if mind.query else describe(mind),
    **dict.fromkeys(
        ("reason", "reasoning", "rationale", "justification", "why"),
        lambda mind: mind.padded(mind.reason),
    ),
    "confidence": attrgetter("grade"),
    "needs_more_info": lambda mind: mind.grade < 3,
    "missing_keyword": missing_keyword,
    **dict.fromkeys(("caption", "description", "observation"), describe),
    **dict.fromkeys(("summary", "sentences", "explanation"), summary),
    "findings": findings,
    # what to search for, in at most fifty words
    **dict.fromkeys(
        (
            *("key_information", "clue", "query", "cue", "keyword", "search"),
            *("general_query", "event_query"),
        ),
        attrgetter("retrieval"),
    ),
    "vlm_query": lambda mind: mind.query.text if mind.query else mind.retrieval,
    **dict.fromkeys(("score", "relevance"), score),
    # whether the whole film must be watched: for counting and for the theme
    "whole_video": lambda mind: mind.query is not None and mind.query.form in WHOLE_FILM,
    "temporal_plan": temporal_plan,
    "credible": credible,
    "comment": comment,
    "sentiment": lambda _: "neutral",  # the narrator never shows any
    **dict.fromkeys(("topic", "title"), topic),
    **dict.fromkeys(("instruct", "instruction"), instruction),
    **dict.fromkeys(("start", "start_time", "begin"), lambda mind: next_segment(mind).start),
    **dict.fromkeys(("end", "end_time", "stop"), lambda mind: next_segment(mind).end),
}
"""Field name to the skill that fills it.

``agent`` and ``tool`` are filled in :mod:`longtake_bench.lab.model`: they depend on the choices.
"""


_TIMED = re.compile(rf"\[({SHORT_CLOCK})\]")


def supports(mind: Mind) -> list[int]:
    """Listed moments that show what the answer rests on, unless the notes settle another answer."""
    if mind.finding.level == 3 and not is_settled(mind):
        return []
    return _telling(mind)


def contradicts(mind: Mind) -> list[int]:
    """Listed moments that settle the question for another answer than the proposed one."""
    if mind.finding.level < 3 or is_settled(mind):
        return []
    return _telling(mind)


def passages(mind: Mind) -> list[int]:
    """Listed passages that state a fact on which the answer rests; none for a guess."""
    if mind.finding.value is None:
        return []
    decisive = {sighting.fact for sighting in mind.finding.support}
    numbers = []
    for number, line in mind.shown.numbered_lines().items():
        if any(fact in decisive for _, fact in facts_in(line)):
            numbers.append(number)
    return numbers


def _telling(mind: Mind) -> list[int]:
    """The numbers of moments at which a sighting was made that the model's finding rests on."""
    times = [sighting.time for sighting in mind.finding.support if sighting.time is not None]
    numbers = []
    for number, line in mind.shown.numbered_lines().items():
        listed = _TIMED.match(line)
        # pictures are listed by the second
        if listed and any(abs(parse_time(listed[1]) - time) <= 1.0 for time in times):
            numbers.append(number)
    return numbers


def missing(mind: Mind) -> list[dict[str, Any]]:
    """Ask for more: numbered segments from the prompt, and what to look for in each."""
    segments = mind.shown.numbered_segments()
    wishes = [wish(need) for need in mind.needs] or [mind.retrieval]
    requests = []
    for place, number in enumerate(_by_promise(mind, segments)[:3]):
        requests.append({"segment": number, "description": wishes[place % len(wishes)]})
    return requests


def _by_promise(mind: Mind, segments: Mapping[int, Segment]) -> list[int]:
    """The numbers of segments, most promising first.

    Segments in the part of the film that is asked about come first, then those on the right side
    of a known anchor, then those near a clue, then longer ones, which hide more.
    """
    scope = scope_of(mind)
    anchor = _anchor(mind)
    form = mind.query.form if mind.query else ""
    clues = []
    for sighting in mind.shown.sightings:
        if sighting.time is not None and mind.relevance([sighting]) >= 0.5:
            clues.append(sighting.time)

    def rank(number: int) -> tuple[bool, bool, bool, float, int]:
        segment = segments[number]
        outside = segment.overlap(scope) == 0
        wrong_side = anchor is not None and _wrong_side(form, segment, anchor)
        distances = [abs(time - segment.middle) - segment.duration / 2 for time in clues]
        far = min(distances, default=1e9) > 1.0
        return outside, wrong_side, far, -segment.duration, number

    return sorted(segments, key=rank)


def _anchor(mind: Mind) -> float | None:
    """The time of the first supporting sighting if the question is settled only in part."""
    if mind.finding.level != 2 or not mind.finding.support:
        return None
    return mind.finding.support[0].time


def _wrong_side(form: str, segment: Segment, anchor: float) -> bool:
    """Whether the answer cannot lie in a segment, because it is before or after the anchor."""
    if form in ("before", "previous"):
        return segment.start >= anchor
    return form in ("after", "next") and segment.end <= anchor


def timeline(mind: Mind) -> list[dict[str, Any]]:
    """A timeline: what each picture shows until the next one; equal neighbours are merged."""
    times = sorted({float(moment.second) for moment in mind.shown.moments if moment is not None})
    blocks: list[dict[str, Any]] = []
    for number, time in enumerate(times):
        is_last = number + 1 == len(times)
        end = min(time + 1.0, mind.shown.duration) if is_last else times[number + 1]
        description = " ".join(sentence(s.fact) for s in mind.shown.seen if s.time == time)
        if blocks and description and blocks[-1]["description"] == description:
            blocks[-1]["end"] = end
        elif description:
            blocks.append({"start": time, "end": end, "description": description})
    return blocks


def groups(mind: Mind) -> list[list[int]]:
    """Numbered answers, grouped by their content words."""
    alike: dict[str, list[int]] = {}
    for number, statement in mind.shown.numbered_lines().items():
        content = _content(statement)
        key = next((known for known in alike if same(known, content)), content)
        alike.setdefault(key, []).append(number)
    return list(alike.values())


_EMPTY_WORDS = frozenset({"the", "a", "an", "it", "is", "at", "says", "in", "of", "answer"})


def _content(text: str) -> str:
    words = re.findall(r"[a-z0-9]+", text.lower())
    return " ".join(sorted(word for word in words if word not in _EMPTY_WORDS))


def facets(mind: Mind) -> list[dict[str, Any]]:
    """Decompose: what would be visible if each option were right; one facet if there are none."""
    parts = []
    for option in mind.shown.options or ("",):  # an open question has one facet
        need = mind.option_need(option) if option else None
        query = wish(need) if need else f"{mind.retrieval} {option}".strip()
        entities = ([option] if option else []) + mind.entities()
        parts.append({"option": option, "entities": entities[:5], "event_query": query})
    return parts


def lines(mind: Mind) -> list[dict[str, Any]]:
    """Subtitle lines relevant to the question, with times; all lines if there is no question."""
    spoken = [s for s in mind.shown.read_facts if isinstance(s.fact, Saying)]
    relevant = [s for s in spoken if mind.query is None or mind.relevance([s]) > 0.5]
    quoted = []
    for sighting in relevant or spoken[:3]:
        start = sighting.time or 0.0
        quoted.append({"start": start, "end": start + 4.0, "text": sentence(sighting.fact)})
    return quoted


def intervals(mind: Mind) -> list[dict[str, Any]]:
    """Time ranges worth a look: those named in the prompt, most relevant first."""
    return [{"start": s.start, "end": s.end} for s in best_intervals(mind)[:4]]


LISTS: Mapping[str, Callable[[Mind], list[Any]]] = {
    "missing": missing,
    "supports": supports,
    "contradicts": contradicts,
    **dict.fromkeys(("passages", "films"), passages),
    "events": timeline,
    "groups": groups,
    **dict.fromkeys(("facets", "options"), facets),
    **dict.fromkeys(("query_keywords", "keywords", "entities", "queries"), Mind.entities),
    "lines": lines,
    **dict.fromkeys(("intervals", "segments", "ranges"), intervals),
}
"""Field name to the skill that fills a list."""
