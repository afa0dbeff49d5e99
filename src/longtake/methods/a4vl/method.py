"""A4VL, a training-free multi-agent alliance for long video reasoning, Algorithm 1::

     1  {B_1 … B_b} ← EventPartition(V, B)
     3  while |A| ≥ 1
     4      for each agent                                       step 1.1: clue
     5          in the first round
     6              v ← N1 preview frames
     7              P ← its clue from v and the question
     8          else P is given
    10      for each agent                                       step 1.2: block-based perception sampling
    11          s ← Sim(B_k, P) for every block
    12          if max(s) > ρ
    13              blocks with s ≤ ρ are out
    15              c ← N2 · softmax(s), in whole frames
    16              its frames ← c_k of every block
    17          else
    19              its frames ← N2 of the best block
    20      for each agent                                       step 2.1: answer and reason
    21          a ← its answer from its frames
    22          R ← its reason from the same frames
    25      if all answers are the same
    26          return it
    27      for each agent                                       step 2.2: pruning
    28          a score for everybody, from the answers and reasons
    30      sums
    32      the agent with the lowest sum leaves
    34      each that remains writes a new clue
    36  return the answer of the last agent

Departures. Line 15 as printed, N2⌊softmax⌋, gives nothing: whole frames go by ⌊N2·softmax⌋ and the largest remainders.
ρ = 0.8 of the released code acts on a logit with a median of 5; here it comes from the encoder's card, and without a
value no block is excluded. Frames of a block are drawn one from each of equal bins, anew for each agent and round: the
paper does not say how, and agents with one clue would all see the same. A question that names its place in the film
restricts the blocks (``temporal_scope``). Answers in words are compared by meaning. An answer that cannot be read is
an abstention, which blocks consensus. When one agent is left it looks once more with its new clue, and that answer
stands. The explanation is written from every reason given for the winning answer, in whichever round. Confidence is
the share that were right among the authors' own published answers that left in the same round; for another team it is
an order, not a rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from longtake.algorithms import allocate, sampling
from longtake.algorithms.asking import COUNTING
from longtake.algorithms.partition import PAPER, EventPartition
from longtake.algorithms.scope import clipped, scope
from longtake.errors import ConfigError, check_least
from longtake.events import ScoresSet, emit, note, step
from longtake.footage.look import Look, cite, look_at, rows_within
from longtake.footage.protocol import Footage
from longtake.methods.base import Bounds, words
from longtake.prompts import Plain
from longtake.steps.answer import guess, in_words
from longtake.steps.ask import ask
from longtake.steps.fanout import fanout
from longtake.steps.run import Agent, Run
from longtake.steps.showing import length, shown_to
from longtake.steps.team import Opinion, group_answers, leading, minutes, prune, unanimous
from longtake.types import Answer, Question, Segment

CITED = 3
"""Moments that an answer cites."""
RHO = "block_logit"
"""The threshold's name on an encoder's card."""


class Clue(BaseModel):
    """What to look for."""

    clue: str


class Reason(BaseModel):
    """What speaks for an answer."""

    reason: str = Field(description="two to four sentences")


class Explanation(BaseModel):
    """The reasons in one."""

    explanation: str = Field(description="two to four sentences")


class Gate(BaseModel):
    """Whether a part of the film is enough."""

    whole_video: bool = Field(description="true: all of the film must be looked over")


@dataclass(frozen=True)
class View:
    """Who looks, for what, and with which chance: frames are drawn anew for each agent and round."""

    agent: Agent
    clue: str
    whole: bool
    """Over the whole film, whatever the clue."""
    chance: Random


@dataclass(frozen=True)
class A4VL:
    """Agents write clues, look at the blocks that fit, and answer: unanimously, or the weakest leaves."""

    name: ClassVar[str] = "a4vl"
    paper: ClassVar[str] = (
        "A4VL: a training-free multi-agent alliance for long video reasoning (appendices A to D)"
    )
    roles: ClassVar[tuple[str, ...]] = ("team",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"events": EventPartition(**PAPER), "temporal_scope": False},
        "released": {"rho": 0.8, "gate": True, "temporal_scope": False},
    }

    events: EventPartition = field(default_factory=EventPartition)
    """The partition into blocks; ``events.max_blocks`` is B."""
    preview_frames: int = 4
    """Frames of the first look (N1) at a film of at most ``long_seconds``."""
    inference_frames: int = 16
    """Frames an answer is given from (N2), likewise."""
    long_preview_frames: int = 8
    """N1 for longer films."""
    long_inference_frames: int = 32
    """N2 for longer films."""
    long_seconds: float = 180.0
    """A film that lasts longer is long."""
    block_frames: int = 16
    """Moments of a block that a clue is compared with …"""
    block_best: int = 3
    """… and how many of them, the closest, count."""
    rho: float | None = None
    """Logit that a block must exceed (ρ); unset: what the encoder's card says, else no block is excluded."""
    logit_scale: float = 20.0
    """Makes a logit of a cosine where the encoder does not say; 20 is the scale of the loss that Sentence Transformers
    train text encoders with (MultipleNegativesRankingLoss), and the built-in encoder lies in the space of one."""
    clue_words: int = 50
    """Most words of a clue."""
    gate: bool = False
    """Let each agent say first whether it must look over the whole film (counting: always)."""
    temporal_scope: bool = True
    """Look only where the question says: "at the end", "in the first half", "after minute 20"."""
    summarise: bool = True
    """Write the explanation from the winning reasons; off: the first winner's own reason."""
    exit_confidence: tuple[float, ...] = (0.88, 0.65, 0.46)
    """Confidence by the round in which agreement came."""
    team_size: int = 3
    """Agents that an estimate presumes; a run takes the team it is given."""

    def __post_init__(self) -> None:
        check_least(
            self,
            self.name,
            preview_frames=1,
            inference_frames=1,
            long_preview_frames=1,
            long_inference_frames=1,
            block_frames=1,
            block_best=1,
            clue_words=1,
            team_size=1,
        )

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Algorithm 1."""
        agents = list(run.team)
        if not agents:
            raise ConfigError("a4vl needs a team of agents; name one with --team", key="team")
        blocks = self.partition(footage, question)  # 1
        clues: dict[str, str] = {}
        whole: set[str] = set()
        everything: list[Opinion] = []
        number = 0
        while True:  # 3
            number += 1
            with step("round", round=number, agents=[agent.name for agent in agents]):
                if number == 1:
                    clues, whole = self.explore(footage, question, agents, run)  # 4 to 9
                views = [
                    View(
                        agent,
                        clues[agent.name],
                        agent.name in whole,
                        run.random(footage.name, question.text, agent.name, number),
                    )
                    for agent in agents
                ]
                turns = fanout(partial(self.turn, footage, question, blocks), views)  # 10 to 24
                opinions, shown = (
                    [said for _, said in turns],
                    {said.agent: look for look, said in turns},
                )
                everything += opinions
                winner = self.agreed(question, opinions, agents)  # 25
                if winner is not None or len(agents) == 1:
                    break  # 26, 36
                run.propose(self.conclude(footage, leading(opinions), shown, clues))
                agents, judged = prune(agents, opinions, question)  # 27 to 32
                clues = self.refine(footage, question, agents, judged, clues)  # 33, 34
        final = opinions[0] if winner is None else next(o for o in opinions if o.vote == winner)
        answer = self.conclude(footage, final, shown, clues, number if winner is not None else None)
        run.propose(answer)
        return self.explain(question, answer, reasons(everything, opinions, winner), agents[0])

    def partition(self, footage: Footage, question: Question) -> list[Segment]:
        """The blocks, those the question speaks of."""
        with step("partition"):
            found = footage.blocks(self.events)
            blocks, strength = found.blocks, [0.0, *(cut.strength for cut in found.cuts)]
            emit(
                ScoresSet(
                    label="events",
                    segments=tuple(blocks),
                    values=tuple(np.round(strength, 4).tolist()),
                )
            )
            within = scope(question.text, footage.duration) if self.temporal_scope else None
            if within is None:
                return blocks
            note("temporal_scope", start=within.start, end=within.end)
            return clipped(blocks, within)

    def explore(
        self, footage: Footage, question: Question, agents: Sequence[Agent], run: Run
    ) -> tuple[dict[str, str], set[str]]:
        """Lines 4 to 7: each agent's clue from its own preview, and who must look over the whole film."""

        def first(agent: Agent) -> tuple[str, bool]:
            chance = run.random("preview", footage.name, question.text, agent.name)
            rows = sampling.one_per_bin(len(footage.times), self.n1(footage), chance)  # 6
            look = look_at(footage, rows.tolist())
            told: dict[str, Any] = {"question": question, **shown_to(footage, look)}
            all_of_it = self.gate and (
                COUNTING.search(question.text) is not None
                or ask(
                    agent.chat, "a4vl/gate", Gate, default=Gate(whole_video=True), **told
                ).whole_video
            )
            clue = ask(
                agent.chat,
                "a4vl/clue",
                Clue,
                default=Clue(clue=question.text),
                words=self.clue_words,
                **told,
            ).clue
            return self.brief(clue, question), all_of_it

        found = dict(zip((agent.name for agent in agents), fanout(first, agents), strict=True))
        return {name: clue for name, (clue, _) in found.items()}, {
            name for name, (_, all_) in found.items() if all_
        }

    def perceive(self, footage: Footage, blocks: Sequence[Segment], view: View) -> Look:
        """Lines 11 to 19: frames for one agent, from the blocks that fit its clue."""
        rows = [rows_within(footage, block) for block in blocks]
        total = self.n2(footage)
        if view.whole:
            everything = np.concatenate(rows)
            return look_at(
                footage,
                everything[sampling.one_per_bin(len(everything), total, view.chance)].tolist(),
            )
        logits = self.similarity(footage, rows, view.clue)  # 11
        share = allocate.shares(logits, self.threshold(footage))  # 12 to 14, 17, 18
        emit(
            ScoresSet(
                label=f"share: {view.clue}",
                segments=tuple(blocks),
                values=tuple(np.round(share, 4).tolist()),
            )
        )
        given = allocate.counts(share, total, [len(row) for row in rows])  # 15
        chosen = [
            row[sampling.one_per_bin(len(row), count, view.chance)]
            for row, count in zip(rows, given, strict=True)
        ]  # 16, 19
        return look_at(footage, np.concatenate(chosen).tolist())

    def similarity(
        self, footage: Footage, rows: Sequence[NDArray[np.int64]], clue: str
    ) -> list[float]:
        """``Sim(B_k, P)``: the logit scale times the mean of the best cosines over moments spread over the block."""
        scale = footage.encoder.logit_scale or self.logit_scale
        closeness = footage.embeddings() @ footage.encode([clue])[0]
        logits = []
        for row in rows:
            spread = np.sort(closeness[row[sampling.uniform(len(row), self.block_frames)]])
            logits.append(scale * float(spread[-self.block_best :].mean()))
        return logits

    def turn(
        self, footage: Footage, question: Question, blocks: Sequence[Segment], view: View
    ) -> tuple[Look, Opinion]:
        """Lines 10 to 24 for one agent: what it looks at, its answer, then its reason from the same frames."""
        agent, look = view.agent, self.perceive(footage, blocks, view)  # 10 to 19
        told = shown_to(footage, look)
        answer = guess(agent.chat, "a4vl/answer", question, **told)  # 21
        if answer.abstained:
            return look, Opinion(agent.name, reason=answer.reason)
        given = in_words(question, answer.choice, answer.text)
        why = ask(
            agent.chat,
            "a4vl/reason",
            Reason,
            default=Reason(reason=answer.reason),
            question=question,
            answer=given,
            **told,
        )  # 22
        return look, Opinion(agent.name, answer.choice, answer.text, why.reason)

    def agreed(
        self, question: Question, opinions: list[Opinion], agents: Sequence[Agent]
    ) -> str | None:
        """Line 25: the vote of all of them, or ``None``. Answers in words count as one that say the same."""
        texts = [opinion.text for opinion in opinions]
        if question.options or not all(texts):
            return unanimous(opinions)
        groups = group_answers(agents[0].chat, question, texts)
        return opinions[0].vote if len(groups) == 1 else None

    def refine(
        self,
        footage: Footage,
        question: Question,
        agents: Sequence[Agent],
        judged: Sequence[Opinion],
        clues: Mapping[str, str],
    ) -> dict[str, str]:
        """Lines 33 and 34: new clues from what was said, scored and who left."""

        def again(agent: Agent) -> str:
            found = ask(
                agent.chat,
                "a4vl/refine",
                Clue,
                default=Clue(clue=question.text),
                name=Plain(agent.name),
                question=question,
                length=length(footage),
                minutes=minutes(judged),
                clue=clues[agent.name],
                words=self.clue_words,
            )
            return self.brief(found.clue, question)

        return dict(zip((agent.name for agent in agents), fanout(again, agents), strict=True))

    def conclude(
        self,
        footage: Footage,
        final: Opinion | None,
        shown: Mapping[str, Look],
        clues: Mapping[str, str],
        exit_round: int | None = None,
    ) -> Answer:
        """An opinion as an answer, with the moments that fitted its clue best."""
        if final is None or final.vote is None:
            return Answer(reason="" if final is None else final.reason, status="abstained")
        cited = cite(footage, shown[final.agent], clues[final.agent], CITED)
        table = self.exit_confidence
        confidence = (
            None if exit_round is None or not table else table[min(exit_round, len(table)) - 1]
        )
        return Answer(final.choice, final.text, final.reason, confidence, cited)

    def explain(
        self, question: Question, answer: Answer, given: Sequence[str], agent: Agent
    ) -> Answer:
        """The final explanation, by the summariser: the first agent that is left."""
        if not self.summarise or not given or answer.status == "abstained":
            return answer
        told = in_words(question, answer.choice, answer.text)
        made = ask(
            agent.chat,
            "a4vl/summarise",
            Explanation,
            default=None,
            question=question,
            answer=told,
            reasons=list(given),
        )
        return answer if made is None else replace(answer, reason=made.explanation)

    def brief(self, clue: str, question: Question) -> str:
        """A clue of at most ``clue_words`` words; the question where nothing was written."""
        return " ".join(clue.split()[: self.clue_words]) or question.text

    def threshold(self, footage: Footage) -> float | None:
        """ρ on this encoder's logits."""
        if self.rho is not None:
            return self.rho
        known = footage.encoder.thresholds.get(RHO)
        return None if known is None else float(known)

    def n1(self, footage: Footage) -> int:
        """Preview frames for this film."""
        return (
            self.long_preview_frames
            if footage.duration > self.long_seconds
            else self.preview_frames
        )

    def n2(self, footage: Footage) -> int:
        """Frames of an answer for this film."""
        return (
            self.long_inference_frames
            if footage.duration > self.long_seconds
            else self.inference_frames
        )

    def bounds(self, duration: float, question: Question) -> Bounds:
        """Agreement never comes before one agent is left."""
        m, open_ended = self.team_size, not question.options
        long = duration > self.long_seconds
        n1 = self.long_preview_frames if long else self.preview_frames
        n2 = self.long_inference_frames if long else self.inference_frames
        answers = m * (m + 1) // 2  # m in the first round, one fewer in each after it
        first = m * (2 if self.gate else 1)
        judging, refining, grouping = answers - 1, answers - m, (m - 1) * open_ended
        calls = first + 2 * answers + judging + refining + grouping + self.summarise
        asked = words([question.text, *question.options])
        steps = (
            (2 if self.gate else 1) + 2 * m + 2 * (m - 1) + (m - 1) * open_ended + self.summarise
        )
        return Bounds(
            calls=calls,
            frames=first * n1 + 2 * answers * n2,
            prompt_words=calls * (asked + 140) + (judging + refining) * m * 80,
            reply_words=calls * 60,
            steps=steps,
        )


def reasons(said: Sequence[Opinion], last: Sequence[Opinion], winner: str | None) -> list[str]:
    """What was said for the winning answer in any round, each once."""
    agreed = {opinion.vote for opinion in last} if winner is not None else {last[0].vote}
    return list(
        dict.fromkeys(
            o.reason for o in said if o.vote in agreed and o.vote is not None and o.reason
        )
    )
