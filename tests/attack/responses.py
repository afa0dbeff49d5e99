"""Mutated responses until the time is up: ``python responses.py SEED SECONDS``.

The last line that it prints is JSON with the number of cases and findings.
"""

import json
import sys
import time
import traceback

from attack.liar import LIES, lying, random_reply

from longtake.errors import ModelError
from longtake.llm.backends.openai import OpenAIChat
from longtake.llm.chat import Card, Options, say
from longtake.llm.http import Endpoint

KEY = "sk-MARKED-0123456789abcdef"
DEADLINE = 5.0


def attempt(chat: OpenAIChat) -> str:
    """Ask once; gives what went wrong, or nothing."""
    began = time.monotonic()
    try:
        outcome: object = chat.complete([say("user", "hello")], Options(deadline=DEADLINE))
    except ModelError as error:
        outcome = error
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding
        return traceback.format_exc()
    if KEY.lower() in f"{outcome} {outcome!r}".lower():
        return "the key leaked"
    return "it took too long" if time.monotonic() - began > DEADLINE + 1 else ""


def main(seed: int, seconds: float) -> None:
    """Every lie once, and then mutated responses."""
    cases, findings, end = 0, 0, time.monotonic() + seconds
    modes = iter(LIES.items())
    with lying(KEY) as liar:
        chat = OpenAIChat(Card("m", model="x"), Endpoint("m", liar.url, key=KEY, timeout=30))
        while time.monotonic() < end:
            name, liar.mode = next(modes, (f"seed {seed}", random_reply(seed)))
            why = attempt(chat)
            if why:
                print(f"found: {name}\n{why[-800:]}", flush=True)
            cases, findings, seed = cases + 1, findings + bool(why), seed + 1
    print(json.dumps({"cases": cases, "findings": findings}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
