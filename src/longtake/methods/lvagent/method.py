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

Departures. The threshold of 0.8 assumes a score in [0, 1], so each of the two similarities is
rescaled over the chunks of the film, and their mean replaces the sum (``calibration``). Without the
trained head of ``perception.retriever``, a chunk is represented by the mean of its frames. An agent
is asked whether it must watch the whole video in round 1 only. A last remaining agent looks and
answers once more, and that answer stands; if several are left after the last round, most votes win,
and ties go to the answer with the higher scores. An unreadable answer is an abstention, which is a
vote for nothing. Answers in words are compared by meaning. Frames of the whole film are drawn anew
each round, one from each of equal stretches, since evenly spaced frames would repeat the first
round. Confidence depends on the first round's vote and comes from A4VL's published answers, since
LVAgent's are not published; it ranks answers but is not a probability. Labels are never used to
choose frames or answers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from longtake.agents.answer import guess, in_words, length, most_spoken, shown_to, spoken_around
from longtake.agents.run import Agent, Run
from longtake.agents.team import (
    Opinion,
    by_meaning,
    fanout,
    judge_all,
    leading,
    majority,
    prune,
    tally,
    transcript,
    unanimous,
)
from longtake.algorithms import sampling
from longtake.errors import ConfigError, check_least
from longtake.footage.look import Look, cite, clip_scorer, look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ask, with_options
from longtake.prompts import Plain, phrase
from longtake.tracing.events import note, note_scores, step
from longtake.types import Answer, Question

SCALE = ("chunk_low", "chunk_high")
"""Names, on an encoder's or a head's card, of the similarities that count as 0 and as 1."""
NO_CUT = 1_000_000
"""Words: more than the subtitles of any film."""


# recorded requests contain the titles, which are the former names of these classes


class WatchReply(BaseModel):
    """Whether part of the film is enough."""

    model_config = ConfigDict(title="GateReply")

    whole_video: bool = Field(description="true: all of the film must be watched")


class KeyReply(BaseModel):
    """What to look for."""

    key_information: str


class AgentReasonReply(BaseModel):
    """What led to an answer."""

    model_config = ConfigDict(title="ReasonReply")

    reason: str
    """Without a description: a reason that was cut at the limit of tokens is used as it stands."""


@dataclass(frozen=True)
class AgentTurn:
    """What an agent looked at, what it looked for, and its opinion."""

    look: Look
    key: str | None
    """The key information it looked for; ``None`` if it watched the whole film."""
    opinion: Opinion


@dataclass
class Discussion:
    """The state of a discussion."""

    footage: Footage
    question: Question
    run: Run
    agents: list[Agent]
    """The remaining agents, best first."""
    round: int = 0
    whole: set[str] = field(default_factory=set)
    """Names of the agents that watch the whole film."""
    turns: dict[str, AgentTurn] = field(default_factory=dict)
    """Each agent's latest turn."""
    history: list[str] = field(default_factory=list)
    """Answers, reasons, scores and who left, round by round (H)."""
    first: tuple[Opinion, ...] = ()
    """The opinions of the first round."""
    first_keys: dict[str, str] = field(default_factory=dict)
    """The key information of each agent in the first round."""

    def chance(self, what: str, agent: Agent | None = None) -> random.Random:
        """The random numbers of this round, for everybody or for one agent."""
        who = [] if agent is None else [agent.name]
        return self.run.random(what, self.footage.name, self.question.text, *who, self.round)


@dataclass(frozen=True)
class LVAgent:
    """Agents retrieve chunks, answer and score one another until most agree; the weakest leaves."""

    name: ClassVar[str] = "lvagent"
    paper: ClassVar[str] = (
        "LVAgent: long video understanding by multi-round dynamical collaboration of MLLM agents"
    )
    roles: ClassVar[tuple[str, ...]] = ("team",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "calibration": "sum",
            "native_whole": False,
            "own_frames": True,
            "whole_again": False,
            "subtitle_words": NO_CUT,
        },
        "released": {
            "question_term": False,
            "threshold": None,
            "chunk_ends": False,
            "whole_film": "random",
            "own_frames": True,
            "reason_frames": "whole_film",
            "earlier_key": True,
            "subtitle_words": NO_CUT,
        },
        "small": {
            "max_rounds": 2,
            "frames_per_chunk": 6,
            "global_frames": 8,
            "subtitle_words": 600,
        },
    }

    # from the paper
    team_size: int = 3
    """Agents that take part: the first of the team file. Of a tie, the one listed later leaves."""
    max_rounds: int = 3
    """Most rounds."""
    preview_frames: int = 4
    """Random frames in an agent's first look."""
    global_frames: int = 16
    """Frames for an agent that must watch the whole film."""
    chunks: int = 6
    """Equal parts that the film is divided into."""
    frames_per_chunk: int = 16
    """Random frames drawn from each chunk."""
    threshold: float | None = 0.8
    """Score a chunk must exceed. If none does, or if unset, the best chunk is used."""
    question_term: bool = True
    """Compare chunks with the question as well as with the key information."""
    perception: bool = True
    """Off: every agent sees ``blank_frames`` over the whole film in every round."""
    blank_frames: int = 128
    """Frames without perception."""
    reflection: bool = True
    """Off: one round, most votes win; ties go to the higher-ranked agent."""
    discussion: Literal["dynamic", "best_score", "decide_by_agent"] = "dynamic"
    """Without consensus the agent with the lowest score leaves (dynamic). Otherwise nobody leaves,
    and after the last round the answer with the highest score stands (best_score), or the
    best-ranked agent decides from everything that was said (decide_by_agent)."""
    temperature: float | None = 0.01
    """For agents whose team file sets none; unset: the model's own setting."""
    max_new_tokens: int | None = 168
    """Most tokens in a reply, likewise."""
    key_words: int = 50
    """Most words in the key information."""

    # ours
    own_frames: bool = False
    """Let each agent draw its own frames, of the chunks and of the whole film; off: all agents of a
    round share one draw, so that those that look for the same see the same."""
    chunk_ends: bool = True
    """Divide the film by time; off, as released: by frames, without the last frame of each chunk
    and the rest of the division."""
    whole_film: Literal["bins", "random"] = "bins"
    """How frames of the whole film are drawn: one from each of equal stretches, or all at random
    (as released)."""
    reason_frames: Literal["answer", "whole_film"] = "answer"
    """Frames for a reason: those of its answer, or new ones of the whole film (as released)."""
    earlier_key: bool = False
    """Show agents their key information of the first round when they write new (as released)."""
    whole_again: bool = True
    """Agents that watched the whole film do so again in later rounds (ours); off, as printed
    (eq. 4 and 8): from the second round on, everybody looks for new key information."""
    calibration: Literal["auto", "minmax", "sum"] = "auto"
    """How similarities become scores in [0, 1]: rescaled over the film's chunks (minmax), by the
    ends of the scale if the encoder's or the head's card names them (auto), or added up as printed
    (sum)."""
    native_whole: bool = True
    """Always watch the whole film if it has no more frames than all chunks together would show."""
    reasons: bool = True
    """Ask each agent for its reason. Off when only answers count, as in a selection."""
    subtitle_words: int = 4000
    """Most words of subtitles in a prompt: the nearest to the moments shown, as far as they fit."""
    vote_confidence: tuple[float, float, float] = (0.26, 0.53, 0.88)
    """Confidence by the first round's vote: no majority, a majority, unanimous."""

    def __post_init__(self) -> None:
        check_least(self, self.name, subtitle_words=0)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """The discussion."""
        discussion = Discussion(footage, question, run, self.seated(run))
        footage.embeddings()  # once, before agents ask for them in parallel
        note("retrieval", scorer=clip_scorer(footage).key, encoder=footage.encoder.name)
        rounds = self.max_rounds if self.reflection else 1
        for discussion.round in range(1, rounds + 1):  # 1
            names = [agent.name for agent in discussion.agents]
            with step("round", round=discussion.round, agents=names):
                opinions = self.discuss(discussion)  # 2 to 14
                winner = majority(opinions)
                if winner is not None or len(discussion.agents) == 1:  # 15
                    break
                run.propose(self.conclude(discussion, leading(opinions)))
                if discussion.round < rounds:
                    opinions = self.reflect(discussion, opinions)  # 17 to 19
        if winner is None:
            final = self.settle(discussion, opinions)
        else:
            final = next(opinion for opinion in opinions if opinion.vote == winner)  # 16
        return self.conclude(discussion, final)

    def seated(self, run: Run) -> list[Agent]:
        """The agents that take part, each with its own temperature and reply length or ours."""
        if not run.team:
            raise ConfigError("lvagent needs a team of agents; name one with --team", key="team")
        seated, rest = run.team[: self.team_size], run.team[self.team_size :]
        if rest:
            note("not_seated", agents=[agent.name for agent in rest], team_size=self.team_size)
        return [
            replace(agent, chat=with_options(agent.chat, **self.options_for(agent)))
            for agent in seated
        ]

    def options_for(self, agent: Agent) -> dict[str, Any]:
        """The options of the paper, as far as the agent's team file leaves them open."""
        options: dict[str, Any] = {}
        if agent.temperature is None and self.temperature is not None:
            options["temperature"] = self.temperature
        if agent.max_new_tokens is None and self.max_new_tokens is not None:
            options["max_tokens"] = self.max_new_tokens
        return options

    def discuss(self, discussion: Discussion) -> list[Opinion]:
        """Lines 2 to 14, all agents in parallel."""
        footage, question = discussion.footage, discussion.question
        if discussion.round == 1 or not self.whole_again:
            discussion.whole = self.watching_all(footage, discussion.agents)
        seated = []
        for agent in discussion.agents:
            chance = discussion.chance("chunks", agent if self.own_frames else None)
            # the whole film is drawn last: chunks do not depend on it
            seated.append((agent, self.draw(footage, chance), self.spread(footage, chance)))
        turns = fanout(partial(self.turn, discussion), seated)
        answers = [turn.opinion for turn in turns]
        opinions = by_meaning(discussion.agents[0].chat, question, answers)
        discussion.turns = {turn.opinion.agent: turn for turn in turns}
        # the gate is asked once: whoever watched the whole film does so again
        discussion.whole |= {turn.opinion.agent for turn in turns if turn.key is None}
        discussion.first = discussion.first or tuple(opinions)
        return opinions

    def draw(self, footage: Footage, chance: random.Random) -> list[list[int]]:
        """Line 11: random frames of each chunk."""
        count = len(footage.times)
        chunks: list[Sequence[int]]
        if self.chunk_ends or count < 2 * self.chunks:  # else a chunk would have no frame
            segments = sampling.equal_chunks(footage.duration, self.chunks)
            chunks = [rows_within(footage, segment).tolist() for segment in segments]
        else:
            chunks = [*sampling.inner_chunks(count, self.chunks)]
        return [sampling.draw(rows, self.frames_per_chunk, chance) for rows in chunks]

    def spread(self, footage: Footage, chance: random.Random) -> list[int]:
        """Frames over the whole film."""
        frames = self.global_frames if self.perception else self.blank_frames
        if self.whole_film == "random":
            return sampling.draw(range(len(footage.times)), frames, chance)
        rows: list[int] = sampling.one_per_bin(len(footage.times), frames, chance).tolist()
        return rows

    def watching_all(self, footage: Footage, agents: Sequence[Agent]) -> set[str]:
        """Who need not be asked: everybody, if perception is off or the film is short."""
        count = footage.native_frames if self.native_whole else None
        short = count is not None and count <= self.chunks * self.frames_per_chunk
        return {agent.name for agent in agents} if short or not self.perception else set()

    def turn(
        self, discussion: Discussion, seated: tuple[Agent, Sequence[Sequence[int]], Sequence[int]]
    ) -> AgentTurn:
        """Lines 3 to 14 for one agent, with the frames drawn of each chunk and of the whole."""
        agent, chunks, spread = seated
        key = self.sought(discussion, agent)  # 3 to 6, 8 to 10
        rows = spread if key is None else self.retrieve(discussion, key, chunks)  # 7, 12, 13
        look = look_at(discussion.footage, rows)
        return AgentTurn(look, key, self.act(discussion, look, agent, "lvagent/answer"))  # 14

    def sought(self, discussion: Discussion, agent: Agent) -> str | None:
        """Stages 1 and 2: what to look for; ``None`` if the agent must watch the whole film."""
        if agent.name in discussion.whole:
            return None
        if discussion.history:
            return self.new_key(discussion, agent)  # 10
        footage, question = discussion.footage, discussion.question
        chance = discussion.run.random("preview", footage.name, question.text, agent.name)
        rows = sampling.draw(range(len(footage.times)), self.preview_frames, chance)  # 4
        preview = {"question": question, **self.shown(footage, look_at(footage, rows))}
        default = WatchReply(whole_video=True)
        if ask(agent.chat, "lvagent/gate", WatchReply, default=default, **preview).whole_video:  # 5
            return None
        key = self.key_information(agent, "lvagent/key", preview)  # 9
        discussion.first_keys[agent.name] = key
        return key

    def new_key(self, discussion: Discussion, agent: Agent) -> str:
        """Stage 2 in later rounds, eq. 4: from the history."""
        footage, history = discussion.footage, discussion.history
        if self.earlier_key and agent.name in discussion.first_keys:
            earlier = phrase("lvagent", "earlier_key", key=discussion.first_keys[agent.name])
            history = [*history, earlier]
        slots = {
            "name": Plain(agent.name),
            "question": discussion.question,
            "length": length(footage),
            "history": history,
            "subtitles": self.subtitles(footage, discussion.turns[agent.name].look.rows),
        }
        return self.key_information(agent, "lvagent/key_again", slots)

    def key_information(self, agent: Agent, prompt: str, slots: Mapping[str, Any]) -> str:
        """What to look for; the question, if the reply is unreadable or empty."""
        asked: str = slots["question"].text
        default = KeyReply(key_information=asked)
        max_words = self.key_words
        reply = ask(agent.chat, prompt, KeyReply, default=default, words=max_words, **slots)
        return " ".join(reply.key_information.split()[:max_words]) or asked

    def retrieve(
        self, discussion: Discussion, key: str, drawn: Sequence[Sequence[int]]
    ) -> list[int]:
        """Stage 3, lines 12 and 13: the drawn frames of the chunks that fit."""
        footage, question = discussion.footage, discussion.question
        scorer = clip_scorer(footage)
        texts = footage.encode([key, question.text] if self.question_term else [key])
        rows = footage.embeddings()
        similarity = np.stack([scorer.scores(rows[list(chunk)], texts) for chunk in drawn])
        scale = None
        # a trained head has its own scale
        known = scorer.thresholds or footage.encoder.thresholds
        if self.calibration == "auto" and SCALE[0] in known:
            scale = (known[SCALE[0]], known[SCALE[1]])
        scores = sampling.chunk_scores(similarity, scale, calibrate=self.calibration != "sum")  # 12
        segments = sampling.equal_chunks(footage.duration, len(drawn))
        note_scores(f"chunks: {key}", segments, scores)
        chosen: set[int] = set()
        for number in sampling.chosen_chunks(scores, self.threshold):  # 13
            chosen.update(drawn[number])
        return sorted(chosen)

    def shown(self, footage: Footage, look: Look) -> dict[str, Any]:
        """What an agent sees and hears, as slots of its prompts."""
        return {**shown_to(footage, look), "subtitles": self.subtitles(footage, look.rows)}

    def subtitles(self, footage: Footage, rows: Sequence[int]) -> Any:
        """The lines spoken around these moments."""
        return spoken_around(footage, rows, most_spoken(footage.duration, self.subtitle_words))

    def act(
        self, discussion: Discussion, look: Look, agent: Agent, prompt: str, **slots: Any
    ) -> Opinion:
        """Line 14, eq. 6: the answer, then the reason in a second call."""
        footage, question = discussion.footage, discussion.question
        view = self.shown(footage, look)
        guessed = guess(agent.chat, prompt, question, reasoned=False, **view, **slots)
        opinion = Opinion(agent.name, guessed.choice, text=guessed.text)
        if opinion.vote is None or not self.reasons:
            return opinion
        if self.reason_frames == "whole_film":
            rows = self.spread(footage, discussion.chance("reason", agent))
            view = self.shown(footage, look_at(footage, rows))
        why = ask(
            agent.chat,
            "lvagent/reason",
            AgentReasonReply,
            default=AgentReasonReply(reason=""),
            question=question,
            answer=in_words(question, guessed.choice, guessed.text),
            **view,
        )
        return replace(opinion, reason=why.reason)

    def reflect(self, discussion: Discussion, opinions: Sequence[Opinion]) -> list[Opinion]:
        """Lines 17 to 19: scores, who leaves, and what is remembered."""
        agents, question = discussion.agents, discussion.question
        if self.discussion == "dynamic":
            discussion.agents, judged = prune(agents, opinions, question)
        else:
            judged = judge_all(agents, opinions, question)
        heading = phrase("lvagent", "round", number=discussion.round)
        discussion.history += [heading, *transcript(judged)]
        return judged

    def settle(self, discussion: Discussion, opinions: Sequence[Opinion]) -> Opinion | None:
        """The opinion that stands after the last round without a majority."""
        answered = [opinion for opinion in opinions if opinion.vote is not None]
        if len(opinions) < 2 or not answered:
            return answered[0] if answered else None
        if not self.reflection:
            return leading(opinions)
        if self.discussion == "decide_by_agent":
            return self.decide(discussion, opinions)
        if self.discussion == "best_score":
            judged = self.judged(discussion, opinions)
            scored = [opinion for opinion in judged if opinion.vote is not None]
            return max(scored, key=lambda opinion: opinion.score or 0)
        # most votes win, then the higher sum of scores, then the higher rank
        votes = tally(opinions)
        tied = [vote for vote, count in votes.items() if count == max(votes.values())]
        if len(tied) == 1:
            return leading(opinions)
        judged = self.judged(discussion, opinions)
        sums = dict.fromkeys(tied, 0.0)
        for opinion in judged:
            if opinion.vote in sums:
                sums[opinion.vote] += opinion.score or 0
        winner = max(tied, key=lambda vote: sums[vote])
        return next(opinion for opinion in judged if opinion.vote == winner)

    def decide(self, discussion: Discussion, opinions: Sequence[Opinion]) -> Opinion:
        """The best-ranked agent's answer from history, video and question."""
        best = discussion.agents[0]
        judged = transcript(self.judged(discussion, opinions))
        history = [*discussion.history, phrase("lvagent", "last_round"), *judged]
        look = discussion.turns[best.name].look
        name = Plain(best.name)
        return self.act(discussion, look, best, "lvagent/decide", name=name, history=history)

    def judged(self, discussion: Discussion, opinions: Sequence[Opinion]) -> list[Opinion]:
        """The last round's opinions with their scores."""
        judged = judge_all(discussion.agents, opinions, discussion.question)
        note("judged", scores={opinion.agent: opinion.score for opinion in judged})
        return judged

    def conclude(self, discussion: Discussion, final: Opinion | None) -> Answer:
        """An opinion as an answer, with the moments that fit what its agent looked for."""
        if final is None or final.vote is None:
            return Answer(reason="" if final is None else final.reason, status="abstained")
        turn = discussion.turns[final.agent]
        sought = turn.key or discussion.question.text
        cited = cite(discussion.footage, turn.look, sought)
        confidence = self.confidence(discussion.first)
        return Answer(final.choice, final.text, final.reason, confidence, cited)

    def confidence(self, first: Sequence[Opinion]) -> float | None:
        """Confidence by the first round's vote; unknown for an agent alone."""
        if len(first) < 2:
            return None
        split, more_than_half, everybody = self.vote_confidence
        if unanimous(first) is not None:
            return everybody
        return split if majority(first) is None else more_than_half

    def seats_by_round(self) -> list[int]:
        """The most agents in each round; the discussion ends when one is left."""
        rounds = self.max_rounds if self.reflection else 1
        if self.discussion != "dynamic":
            left = [self.team_size] * rounds
        else:
            left = [max(1, self.team_size - number) for number in range(rounds)]
        return left[: left.index(1) + 1] if 1 in left else left
