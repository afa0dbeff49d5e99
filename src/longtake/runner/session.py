"""A session: settings and models, ready to answer questions about films.

:func:`open_film` and its neighbours open films without any model; :class:`Session` opens methods
and models; :func:`solve` runs a method on one question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from longtake import prompts, registry
from longtake._util.cancellation import Cancelled, Stop
from longtake.agents import calibration
from longtake.agents.calibration import FILE, Fit, footage_kind, leader, vote_of
from longtake.agents.run import Agent, Run, on_time, settle
from longtake.agents.team import open_team
from longtake.agents.verify import mention_disagreement, with_nearest_frames
from longtake.config import Settings, user_config_file
from longtake.errors import BudgetSpent, ConfigError, LongtakeError
from longtake.footage.protocol import Footage
from longtake.llm.budget import Ledger
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Chat, count
from longtake.llm.middleware import ReplyStore, with_capabilities
from longtake.methods.base import (
    FULL,
    SMALL,
    Composed,
    Method,
    checked_by,
    configure,
    fields_of,
    has_trait,
    name_of,
)
from longtake.prompts import phrase, prompts_digest
from longtake.retrieval.question_kinds import asks_for
from longtake.runner.assignment import (
    CAPTIONER,
    DEFAULT_MODELS,
    TEAM,
    WORDS_CAPTIONER,
    ModelAssignment,
)
from longtake.tracing import events
from longtake.tracing.events import Sink, Stream
from longtake.tracing.sinks import Recorder
from longtake.types import Answer, Question, Result


@dataclass(frozen=True)
class Session:
    """Settings and models, ready to answer questions."""

    settings: Settings = field(default_factory=Settings)
    assignment: ModelAssignment = field(default_factory=ModelAssignment)
    seed: int = 0
    prompts: Path | None = None
    """A folder of prompts that replace shipped ones."""

    def with_fields(self, method: str, fields: Mapping[str, Any]) -> Session:
        """The same session with a method's fields set."""
        methods = self.settings.methods
        methods = {**methods, method: {**methods.get(method, {}), **fields}}
        return replace(self, settings=replace(self.settings, methods=methods))

    def method(self, name: str, *, discover: bool = False) -> Method:
        """Create a method with its settings; ``discover`` asks endpoints about their models."""
        # fields are checked here, since only the method's class knows them
        values = self.settings.methods.get(name, {})
        kind = registry.methods.get(name)
        small = "preset" not in values and self.has_small_models(kind.roles, discover=discover)
        method: Method = configure(kind, values, source="settings", small=small)
        if isinstance(method, Composed):
            fields = {}
            for stage in dict.fromkeys(method.stages):
                if name_of(stage) in registry.methods:
                    fields[stage] = fields_of(self.method(name_of(stage), discover=discover))
            method = method.composed(fields, [asdict(fit) for fit in self.calibration])
        return method

    @property
    def calibration(self) -> tuple[Fit, ...]:
        """The user's fits, followed by those that come with longtake."""
        path = self.calibration_file
        configured = self.settings.answers.calibration
        fits = calibration.read(path) if configured or path.is_file() else ()
        return (*fits, *calibration.shipped())

    @property
    def calibration_file(self) -> Path:
        """The file of the user's fits."""
        configured = self.settings.answers.calibration
        return Path(configured).expanduser() if configured else user_config_file().with_name(FILE)

    def settled(self, name: str) -> Session:
        """The same session with a fixed preset, whatever is learned about its models later."""
        values, kind = self.settings.methods.get(name, {}), registry.methods.get(name)
        small = SMALL in kind.presets and self.has_small_models(kind.roles, discover=True)
        return self.with_fields(name, {"preset": SMALL if small else FULL, **values})

    @property
    def _unhurried(self) -> bool:
        """Whether there is time to ask endpoints about their models before the question."""
        return self.settings.budget.seconds is None

    def has_small_models(self, roles: Sequence[str], *, discover: bool = False) -> bool:
        """Whether every model that answers is small; the captioner does not count."""
        catalogue = self._catalogue()
        try:
            models = self.assignment.names(roles)
        except ConfigError:
            return False  # reported when the models are opened
        names = {name for role, name in models.items() if role != CAPTIONER}
        if TEAM in roles:
            names |= {member.model for member in self.assignment.members()}
        discover = discover and self._unhurried
        return bool(names) and all(catalogue.is_small(name, discover=discover) for name in names)

    def _models_for(self, roles: Sequence[str], footage: Footage) -> dict[str, str]:
        """The model of each role for this footage."""
        names = self.assignment.names(roles, pictures="pictures" in footage.has)
        # small models take tags, which are guesses, for facts
        by_default = names.get(CAPTIONER) == DEFAULT_MODELS[CAPTIONER]
        if by_default and not self.assignment.names_captioner and self.has_small_models(roles):
            names[CAPTIONER] = WORDS_CAPTIONER
        return names

    def hosts(self, roles: Sequence[str]) -> list[str]:
        """The other machines that pictures and words would be sent to."""
        return self._catalogue().hosts(self.models(roles))

    def check_models(self, roles: Sequence[str]) -> None:
        """Reject models that cannot be used, for example for lack of a key."""
        self._catalogue().check(self.models(roles))

    def models(self, roles: Sequence[str]) -> list[str]:
        """The models that fill the roles, including those of the team."""
        models = list(self.assignment.names(roles).values())
        if TEAM in roles:
            models += [member.model for member in self.assignment.members()]
        return models

    def run(
        self,
        method: Method,
        footage: Footage,
        *,
        ledger: Ledger | None = None,
        stop: Stop | None = None,
        discover: bool = True,
    ) -> Run:
        """Open the models that a method needs, with the budget for one question.

        With ``discover``, endpoints are asked about their models, unless there is a time limit,
        which a slow endpoint might use up.
        """
        discover = discover and self._unhurried
        catalogue = self._catalogue()
        # a describer lets text models describe pictures; replies are cached with the film
        describer, folder = footage.describer(), footage.replies_folder
        replies = ReplyStore(folder) if folder and self.assignment.replies else None
        names = self._models_for(method.roles, footage)
        models: dict[str, Chat] = {}
        for role, name in names.items():
            opened = catalogue.open(name, describer=describer, replies=replies)
            models[role] = with_capabilities(opened, discover=discover)
        team: Sequence[Agent] = ()
        if TEAM in method.roles or (isinstance(method, Composed) and self.assignment.names_team):
            members = self.assignment.members()
            team = open_team(
                catalogue, members, describer=describer, replies=replies, discover=discover
            )
        return Run(
            models, team=team, budget=self.settings.budget, seed=self.seed, ledger=ledger, stop=stop
        )

    @property
    def _reader(self) -> str:
        return self.assignment.names(("llm",), pictures=False)["llm"]

    @property
    def reads_here(self) -> bool:
        """Whether the model that reads runs in this process."""
        return self._reader.startswith("local/")

    def load_reader(self) -> None:
        """Load the model that reads, if it runs in this process."""
        if self.reads_here:
            count(self._catalogue().open(self._reader, describer=None, replies=None), "")

    def reader(self, *, folder: Path | None = None, stop: Stop | None = None) -> Run:
        """Open only the model that reads, for work on texts. Replies are cached in ``folder``."""
        replies = ReplyStore(folder) if folder and self.assignment.replies else None
        opened = self._catalogue().open(self._reader, describer=None, replies=replies)
        chat = with_capabilities(opened, discover=self._unhurried)
        return Run({"llm": chat}, budget=self.settings.budget, seed=self.seed, stop=stop)

    def ask(
        self,
        footage: Footage,
        question: Question,
        method: str | None = None,
        *,
        sinks: Sequence[Sink] = (),
        pictures: bool = False,
        stop: Stop | None = None,
    ) -> Result:
        """Answer a question with a method; ``pictures`` keeps the frames it saw in the trace.

        ``stop.set()``, from any thread, ends the run within a second with the best answer so far.
        """
        recorder = Recorder(pictures=pictures)
        with self.under_way(recorder, *sinks):
            method = method or self.assignment.default_method
            result = self.answer(method, footage, question, stop=stop)
        return replace(result, trace=recorder.trace)

    def answer(
        self, method: str, footage: Footage, question: Question, *, stop: Stop | None = None
    ) -> Result:
        """Open a method with its models and run it; events go to the active stream."""
        opened = self.method(method, discover=True)
        # starts the time limit, since opening models that see may index the film
        ledger = Ledger(self.settings.budget)

        def opening() -> Run:
            return self.run(opened, footage, ledger=ledger, stop=stop)

        try:
            run = on_time(opening, ledger, stop, watched=stop is not None)
        except (BudgetSpent, Cancelled) as ended:
            return self._unopened(opened, footage, question, ledger, ended)
        answers = self.settings.answers
        return solve(
            opened,
            footage,
            question,
            run,
            check=answers.verify,
            fits=self.calibration,
            min_confidence=answers.min_confidence,
        )

    def _unopened(
        self,
        method: Method,
        footage: Footage,
        question: Question,
        ledger: Ledger,
        ended: BudgetSpent | Cancelled,
    ) -> Result:
        """The result of a run that ended before its models were opened."""
        run = Run({}, ledger=ledger, seed=self.seed)
        started = _started(registered_name(method), method, footage, question, run)
        models = self._models_for(method.roles, footage)
        events.emit(replace(started, models=models))
        answer = _ended_early(ended, run)
        events.emit(events.Answered(answer=answer, usage=run.usage))
        return Result(answer, run.usage, started.method, models)

    @contextmanager
    def under_way(self, *sinks: Sink) -> Iterator[None]:
        """Inside the block, events go to these sinks and the session's prompts are used."""
        stream = Stream(*sinks)
        try:
            with prompts.override(self.prompts), stream.active():
                yield
        finally:
            stream.close()

    def _catalogue(self) -> ModelCatalog:
        return ModelCatalog(self.settings, offline=self.assignment.offline)


def solve(
    method: Method,
    footage: Footage,
    question: Question,
    run: Run,
    *,
    check: bool = False,
    fits: Sequence[Fit] = (),
    min_confidence: float = 0.0,
) -> Result:
    """Run a method on one question; return its answer and its usage.

    If the budget runs out or the run is cancelled, the answer is the best one so far, with that
    status. With ``check``, the answer is verified against the film and cites only what supports it.
    If one of ``fits`` applies, its confidence is a probability. Answers whose probability is
    unknown or below ``min_confidence`` are withheld.
    """
    name = registered_name(method)
    started = _started(name, method, footage, question, run)
    events.emit(replace(started, verify=check))

    fit = calibration.find(fits, name, run.names, footage.has, question)
    run.checks, run.odds = check, fit is not None and fit.wants_odds

    def work() -> Answer:
        answer = _answered(name, method, footage, question, run, fit)
        # what follows only adds to it
        run.propose(answer, complete=True)
        answer = mention_disagreement(answer, footage, question)
        return with_nearest_frames(answer, footage, question)

    try:
        answer = run.on_time(work)
    except (BudgetSpent, Cancelled) as ended:
        answer = with_option_text(_ended_early(ended, run), question)
    # traces show failures as well
    except LongtakeError as error:
        events.emit(events.Failed(error=type(error).__name__, message=str(error)))
        raise
    # the confidence of a method that verifies its answers is a probability
    known = answer.confidence if fit is not None or has_trait(method, "verifies") else None
    if known is not None:
        events.note("calibrated", probability=known)
    answer = withheld(answer, known, min_confidence)
    # read once, since its seconds continue to count
    usage = run.usage
    events.emit(events.Answered(answer=answer, usage=usage))
    return Result(answer, usage, name, run.names)


def _answered(
    name: str, method: Method, footage: Footage, question: Question, run: Run, fit: Fit | None
) -> Answer:
    """The method's answer, checked and with its probability unless the method does both."""
    answer = with_option_text(method.answer(footage, question, run), question)
    if has_trait(method, "verifies"):
        return answer
    # the budget may end the check, and this answer is complete without it
    run.propose(answer)
    checked = checked_by(method, answer, footage, question, run)
    vote = vote_of(name, answer, checked)
    final = with_option_text(checked.answer, question)
    if not final.is_given:
        return final
    events.note(events.SIGNALS, **asdict(vote), footage=footage_kind(footage.has))
    return final if fit is None else replace(final, confidence=leader([vote], question, fit)[1])


def withheld(answer: Answer, chance: float | None, min_confidence: float) -> Answer:
    """The answer, or an abstention if its probability is unknown or too low."""
    if not min_confidence or not (answer.choice or answer.text):
        return answer
    if chance is not None and chance >= min_confidence:
        return answer
    why = "its probability is unknown; 'longtake calibrate' can fit one to this model"
    if chance is not None:
        why = f"its probability of {chance:.0%} is below {min_confidence:.0%}"
    events.note("withheld", choice=answer.choice, text=answer.text, why=why)
    return Answer(reason=f"an answer was found, but {why}", confidence=chance, status="abstained")


def _ended_early(ended: BudgetSpent | Cancelled, run: Run) -> Answer:
    """The best answer so far, with a status that says what ended the run."""
    if isinstance(ended, BudgetSpent):
        events.note("budget_spent", why=str(ended))
        return settle(ended)
    events.note("cancelled")
    return replace(run.ledger.best or Answer(), status="cancelled")


def _started(
    name: str, method: Method, footage: Footage, question: Question, run: Run
) -> events.RunStarted:
    """The event with everything that is needed to repeat the run."""
    limits = vars(run.ledger.limits).items()
    return events.RunStarted(
        method=name,
        question=question.text,
        options=question.options,
        asks_for=asks_for(question),
        film=footage.name,
        fields=fields_of(method),
        models=run.names,
        cards=run.cards,
        seed=run.seed,
        budget={key: limit for key, limit in limits if limit is not None},
        prompts=replaced_prompts(),
        subtitles=str(footage.given_subtitles or ""),
        wording=prompts_digest(),
    )


def registered_name(method: Method) -> str:
    """The registered name of a method, by which a rerun finds it, or else its class's name."""
    return registry.methods.name_of(type(method)) or method.name


def replaced_prompts() -> dict[str, str]:
    """The texts of the prompts that replace shipped ones, by name."""
    # reading all prompts is slow
    if not prompts.overridden():
        return {}
    # outside any override, load() gives the shipped prompts
    with prompts.override(None):
        shipped = {name: prompts.load(name) for name in prompts.names()}
    in_force = {name: prompts.load(name) for name in shipped}
    return {name: prompt.text for name, prompt in in_force.items() if prompt is not shipped[name]}


def with_option_text(answer: Answer, question: Question) -> Answer:
    """Return the answer with the text of the option that it chose by letter."""
    if answer.choice is None or answer.text:
        return answer
    return replace(answer, text=question.options[question.letters.index(answer.choice)])


CARRIED = 20_000
"""Maximum length of the earlier questions and answers that are sent; the last matter most."""


def with_carried(question: str, carried: str) -> str:
    """The question with the conversation that it may refer to."""
    text, earlier = question.strip(), carried.strip()
    return f"{text}\n{phrase('shared', 'earlier', earlier=earlier)}" if earlier else text


def carry_on(carried: str, question: str, answer: str) -> str:
    """The conversation with one more question and its answer, to be sent with the next one."""
    turn = f"Q: {' '.join(question.split())}\nA: {' '.join(answer.split())}"
    return f"{carried}\n{turn}".strip()[-CARRIED:]
