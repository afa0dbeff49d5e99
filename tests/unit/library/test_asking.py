"""Questions to a library of lab films: the right film, its moments, or that it is in no film."""

import json
from dataclasses import replace
from functools import cache

import pytest

from longtake.config import AnswerSettings, BudgetSettings, Settings
from longtake.errors import MediaError
from longtake.library import Library, ask_library
from longtake.library.catalog import Facts
from longtake.library.segments import FilmRows, material_of_footage, rows_of
from longtake.llm import catalog
from longtake.llm.backends.scripted import ScriptedChat
from longtake.perception.loader import PerceptionModels
from longtake.runner.assignment import ModelAssignment
from longtake.runner.session import Session
from longtake.types import Question
from longtake.video.container import NO_FILE
from longtake_bench.lab.facts import sentence
from longtake_bench.lab.footage import LabEncoder, LabFootage
from longtake_bench.lab.library import make_library


@cache
def world():
    # not when this file is imported, which every process of a test run does
    return make_library(5, 5, first_seed=52, questions=40)


SESSION = Session(Settings(), ModelAssignment(("lab/acuity=1,latency=0",)))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    encoder = LabEncoder()
    films = {script.name: LabFootage(script, encoder=encoder) for script in world().scripts}
    perception = PerceptionModels(Settings().perception, folder, images=encoder)
    library = Library(
        folder, perception=perception, sentences=encoder, opener=lambda entry: films[entry.name]
    )
    for name, footage in films.items():
        library.catalogue.describe(name, Facts(name, footage.duration, tags=("lab",)))
        library.catalogue.place(folder / name, name, NO_FILE)
        rows = rows_of(material_of_footage(footage), encoder)
        library.index.replace([FilmRows(name, {}, rows)])
    return library


def spoken():
    return [each for each in world().questions if each.asked.kind == "spoken"]


def test_each_question_of_the_world_has_one_film():
    assert len(world().questions) == 40
    assert {each.film for each in world().questions} == set(range(5))
    assert all(each.asked.kind not in ("scope", "count", "topic") for each in world().questions)


def test_the_answer_comes_from_the_right_film_and_cites_it(library):
    asked = spoken()[:4]
    assert len(asked) == 4
    for question in asked:
        result = ask_library(library, SESSION, question.asked.question, "lookup")
        name = world().scripts[question.film].name
        assert result.answer.choice == question.asked.answer
        assert result.cited[0].film.name == name
        assert str(result.cited[0]).startswith(f"{name} @ 00:0")
        assert result.searched == 5
        assert result.usage.calls >= 2


def test_in_no_film_is_an_answer(library):
    question = Question("According to the narrator, what does the plastic gorilla cost?")
    result = ask_library(library, SESSION, question, "lookup")
    assert result.answer.status == "abstained"
    assert result.answer.reason == f"in no film: 5 searched, {len(result.films)} looked at"
    assert result.cited == ()


def test_only_the_films_that_are_meant_are_asked(library):
    question = spoken()[0]
    name = world().scripts[question.film].name
    asked = replace(question.asked.question, options=())
    result = ask_library(library, SESSION, asked, "lookup", where=name)
    assert result.searched == 1
    assert {each.film.name for each in result.films} <= {name}


def test_every_occurrence_goes_over_all_candidates_and_says_so(library, monkeypatch):
    prompts = []
    said = [script.sayings[0].fact for script in world().scripts[:2]]

    def script(messages, options):
        prompts.append(options.prompt)
        if options.prompt == "library/merge":
            return json.dumps({"films": [1, 2], "answer": "in two films"})
        # the question holds both sentences, a film's passages hold its own once more
        told = [sentence(fact) for fact in said if str(messages).count(sentence(fact)) > 1]
        return json.dumps({"lines": [1] if told else []})

    monkeypatch.setattr(
        catalog.ModelCatalog, "open", lambda self, name, **rest: ScriptedChat(script)
    )
    question = Question(f"List every time somebody says: {' / '.join(map(sentence, said))}")
    unchecked = replace(SESSION.settings, answers=AnswerSettings(verify=False))
    result = ask_library(library, replace(SESSION, settings=unchecked), question, "lookup")
    assert result.every
    assert len(result.films) == result.candidates == 5
    assert result.answer.text == "in two films"
    assert 1 <= len({cited.film.name for cited in result.cited}) <= 2
    # no model has to choose if every candidate is asked
    assert "library/choose" not in prompts


def test_every_occurrence_of_words_is_listed_film_by_film_without_a_model(library, monkeypatch):
    monkeypatch.setattr(catalog.ModelCatalog, "open", lambda *_, **__: ScriptedChat([]))
    result = ask_library(library, SESSION, Question("How often are lanterns mentioned?"), "lookup")
    said = {}
    for script in world().scripts:
        lines = LabFootage(script, encoder=LabEncoder()).speech()
        said[script.name] = [line.text for line in lines if "lantern" in line.text]
    cited = [(each.film.name, each.evidence.text) for each in result.cited]
    assert sorted(cited) == sorted((name, text) for name, texts in said.items() for text in texts)
    films = [name for name, texts in said.items() if texts]
    assert len(films) > 1
    assert result.answer.text.startswith(f"{len(cited)} times in {len(films)} films. ")


@pytest.mark.parametrize(
    ("text", "every"),
    [("What does the man say?", False), ("Which films have a man in them?", True)],
)
def test_a_model_decides_on_every_occurrence_only_if_the_wording_allows_it(
    library, monkeypatch, text, every
):
    def script(messages, options):
        if options.prompt == "library/choose":
            return json.dumps({"films": [1], "every": True})
        return "not told"

    monkeypatch.setattr(
        catalog.ModelCatalog, "open", lambda self, name, **rest: ScriptedChat(script)
    )
    result = ask_library(library, SESSION, Question(text), "lookup")
    assert result.every is every


def test_one_budget_covers_all_films(library):
    question = spoken()[0]
    limited = replace(SESSION.settings, budget=BudgetSettings(calls=1))
    result = ask_library(
        library, replace(SESSION, settings=limited), question.asked.question, "lookup"
    )
    assert result.answer.status == "budget_spent"
    assert result.usage.calls <= 1


def test_a_film_that_disappears_meanwhile_is_left_out(library, monkeypatch):
    # the first one's iron fiddle is taken for the iron wagon of another film
    question = spoken()[1]
    gone = world().scripts[question.film].name
    opened = library.footage

    def vanishing(entry):
        if entry.name == gone:
            raise MediaError(entry.path, "not_found", "no such file")
        return opened(entry)

    monkeypatch.setattr(library, "footage", vanishing)
    asked = replace(question.asked.question, options=())
    result = ask_library(library, SESSION, asked, "lookup")
    assert gone not in [each.film.name for each in result.films]
    assert result.answer.status == "abstained"
