import pytest

from longtake.agents.run import Agent, Run, settle
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import HERE, Card, Options, say
from longtake.types import Answer

HELLO = [say("user", "Hello?")]


def test_roles_and_team_share_one_budget() -> None:
    llm = ScriptedChat(lambda *_: "ok", card=Card("a"))
    member = ScriptedChat(lambda *_: "ok", card=Card("b"))
    run = Run({"llm": llm}, team=[Agent("reader", member)], budget=BudgetSettings(calls=2))
    run["llm"].complete(HELLO, Options())
    run.propose(Answer("C", reason="so far"))
    run.team[0].chat.complete(HELLO, Options())
    with pytest.raises(BudgetSpent) as raised:
        run["llm"].complete(HELLO, Options())
    assert settle(raised.value) == Answer("C", reason="so far", status="budget_spent")
    assert run.usage.calls == 2
    assert run.names == {"llm": "a", "team.reader": "b"}


def test_a_budget_spent_before_any_answer_says_so_too() -> None:
    run = Run({"llm": ScriptedChat(["ok"])}, budget=BudgetSettings(calls=1))
    run["llm"].complete(HELLO, Options())
    with pytest.raises(BudgetSpent) as raised:
        run["llm"].complete(HELLO, Options())
    assert settle(raised.value) == Answer(status="budget_spent")


def test_a_cost_budget_with_an_unknown_price_is_refused_at_the_start() -> None:
    unknown, free = (
        ScriptedChat([], card=Card("cloud")),
        ScriptedChat([], card=Card("here", price=HERE)),
    )
    with pytest.raises(ConfigError, match="the price of cloud is unknown"):
        Run({"llm": free, "vlm": unknown}, budget=BudgetSettings(cost=1.0))
    Run({"llm": free}, budget=BudgetSettings(cost=1.0))
    Run({"llm": unknown}, budget=BudgetSettings(tokens=1))


def test_an_unknown_role_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'captioner'"):
        Run({"captioner": ScriptedChat([])})["captoner"]


def test_chance_depends_on_the_seed_and_the_words_alone() -> None:
    one, two = Run({}, seed=1), Run({}, seed=2)
    assert one.random("film", "q").random() == Run({}, seed=1).random("film", "q").random()
    assert one.random("film", "q").random() != one.random("film", "r").random()
    assert one.random("film", "q").random() != two.random("film", "q").random()
