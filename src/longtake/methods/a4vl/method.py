"""A4VL, Algorithm 1.

Xu, Liu, Kompella, Huang, Hu, Ilhan, Tekin, Yahn and Liu, "A Multi-Agent Perception-Action Alliance
for Efficient Long Video Reasoning", CVPR 2026::

     1  {B_1 … B_b} ← EventPartition(V, B)
     3  while |A| ≥ 1
     4      for each agent                                       step 1.1: clue
     5          in the first round
     6              v ← N1 preview frames
     7              P ← its clue from v and the question
     8          else P is given
    10      for each agent                                       step 1.2: perception sampling
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

Departures. Line 15 as printed, N2⌊softmax⌋, allocates nothing; here ⌊N2·softmax⌋ frames are
allocated, and the rest by largest remainders. The released ρ = 0.8 acts on a logit with a median of
5; here ρ comes from the encoder's card, and without a value no block is excluded. The paper does
not say how the frames of a block are chosen; here one is drawn from each of equal bins, anew for
each agent and round, so that agents with the same clue see different frames. A question that names
its place in the film restricts the blocks (``temporal_scope``). Answers in words are compared by
meaning. An unreadable answer is an abstention, which blocks consensus. The last remaining agent
looks once more with its new clue, and that answer stands. The explanation combines the reasons for
the winning answer from all rounds. Confidence is the accuracy of the authors' published answers
that were agreed in the same round; for other teams it ranks answers but is not a probability.
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

from longtake.agents.answer import guess, in_words, length, shown_to
from longtake.agents.run import Agent, Run
from longtake.agents.team import (
    Opinion,
    fanout,
    group_answers,
    leading,
    prune,
    transcript,
    unanimous,
)
from longtake.algorithms import sampling
from longtake.algorithms.partition import PAPER, RELEASED, EventPartition
from longtake.errors import ConfigError, check_least
from longtake.footage.look import Look, cite, look_at, rows_within, threshold
from longtake.footage.protocol import Footage
from longtake.llm.structured.ask import ask
from longtake.prompts import Plain
from longtake.retrieval.question_kinds import COUNTING
from longtake.retrieval.scope import clipped, scope
from longtake.tracing.events import note, note_scores, step
from longtake.types import Answer, Question, Segment

RHO = "block_logit"
"""Name of the threshold ρ on an encoder's card."""


class ClueReply(BaseModel):
    """What to look for."""

    clue: str


class ReasonReply(BaseModel):
    """What supports an answer."""

    reason: str = Field(description="two to four sentences")


class ExplanationReply(BaseModel):
    """The winning reasons combined."""

    explanation: str = Field(description="two to four sentences")


class GateReply(BaseModel):
    """Whether part of the film is enough."""

    whole_video: bool = Field(description="true: all of the film must be looked over")


@dataclass(frozen=True)
class View:
    """What one agent looks for in one round."""

    agent: Agent
    clue: str
    whole: bool
    """Look over the whole film, whatever the clue."""
    chance: Random
    """Draws frames anew for each agent and round."""


@dataclass(frozen=True)
class A4VL:
    """Agents write clues, look at matching blocks and answer until they agree or one is left."""

    name: ClassVar[str] = "a4vl"
    paper: ClassVar[str] = (
        "A Multi-Agent Perception-Action Alliance for Efficient Long Video Reasoning "
        "(CVPR 2026; appendices A to D)"
    )
    roles: ClassVar[tuple[str, ...]] = ("team",)
    needs_index: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "events": EventPartition(**PAPER),
            "temporal_scope": False,
            "reason_first": False,
        },
        "released": {
            "events": EventPartition(**RELEASED),
            "rho": 0.8,
            "gate": True,
            "bins": "rest_last",
            "same_frames": False,
            "temporal_scope": False,
            "reason_first": False,
        },
        "small": {"inference_frames": 8, "long_preview_frames": 4, "long_inference_frames": 12},
    }

    # from the paper
    events: EventPartition = field(default_factory=EventPartition)
    """The partition into blocks; ``events.max_blocks`` is B."""
    preview_frames: int = 4
    """Frames in the first look (N1) at a film of at most ``long_seconds``."""
    inference_frames: int = 16
    """Frames an answer is based on (N2), likewise."""
    long_preview_frames: int = 8
    """N1 for longer films."""
    long_inference_frames: int = 32
    """N2 for longer films."""
    long_seconds: float = 180.0
    """Films that last longer are long."""
    block_frames: int = 16
    """Moments of a block that a clue is compared with."""
    block_best: int = 3
    """How many of them, the closest, count."""
    rho: float | None = None
    """Logit a block must exceed (ρ). Unset: the value on the card of the encoder, or of the trained
    head; without one, no block is excluded."""
    clue_words: int = 50
    """Most words in a clue."""

    # ours, or from the released code
    logit_scale: float = 20.0
    """Turns a cosine into a logit if the encoder has no scale. 20 is the scale of the loss that
    Sentence Transformers trains text encoders with (MultipleNegativesRankingLoss), in whose space
    the built-in encoder works."""
    gate: bool = False
    """Let each agent first decide whether it must see the whole film (counting: always)."""
    bins: sampling.Bins = "equal"
    """Bins from which one frame each is drawn: equal, or with the rest in the last one, as in the
    released code."""
    same_frames: bool = True
    """Give the reason from the frames of the answer; off: from others of the whole film, as in the
    released code."""
    temporal_scope: bool = True
    """Look only at the part that the question names: "at the end", "after minute 20"."""
    reason_first: bool = True
    """Let an agent reason before it answers (ours); off, as in the paper, the reason follows in a
    second call."""
    summarise: bool = True
    """Combine the winning reasons into an explanation; off: give the first winner's reason."""
    exit_confidence: tuple[float, ...] = (0.88, 0.65, 0.46)
    """Confidence by the round in which the agents agreed."""
    team_size: int = 3
    """Number of agents that estimates assume; a run uses the team it is given."""

    def __post_init__(self) -> None:
        check_least(self, self.name)

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Algorithm 1."""
        agents = list(run.team)
        if not agents:
            raise ConfigError("a4vl needs a team of agents; name one with --team", key="team")
        blocks = self.partition(footage, question)  # 1
        clues: dict[str, str] = {}
        whole: set[str] = set()
        all_opinions: list[Opinion] = []
        number = 0
        while True:  # 3
            number += 1
            with step("round", round=number, agents=[agent.name for agent in agents]):
                if number == 1:
                    clues, whole = self.explore(footage, question, agents, run)  # 4 to 9
                views = []
                for agent in agents:
                    chance = run.random(footage.name, question.text, agent.name, number)
                    views.append(View(agent, clues[agent.name], agent.name in whole, chance))
                turns = fanout(partial(self.turn, footage, question, blocks), views)  # 10 to 24
                opinions = [opinion for _, opinion in turns]
                shown = {opinion.agent: look for look, opinion in turns}
                all_opinions += opinions
                winner = self.agreed(question, opinions, agents)  # 25
                if winner is not None or len(agents) == 1:
                    break  # 26, 36
                run.propose(self.conclude(footage, leading(opinions), shown, clues))
                agents, judged = prune(agents, opinions, question)  # 27 to 32
                clues = self.refine(footage, question, agents, judged, clues)  # 33, 34
        final, exit_round = opinions[0], None
        if winner is not None:
            final = next(opinion for opinion in opinions if opinion.vote == winner)
            exit_round = number
        answer = self.conclude(footage, final, shown, clues, exit_round)
        run.propose(answer)
        return self.explain(question, answer, reasons(all_opinions, opinions, winner), agents[0])

    def partition(self, footage: Footage, question: Question) -> list[Segment]:
        """Line 1: the blocks, restricted to the part of the film that the question names."""
        with step("partition"):
            partition = footage.blocks(self.events)
            blocks, strength = partition.blocks, [0.0, *(cut.strength for cut in partition.cuts)]
            note_scores("events", blocks, strength)
            within = scope(question.text, footage.duration) if self.temporal_scope else None
            if within is None:
                return blocks
            note("temporal_scope", start=within.start, end=within.end)
            return clipped(blocks, within)

    def explore(
        self, footage: Footage, question: Question, agents: Sequence[Agent], run: Run
    ) -> tuple[dict[str, str], set[str]]:
        """Lines 4 to 9: each agent's clue from its preview, and who must see the whole film."""
        frames = self.n1(footage.duration)

        def first(agent: Agent) -> tuple[str, bool]:
            chance = run.random("preview", footage.name, question.text, agent.name)
            rows = sampling.one_per_bin(len(footage.times), frames, chance, self.bins)  # 6
            slots = {"question": question, **shown_to(footage, look_at(footage, rows.tolist()))}
            needs_all = self.gate and needs_whole_film(question, agent, slots)
            default = ClueReply(clue=question.text)
            max_words = self.clue_words
            reply = ask(
                agent.chat, "a4vl/clue", ClueReply, default=default, words=max_words, **slots
            )  # 7
            return shortened(reply.clue, max_words, question), needs_all

        clues, whole = {}, set()
        for agent, (clue, needs_all) in zip(agents, fanout(first, agents), strict=True):
            clues[agent.name] = clue
            if needs_all:
                whole.add(agent.name)
        return clues, whole

    def turn(
        self, footage: Footage, question: Question, blocks: Sequence[Segment], view: View
    ) -> tuple[Look, Opinion]:
        """Lines 10 to 24 for one agent: look, answer, then a reason from the same frames."""
        agent = view.agent
        look = self.perceive(footage, blocks, view)  # 10 to 19
        slots = shown_to(footage, look)
        prompt = "a4vl/answer" if self.reason_first else "a4vl/act"
        guessed = guess(agent.chat, prompt, question, reasoned=self.reason_first, **slots)  # 21
        if guessed.abstained:
            return look, Opinion(agent.name, reason=guessed.reason)
        if not self.same_frames:
            slots = shown_to(footage, self.spread(footage, blocks, view))
        why = ask(
            agent.chat,
            "a4vl/reason",
            ReasonReply,
            default=ReasonReply(reason=guessed.reason),
            question=question,
            answer=in_words(question, guessed.choice, guessed.text),
            **slots,
        )  # 22
        return look, Opinion(agent.name, guessed.choice, guessed.text, why.reason)

    def perceive(self, footage: Footage, blocks: Sequence[Segment], view: View) -> Look:
        """Lines 11 to 19: the frames of the blocks that fit the clue."""
        if view.whole:
            return self.spread(footage, blocks, view)
        rows = [rows_within(footage, block) for block in blocks]
        total = self.n2(footage.duration)
        logits = self.similarity(footage, rows, view.clue)  # 11
        share = sampling.shares(logits, self.threshold(footage))  # 12 to 14, 17, 18
        note_scores(f"share: {view.clue}", blocks, share)
        counts = sampling.counts(share, total, [len(row) for row in rows])  # 15
        chosen = [
            row[sampling.one_per_bin(len(row), count, view.chance, self.bins)]
            for row, count in zip(rows, counts, strict=True)
        ]  # 16, 19
        return look_at(footage, np.concatenate(chosen).tolist())

    def spread(self, footage: Footage, blocks: Sequence[Segment], view: View) -> Look:
        """Frames of the whole film, or of the part that the question names."""
        rows = np.concatenate([rows_within(footage, block) for block in blocks])
        total = self.n2(footage.duration)
        drawn = sampling.one_per_bin(len(rows), total, view.chance, self.bins)
        return look_at(footage, rows[drawn].tolist())

    def similarity(
        self, footage: Footage, rows: Sequence[NDArray[np.int64]], clue: str
    ) -> list[float]:
        """``Sim(B_k, P)``: logit scale × cosine of moments spread over a block.

        A trained head (``perception.retriever``) scores them together; without one, the best
        cosines are averaged.
        """
        scale = footage.encoder.logit_scale or self.logit_scale
        embeddings, wanted = footage.embeddings(), footage.encode([clue])
        logits = []
        for row in rows:
            clip = embeddings[row[sampling.uniform(len(row), self.block_frames)]]
            if footage.retriever is None:
                cosine = float(np.sort(clip @ wanted[0])[-self.block_best :].mean())
            else:
                cosine = float(footage.retriever.scores(clip, wanted)[0])
            logits.append(scale * cosine)
        return logits

    def threshold(self, footage: Footage) -> float | None:
        """ρ on this encoder's scale; ``None`` excludes no block."""
        card = (footage.retriever or footage.encoder).thresholds
        return threshold(card, RHO, self.rho, None)

    def agreed(
        self, question: Question, opinions: list[Opinion], agents: Sequence[Agent]
    ) -> str | None:
        """Line 25: the unanimous vote, or ``None``. Answers in words are compared by meaning."""
        texts = [opinion.text for opinion in opinions]
        # letters need no comparison, and an abstention prevents agreement anyway
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
        """Line 34: new clues from the opinions, their scores, and who left."""

        def again(agent: Agent) -> str:
            reply = ask(
                agent.chat,
                "a4vl/refine",
                ClueReply,
                default=ClueReply(clue=question.text),
                name=Plain(agent.name),
                question=question,
                length=length(footage),
                transcript=transcript(judged),
                clue=clues[agent.name],
                words=self.clue_words,
            )
            return shortened(reply.clue, self.clue_words, question)

        return dict(zip((agent.name for agent in agents), fanout(again, agents), strict=True))

    def conclude(
        self,
        footage: Footage,
        final: Opinion | None,
        shown: Mapping[str, Look],
        clues: Mapping[str, str],
        exit_round: int | None = None,
    ) -> Answer:
        """An opinion as an answer, with the moments that fit its agent's clue best."""
        if final is None or final.vote is None:
            return Answer(reason="" if final is None else final.reason, status="abstained")
        cited = cite(footage, shown[final.agent], clues[final.agent])
        confidence = None
        if exit_round is not None and self.exit_confidence:
            table = self.exit_confidence
            confidence = table[min(exit_round, len(table)) - 1]
        return Answer(final.choice, final.text, final.reason, confidence, cited)

    def explain(
        self, question: Question, answer: Answer, given: Sequence[str], agent: Agent
    ) -> Answer:
        """Let the first remaining agent combine the winning reasons into one explanation."""
        if not self.summarise or not given or answer.status == "abstained":
            return answer
        reply = ask(
            agent.chat,
            "a4vl/summarise",
            ExplanationReply,
            default=None,
            question=question,
            answer=in_words(question, answer.choice, answer.text),
            reasons=list(given),
        )
        return answer if reply is None else replace(answer, reason=reply.explanation)

    def n1(self, duration: float) -> int:
        """Preview frames for a film of this length."""
        return self.long_preview_frames if duration > self.long_seconds else self.preview_frames

    def n2(self, duration: float) -> int:
        """Frames per answer for a film of this length."""
        return self.long_inference_frames if duration > self.long_seconds else self.inference_frames


def reasons(opinions: Sequence[Opinion], last: Sequence[Opinion], winner: str | None) -> list[str]:
    """The reasons given for the winning answer in any round, each once."""
    agreed = {opinion.vote for opinion in last} if winner is not None else {last[0].vote}
    given = [opinion for opinion in opinions if opinion.vote is not None and opinion.vote in agreed]
    return list(dict.fromkeys(opinion.reason for opinion in given if opinion.reason))


def needs_whole_film(question: Question, agent: Agent, slots: Mapping[str, Any]) -> bool:
    """The gate of the released code; counting questions always need the whole film."""
    if COUNTING.search(question.text):
        return True
    default = GateReply(whole_video=True)
    return ask(agent.chat, "a4vl/gate", GateReply, default=default, **slots).whole_video


def shortened(clue: str, max_words: int, question: Question) -> str:
    """The first ``max_words`` words of a clue; the question if the clue is empty."""
    return " ".join(clue.split()[:max_words]) or question.text
