"""The protocol of methods, and how a method is configured."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from longtake.agents.run import Run
from longtake.agents.verify import Checked, check
from longtake.config.overlay import Layer, overlay
from longtake.errors import unknown
from longtake.footage.protocol import Footage
from longtake.types import Answer, Question


class Method(Protocol):
    """A way to answer a question. Its dataclass fields are its settings, recorded with a run.

    Optional are the class variables of :class:`MethodTraits`.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    roles: ClassVar[tuple[str, ...]]
    """The models it needs; ``team`` is a list of agents."""
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]
    """Named settings: ``paper`` follows the paper, ``released`` the authors' released code,
    ``small`` suits small models."""

    def answer(self, footage: Footage, question: Question, run: Run) -> Answer:
        """Answer the question, and propose the best answer so far on the way."""


class MethodTraits(Protocol):
    """Optional class variables of a method; a missing one counts as ``False``."""

    needs_index: ClassVar[bool]
    """It calls ``footage.embeddings`` or ``footage.features``, so the whole film must be indexed
    before it can answer. The method ``auto`` tries stages without an index first."""
    checks_itself: ClassVar[bool]
    """It cites only moments that support its answer, so citations are not checked again."""
    verifies: ClassVar[bool]
    """If ``run.checks`` is set, it checks answers with :mod:`longtake.agents.verify` itself and
    sets their confidence, so that its answer is final."""


@runtime_checkable
class Composed(Protocol):
    """A method made of other methods, which it takes from the registry."""

    stages: tuple[str, ...]

    def composed(
        self,
        stage_fields: Mapping[str, Mapping[str, Any]],
        calibration: Sequence[Mapping[str, Any]],
    ) -> Method:
        """A copy with the fields of its stages and the fits in force."""


def name_of(stage: str) -> str:
    """The method of a stage: ``uniform`` for ``uniform@480``."""
    return stage.partition("@")[0]


M = TypeVar("M", bound=Method)


FULL = "full"
"""The preset that every method has: its defaults."""
SMALL = "small"
"""The preset for small models, used unless another is named."""


def configure(
    kind: type[M], values: Mapping[str, Any], *, source: str = "settings", small: bool = False
) -> M:
    """Create a method with these fields; ``preset`` names a set of fields to start from.

    Without one, ``small`` starts from the preset for small models if the method has it.
    """
    values = dict(values)
    usual = SMALL if small and SMALL in kind.presets else FULL
    preset = values.pop("preset", usual)
    made = kind()
    if preset != FULL:
        if preset not in kind.presets:
            raise unknown("preset", str(preset), kind.presets, where=kind.name)
        made = dataclasses.replace(made, **kind.presets[preset])  # type: ignore[type-var]
    return overlay(made, Layer(values, source), path=f"{kind.name}.")


def has_trait(method: Method, trait: Literal["needs_index", "checks_itself", "verifies"]) -> bool:
    """Whether a method has one of :class:`MethodTraits`."""
    return bool(getattr(method, trait, False))


def checked_by(
    method: Method, answer: Answer, footage: Footage, question: Question, run: Run
) -> Checked:
    """The check of a method's answer; citations that the method has checked are not checked again.

    Without ``run.checks``, other answers are not checked.
    """
    if answer.evidence and has_trait(method, "checks_itself"):
        return Checked(answer, supports=len(answer.evidence))
    return check(answer, footage, question, run) if run.checks else Checked(answer)


def fields_of(method: Method) -> dict[str, Any]:
    """The method's settings as plain data."""
    return dataclasses.asdict(method)  # type: ignore[call-overload, no-any-return]
