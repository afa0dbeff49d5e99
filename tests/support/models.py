"""A backend for tests of commands: ``test/obliging`` answers in whatever form is requested."""

import json
import threading

from longtake.config.entries import ModelEntry
from longtake.errors import ModelError
from longtake.llm.backend import Backend
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.budget import REAL
from longtake.llm.chat import HERE, Card
from support.patience import FOREVER


def fill(schema):
    """The simplest value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return fill(schema["anyOf"][0])
    kind = schema.get("type")
    if kind == "object":
        return {name: fill(value) for name, value in schema.get("properties", {}).items()}
    if kind == "array":
        return []
    if kind in ("integer", "number"):
        return schema.get("maximum", schema.get("minimum", 1))
    return False if kind == "boolean" else "a plain word"


waiting = threading.Event()
"""Set once ``test/slow`` is called."""


class TestBackend(Backend):
    """Makes models from names: ``test/NAME``.

    ``obliging`` fits every form and ``mute`` fits none. ``gone`` cannot be reached. Once the
    pictures are described, ``leaving`` cannot be reached, and ``stopped`` is interrupted by Ctrl-C.
    ``slow`` sets :data:`waiting` and takes for ever, unless its work is ended.
    """

    __test__ = False
    name = "test"
    settings = ModelEntry

    def from_name(self, rest):
        return ModelEntry(backend="test")

    def host(self, model):
        return ""

    def open(self, model):
        return make(model.name.partition("/")[2])


def make(rest: str) -> ScriptedChat:
    """The model of that name."""

    def say(messages, options):
        if rest == "stopped" and "caption" not in options.prompt:
            raise KeyboardInterrupt
        if rest == "gone" or (rest == "leaving" and "caption" not in options.prompt):
            return ModelError(f"test/{rest}", "unavailable", "nobody answers")
        if rest == "slow":
            waiting.set()
            REAL.sleep(FOREVER)
        if rest == "mute" or options.schema is None:
            return "Well."
        return json.dumps(fill(options.schema))

    return ScriptedChat(say, card=Card(f"test/{rest}", price=HERE, vision=True))
