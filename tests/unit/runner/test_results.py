"""The names and values of a result as data, which are part of the interface."""

from longtake.runner.results import result_data
from longtake.types import Answer, Evidence, Result, Segment, Usage


def test_a_result_as_data():
    cited = Evidence(Segment(3, 5), "speech", "It is red.", 0.9)
    answer = Answer("A", "red", "it is said", 0.8, (cited,), context=Segment(0, 9))
    assert result_data(Result(answer, Usage(calls=2), "lookup", {"llm": "m"})) == {
        "method": "lookup",
        "models": {"llm": "m"},
        "status": "answered",
        "choice": "A",
        "text": "red",
        "reason": "it is said",
        "confidence": 0.8,
        "unchecked": "",
        "context": [0, 9],
        "evidence": [
            {"start": 3, "end": 5, "source": "speech", "text": "It is red.", "score": 0.9}
        ],
        "nearest": [],
        "claims": [],
        "usage": {
            "calls": 2,
            "tokens_in": 0,
            "tokens_cached": 0,
            "tokens_out": 0,
            "frames": 0,
            "seconds": 0.0,
            "cost": 0.0,
        },
    }
