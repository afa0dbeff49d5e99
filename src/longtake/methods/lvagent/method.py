"""LVAgent, long video understanding by multi-round dynamical collaboration of agents::

        Selection: the team, from a library, best first                 longtake select, eq. 1
     1  for round = 1 … 3
     2      for each agent                                              perception
     3          in round 1
     4              v ← 4 random frames
     5              D ← must it watch the whole video?                  stage 1, eq. 2
     6          if D
     7              V ← 16 frames over all of it
     8          else
     9              K ← key information, in round 1 from v              stage 2, eq. 3
    10                  and later from the history                     eq. 4, 8
    11              f_1 … f_6 ← 16 random frames of each sixth          stage 3
    12              Sim(k) ← ASP(f_k, K) + ASP(f_k, Q)                  eq. 5
    13              V ← every f_k with Sim(k) > 0.8, else the best
    14          ans, R ← its answer from V, then its reason             action, eq. 6
    15      if an answer has more than half of the agents
    16          return it
    17      each agent scores every agent                               reflection, eq. 7
    18      the lowest leaves
    19      H ← answers, reasons, scores, who left

Departures. 0.8 presumes a score in [0, 1], and a similarity is none: each of the two is spread over the chunks of the
film and their mean stands for the sum (``calibration``). Without the trained head of ``perception.retriever`` a chunk
is the mean of its frames. An agent is asked in round 1 only whether it must watch the whole video. A last agent looks
and answers once more and that stands; where several are left after the last round most votes win, and of equals those
with the higher scores. An answer that cannot be read is an abstention: a vote for nothing. Answers in words are
compared by meaning. Frames over the whole film are one of each of as many equal stretches, drawn anew each round:
evenly spaced, every round would repeat the first. Confidence is by the first round's vote, from A4VL's published
answers, since LVAgent's are not; it is an order, not a rate. No label takes part in choosing frames or answers; in
the released code one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Field

from longtake.algorithms import chunks, sampling
from longtake.errors import ConfigError, check_least
from longtake.events import ScoresSet, emit, note, step
from longtake.footage.clips import clip_scorer
from longtake.footage.look import Look, cite, look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.prompts import Plain
from longtake.steps.answer import guess, in_words
from longtake.steps.ask import ask, with_options
from longtake.steps.fanout import fanout
from longtake.steps.run import Agent, Run
from longtake.steps.showing import length, most_spoken, shown_to, spoken_around
from longtake.steps.team import (
    Opinion,
    by_meaning,
    judge_all,
    leading,
    majority,
    minutes,
    prune,
    tally,
    unanimous,
)
from longtake.types import Answer, Question

CITED = 3
"""Moments that an answer cites."""
SCALE = ("chunk_low", "chunk_high")
"""Names, on an encoder's or a head's card, of the similarities that count as 0 and as 1."""


class Gate(BaseModel):
    """Whether a part of the film is enough."""

    whole_video: bool = Field(description="true: all of the film must be watched")


class Key(BaseModel):
    """What to look for."""

    key_information: str


class Reason(BaseModel):
    """What led to an answer."""

    reason: str = Field(description="two to four sentences")


@dataclass(frozen=True)
class Turn:
    """What an agent looked at, for what, and what it says."""

    look: Look
    key: str
    """The key information it looked for; empty: it watched the whole film."""
    opinion: Opinion


@dataclass
class Table:
    """What a discussion has come to."""

    agents: list[Agent]
    """Those still in it, best first."""
    whole: set[str] = field(default_factory=set)
    """Who watches the whole film."""
    turns: dict[str, Turn] = field(default_factory=dict)
    """The last turn of each."""
    history: list[str] = field(default_factory=list)
    """What was said, scored and who left, round by round."""
    first: tuple[Opinion, ...] = ()
    """The opinions of the first round."""


@dataclass(frozen=True)
class LVAgent:
    """Agents retrieve chunks, answer and score one another: more than half agree, or the weakest leaves."""

    name: ClassVar[str] = "lvagent"
    paper: ClassVar[str] = (
        "LVAgent: long video understanding by multi-round dynamical collaboration of MLLM agents"
    )
    roles: ClassVar[tuple[str, ...]] = ("team",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"calibration": "sum", "native_whole": False},
        "released": {"question_term": False, "threshold": None},
    }

    team_size: int = 3
    """Agents that take part, the first of the team file, which lists the best first."""
    max_rounds: int = 3
    """Most rounds."""
    preview_frames: int = 4
    """Random frames of an agent's first look."""
    global_frames: int = 16
    """Frames of an agent that must watch the whole film."""
    chunks: int = 6
    """Equal parts of the film …"""
    frames_per_chunk: int = 16
    """… and the random frames of each; one draw serves all agents of a round."""
    threshold: float | None = 0.8
    """Score that a chunk must exceed; where none does, and if unset, the best chunk is taken."""
    calibration: Literal["auto", "minmax", "sum"] = "auto"
    """How similarities become scores in [0, 1]: spread over the film's chunks (minmax), by the ends of the scale where
    the encoder's or the head's card names them (auto), or not at all, added up as printed (sum)."""
    question_term: bool = True
    """Compare chunks with the question as well as with the key information."""
    key_words: int = 50
    """Most words of key information."""
    native_whole: bool = True
    """Always watch a film as a whole that has no more pictures than all chunks together would show."""
    perception: bool = True
    """Off: every agent gets ``blank_frames`` over the whole film in every round."""
    blank_frames: int = 128
    """Frames without perception."""
    reflection: bool = True
    """Off: one round, most votes, of equals the better-ranked agent's."""
    discussion: Literal["dynamic", "best_score", "decide_by_agent"] = "dynamic"
    """Without consensus the lowest-scored agent leaves (dynamic); or nobody does, and after the last round the
    highest-scored agent's answer stands (best_score), or the best-ranked agent decides from all that was said."""
    reasons: bool = True
    """Ask each agent for its reason. Off where only answers count, as in a selection."""
    subtitle_words: int = 4000
    """Most words of subtitles in a prompt, those nearest to the moments shown; a model's context may allow fewer."""
    temperature: float | None = 0.01
    """For agents whose team file sets none; unset: the model's own."""
    max_new_tokens: int | None = 168
    """Longest reply, likewise."""
    vote_confidence: tuple[float, float, float] = (0.26, 0.53, 0.88)
    """Confidence by the vote of the first round: no answer had more than half, one had, all agreed."""

    def __post_init__(self) -> None:
        check_least(
            self,
            self.name,
            team_size=1,
            max_rounds=1,
            chunks=1,
            frames_per_chunk=1,
            global_frames=1,
            blank_frames=1,
            preview_frames=1,
            key_words=1,
        )

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """The discussion."""
        table = Table(self.seated(run))
        footage.embeddings()  # once, before agents ask for it side by side
        note("retrieval", scorer=clip_scorer(footage).key, encoder=footage.encoder.name)
        rounds = self.max_rounds if self.reflection else 1
        for number in range(1, rounds + 1):  # 1
            with step("round", round=number, agents=[agent.name for agent in table.agents]):
                opinions = self.discuss(footage, question, run, table, number)  # 2 to 14
                winner = majority(opinions)
                if winner is not None or len(table.agents) == 1:  # 15
                    break
                run.propose(self.conclude(footage, question, leading(opinions), table))
                if number < rounds:
                    opinions = self.reflect(question, table, opinions, number)  # 17 to 19
        if winner is None:
            final = self.settle(footage, question, table, opinions)
        else:
            final = next(opinion for opinion in opinions if opinion.vote == winner)  # 16
        return self.conclude(footage, question, final, table)

    def seated(self, run: Run) -> list[Agent]:
        """The agents that take part, with the temperature and reply length that are theirs or the paper's."""
        if not run.team:
            raise ConfigError("lvagent needs a team of agents; name one with --team", key="team")
        seated, rest = run.team[: self.team_size], run.team[self.team_size :]
        if rest:
            note("not_seated", agents=[agent.name for agent in rest], team_size=self.team_size)
        return [
            replace(agent, chat=with_options(agent.chat, **self.manner(agent))) for agent in seated
        ]

    def manner(self, agent: Agent) -> dict[str, Any]:
        """How an agent is to speak, where its team file leaves it open."""
        wanted = {
            "temperature": self.temperature if agent.temperature is None else None,
            "max_tokens": self.max_new_tokens if agent.max_new_tokens is None else None,
        }
        return {name: value for name, value in wanted.items() if value is not None}

    def discuss(
        self, footage: Footage, question: Question, run: Run, table: Table, number: int
    ) -> list[Opinion]:
        """Lines 2 to 14, all agents side by side."""
        chance = run.random("chunks", footage.name, question.text, number)
        parts = chunks.equal(footage.duration, self.chunks)
        drawn = [
            chunks.draw(rows_within(footage, part).tolist(), self.frames_per_chunk, chance)
            for part in parts
        ]  # 11
        over_all = self.global_frames if self.perception else self.blank_frames
        spread = sampling.one_per_bin(len(footage.times), over_all, chance).tolist()
        if number == 1:
            table.whole = self.watching_all(footage, table.agents)
        act = partial(self.turn, footage, question, run, table, drawn, spread)
        turns = fanout(act, table.agents)
        opinions = by_meaning(table.agents[0].chat, question, [turn.opinion for turn in turns])
        table.turns = {turn.opinion.agent: turn for turn in turns}
        table.whole |= {turn.opinion.agent for turn in turns if not turn.key}
        table.first = table.first or tuple(opinions)
        return opinions

    def watching_all(self, footage: Footage, agents: Sequence[Agent]) -> set[str]:
        """Who watches the whole film without being asked: everybody, if perception is off or the film that short."""
        count = footage.native_frames if self.native_whole else None
        short = count is not None and count <= self.chunks * self.frames_per_chunk
        return {agent.name for agent in agents} if short or not self.perception else set()

    def turn(
        self,
        footage: Footage,
        question: Question,
        run: Run,
        table: Table,
        drawn: Sequence[Sequence[int]],
        spread: Sequence[int],
        agent: Agent,
    ) -> Turn:
        """Lines 3 to 14 for one agent."""
        key = (
            "" if agent.name in table.whole else self.key(footage, question, run, table, agent)
        )  # 3 to 10
        rows = self.retrieve(footage, question, key, drawn) if key else list(spread)  # 7, 12, 13
        look = look_at(footage, rows)
        return Turn(look, key, self.act(footage, question, look, agent, "lvagent/answer"))  # 14

    def key(
        self, footage: Footage, question: Question, run: Run, table: Table, agent: Agent
    ) -> str:
        """Stages 1 and 2: key information; nothing where the agent says that it must watch the whole film."""
        unread = Key(key_information=question.text)
        if table.history:
            last = table.turns[agent.name].look.rows
            found = ask(
                agent.chat,
                "lvagent/key_again",
                Key,
                default=unread,
                name=Plain(agent.name),
                question=question,
                length=length(footage),
                history=table.history,
                words=self.key_words,
                subtitles=self.subtitles(footage, last),
            )  # 10
        else:
            chance = run.random("preview", footage.name, question.text, agent.name)
            look = look_at(
                footage, chunks.draw(range(len(footage.times)), self.preview_frames, chance)
            )  # 4
            told: dict[str, Any] = {"question": question, **self.told(footage, look)}
            if ask(
                agent.chat, "lvagent/gate", Gate, default=Gate(whole_video=True), **told
            ).whole_video:  # 5
                return ""
            found = ask(
                agent.chat, "lvagent/key", Key, default=unread, words=self.key_words, **told
            )  # 9
        return " ".join(found.key_information.split()[: self.key_words]) or question.text

    def retrieve(
        self, footage: Footage, question: Question, key: str, drawn: Sequence[Sequence[int]]
    ) -> list[int]:
        """Stage 3, lines 12 and 13: the drawn frames of the chunks that fit."""
        scorer = clip_scorer(footage)
        texts = footage.encode([key, question.text] if self.question_term else [key])
        rows = footage.embeddings()
        similarity = np.stack([scorer.scores(rows[list(some)], texts) for some in drawn])
        known = scorer.thresholds or footage.encoder.thresholds
        scale = (
            (known[SCALE[0]], known[SCALE[1]])
            if self.calibration == "auto" and SCALE[0] in known
            else None
        )
        scores = chunks.overall(similarity, scale, calibrate=self.calibration != "sum")  # 12
        parts = tuple(chunks.equal(footage.duration, len(drawn)))
        emit(
            ScoresSet(
                label=f"chunks: {key}", segments=parts, values=tuple(np.round(scores, 4).tolist())
            )
        )
        return sorted(
            {row for number in chunks.chosen(scores, self.threshold) for row in drawn[number]}
        )  # 13

    def act(
        self,
        footage: Footage,
        question: Question,
        look: Look,
        agent: Agent,
        prompt: str,
        **more: Any,
    ) -> Opinion:
        """Line 14, eq. 6: the answer, then the reason in a second call, from the same frames."""
        told = self.told(footage, look)
        given = guess(agent.chat, prompt, question, reasoned=False, **told, **more)
        said = Opinion(agent.name, given.choice, text=given.text)
        if said.vote is None or not self.reasons:
            return said
        why = ask(
            agent.chat,
            "lvagent/reason",
            Reason,
            default=Reason(reason=""),
            question=question,
            answer=in_words(question, said.choice, said.text),
            **told,
        )
        return replace(said, reason=why.reason)

    def reflect(
        self, question: Question, table: Table, opinions: Sequence[Opinion], number: int
    ) -> list[Opinion]:
        """Lines 17 to 19: scores, who leaves, and what is remembered."""
        if self.discussion == "dynamic":
            table.agents, judged = prune(table.agents, opinions, question)
        else:
            judged = judge_all(table.agents, opinions, question)
        table.history += [f"Round {number}", *minutes(judged)]
        return judged

    def settle(
        self, footage: Footage, question: Question, table: Table, opinions: Sequence[Opinion]
    ) -> Opinion | None:
        """What stands after the last round without consensus."""
        said = [opinion for opinion in opinions if opinion.vote is not None]
        if len(opinions) < 2 or not said:
            return said[0] if said else None
        if not self.reflection:
            return leading(opinions)
        if self.discussion == "decide_by_agent":
            best = table.agents[0]
            history = [
                *table.history,
                "Last round",
                *minutes(self.judged(question, table, opinions)),
            ]
            look = table.turns[best.name].look
            return self.act(
                footage,
                question,
                look,
                best,
                "lvagent/decide",
                name=Plain(best.name),
                history=history,
            )
        if self.discussion == "best_score":
            scored = [
                opinion
                for opinion in self.judged(question, table, opinions)
                if opinion.vote is not None
            ]
            return max(scored, key=lambda opinion: opinion.score or 0)
        votes = tally(opinions)
        most = [vote for vote, count in votes.items() if count == max(votes.values())]
        if len(most) == 1:
            return leading(opinions)
        scored = self.judged(question, table, opinions)
        sums = {vote: sum(o.score or 0 for o in scored if o.vote == vote) for vote in most}
        return next(
            opinion for opinion in scored if opinion.vote == max(most, key=lambda vote: sums[vote])
        )

    def judged(
        self, question: Question, table: Table, opinions: Sequence[Opinion]
    ) -> list[Opinion]:
        """The last round's opinions with their scores."""
        judged = judge_all(table.agents, opinions, question)
        note("judged", scores={opinion.agent: opinion.score for opinion in judged})
        return judged

    def conclude(
        self, footage: Footage, question: Question, final: Opinion | None, table: Table
    ) -> Answer:
        """An opinion as an answer, with the moments that fit what its agent looked for."""
        if final is None or final.vote is None:
            return Answer(reason="" if final is None else final.reason, status="abstained")
        turn = table.turns[final.agent]
        cited = cite(footage, turn.look, turn.key or question.text, CITED)
        return Answer(final.choice, final.text, final.reason, self.confidence(table.first), cited)

    def confidence(self, first: Sequence[Opinion]) -> float | None:
        """By how the first round voted; unknown where there was nobody to agree with."""
        if len(first) < 2:
            return None
        split, most, everybody = self.vote_confidence
        return (
            everybody
            if unanimous(first) is not None
            else most
            if majority(first) is not None
            else split
        )

    def told(self, footage: Footage, look: Look) -> dict[str, Any]:
        """What an agent sees and hears, as its prompts take it."""
        return {**shown_to(footage, look), "subtitles": self.subtitles(footage, look.rows)}

    def subtitles(self, footage: Footage, rows: Sequence[int]) -> Any:
        """The lines around these moments."""
        return spoken_around(footage, rows, most_spoken(footage.duration, self.subtitle_words))

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Nobody ever agrees, every chunk passes, and every reply is as long as it may be."""
        rounds = self.max_rounds if self.reflection else 1
        left = [
            max(1, self.team_size - r) if self.discussion == "dynamic" else self.team_size
            for r in range(rounds)
        ]
        seats = left[: left.index(1) + 1] if 1 in left else left  # agents, round by round
        turns, first, spoken = sum(seats), seats[0], 2 if self.reasons else 1
        view = (
            max(self.chunks * self.frames_per_chunk, self.global_frames)
            if self.perception
            else self.blank_frames
        )
        several = sum(n > 1 for n in seats)
        grouping = several * (not question.options)
        judging = sum(n for n in seats if n > 1) if self.reflection else 0
        deciding = spoken * (
            self.reflection and self.discussion == "decide_by_agent" and seats[-1] > 1
        )
        keys = turns + first if self.perception else 0
        calls = keys + turns * spoken + judging + grouping + deciding
        reply = round((self.max_new_tokens or 1024) / 1.4)
        told = (
            words([question.text, *question.options])
            + 170
            + most_spoken(duration, self.subtitle_words)
        )
        remembered = (judging + keys + deciding) * turns * (reply + 12)
        steps = (
            len(seats) * (spoken + self.perception)
            + self.perception
            + several * self.reflection
            + grouping
        )
        return Bounds(
            calls=calls,
            frames=(2 * first * self.preview_frames if self.perception else 0)
            + (turns * spoken + deciding) * view,
            prompt_words=calls * told + remembered,
            reply_words=calls * reply,
            steps=steps + deciding,
        )
