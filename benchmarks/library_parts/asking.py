"""Questions to a library: the film that answers them, what it costs, and real clips."""

from __future__ import annotations

from library_parts.films import MINUTES, fill, lab_library, tell
from longtake.config import Settings
from longtake.evals.benchmarks.lab import LabSource
from longtake.lab.library import LibraryWorld, make_library
from longtake.lab.questions import LabQuestion
from longtake.library import Adder, Library, ask_library
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import Answer

MODEL = "lab/acuity=0.8,latency=0"

CLIPS = (
    ("the space telescope in a cleanroom", "torchcodec_nasa", 0, 13),
    ("an unlucky bird", "moviepy_trailer_bbb", 10, 15),
    ("a slightly overweight bunny", "moviepy_trailer_bbb", 15, 30),
    ("three rodent pests", "moviepy_trailer_bbb", 30, 40),
    ("revenge", "moviepy_trailer_bbb", 40, 55),
    ("all rights reserved", "openboard_wannaworktogether", 58, 75),
    ("commercial uses of your work", "openboard_wannaworktogether", 95, 120),
    ("a teacher who shapes young minds", "openboard_wannaworktogether", 8, 22),
    ("thanks to the MacArthur Foundation", "openboard_wannaworktogether", 161, 165),
    ("an open book", "openboard_wannaworktogether", 27, 36),
    ("the planet earth", "openboard_wannaworktogether", 36, 47),
    ("does the display look OK", "gnome_dual_monitors", 25, 37),
    ("display settings of a laptop with a second screen", "gnome_dual_monitors", 5, 37),
    ("mirror displays", "gnome_dual_monitors", 4, 37),
    ("a refrigerator", "yuefan_kitchen", 16, 29),
    ("glasses in a cupboard", "yuefan_kitchen", 2, 7),
    ("a sink in a kitchen", "yuefan_kitchen", 0, 41),
    ("people walking past a lawn", "opencv_768x576", 0, 5),
)
"""What to search for, the clip that shows or says it, and when: checked by eye on stills, in the
transcript where it is only said."""


def clips(args) -> None:
    """Real clips with the built-in encoders: is the right film first, at the right time?"""
    library = Library(args.folder / "library", Settings())
    Adder(library).add([args.clips])
    right = timely = 0
    for text, name, start, end in CLIPS:
        first = library.search(text).films[0]
        moment = first.moments[0]
        film = first.entry.path.stem == name
        # a segment begins up to ten seconds before what it holds
        in_time = film and start - 10 <= moment.time <= end
        right, timely = right + film, timely + in_time
        tell(
            part="clips",
            text=text,
            film=first.entry.path.stem,
            right=film,
            at=round(moment.time, 1),
            in_time=in_time,
            sure=moment.sure,
            sources=moment.sources,
        )
    tell(part="clips", queries=len(CLIPS), right_film=right, right_time=timely)


def needle(args) -> None:
    """Right film first, accuracy beside asking that film directly, and the growth of the cost."""
    seed = args.first_seed
    # the same questions for every size: only films that are not asked about are added
    world = make_library(
        max(args.libraries),
        MINUTES,
        first_seed=seed,
        questions=args.questions,
        among=min(args.libraries),
    )
    costs = []
    for films in args.libraries:
        library = lab_library(args.folder / f"needle-{films}")
        held = library.index.films()
        seeds = range(seed, seed + films)
        fill(library, [each for each in seeds if f"lab{each:08d}" not in held])
        costs.append(ask_all(library, world, films, args.method, seed))
    tell(part="needle", cost_growth=round(costs[-1] / costs[0], 2))


def ask_all(library: Library, world: LibraryWorld, films: int, method: str, seed: int) -> float:
    """Ask the library and the right film every question; returns the mean cost of the former."""
    session = Session(Settings(), ModelAssignment((MODEL,)))
    searched = first = right = direct = 0
    cost = cost_alone = 0.0
    for question in world.questions:
        asked = question.asked
        name = f"{seed + question.film}:{MINUTES}"
        answer = ask_library(library, session, asked.question, method)
        alone = session.ask(LabSource().footage(name), asked.question, method)
        found = library.search(asked.question.text, films=1).films
        searched += bool(found) and found[0].entry.name == name
        first += bool(answer.films) and answer.films[0].film.name == name
        right += correct(answer.answer, asked)
        direct += correct(alone.answer, asked)
        cost += answer.usage.cost or 0.0
        cost_alone += alone.usage.cost or 0.0
    count = len(world.questions)
    tell(
        part="needle",
        method=method,
        films=films,
        questions=count,
        right_film_first=round(first / count, 3),
        missed=count - first,
        first_by_search_without_options=round(searched / count, 3),
        accuracy=round(right / count, 3),
        accuracy_asked_directly=round(direct / count, 3),
        cost=round(cost / count, 5),
        cost_asked_directly=round(cost_alone / count, 5),
    )
    return cost / count


def correct(answer: Answer, asked: LabQuestion) -> bool:
    if asked.options:
        return answer.choice == asked.answer
    words = answer.text.lower()
    return all(word in words for word in asked.answer_text.lower().split())
