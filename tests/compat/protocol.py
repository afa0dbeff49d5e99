"""Reads request bodies with a server's own protocol classes; runs in that server's environment.

    python protocol.py vllm|sglang|llama_cpp FOLDER < bodies.json

FOLDER holds the unpacked package. Only its protocol modules are imported: whatever else they import
from the package is replaced by stand-ins, so that neither torch nor a GPU is needed.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import types
from pathlib import Path

from pydantic_core import core_schema

REAL = {
    "vllm": (
        "vllm.entrypoints.openai.chat_completion.protocol",
        "vllm.entrypoints.generate.base.protocol",
        "vllm.entrypoints.serve.engine.protocol",
        "vllm.exceptions",
    ),
    "sglang": ("sglang.srt.entrypoints.openai.protocol",),
    "llama_cpp": ("llama_cpp.server.types", "llama_cpp.llama_types"),
}
"""The modules that are imported; the first one holds the class of a request."""
REQUESTS = {
    "vllm": "ChatCompletionRequest",
    "sglang": "ChatCompletionRequest",
    "llama_cpp": "CreateChatCompletionRequest",
}
KNOWN_REFUSALS = {"llama_cpp": ("json_schema", "video")}
"""Words in the names of bodies that a server refuses, and longtake then asks in another way."""


def any_value(cls, source, handler):
    """Accept everything: what a stand-in would check is not about the request's form."""
    return core_schema.any_schema()


class StandIn(type):
    """A class that is also a function, a decorator and a namespace."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)

    def __getitem__(cls, item):
        return cls

    def __or__(cls, other):
        return cls

    def __ror__(cls, other):
        return cls

    def __index__(cls):
        return 1_000_000  # limits that a server sets elsewhere


def stand_in(name):
    """A class that accepts every use."""
    members = {
        "__get_pydantic_core_schema__": classmethod(any_value),
        "__init__": lambda self, *args, **more: None,
        "__getattr__": lambda self, name: lambda *args, **more: None,
        "__str__": lambda self: "0",
    }
    return StandIn(name, (), members)


class Module(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = stand_in(name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the real protocol modules, their folders, and stand-ins for the rest of the package."""

    def __init__(self, package, folder):
        self.package, self.folder = package, folder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != self.package:
            return None
        file = self.folder / (name.replace(".", "/") + ".py")
        if name in REAL[self.package] and file.is_file():
            return importlib.util.spec_from_file_location(name, file)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []


WRONG = {
    "no messages": {"model": "m", "messages": "Hello?"},
    "words for a number": {"model": "m", "messages": [], "max_tokens": "many"},
}
"""Bodies that must be refused, or the stand-ins have taken the checks' place."""


def why_refused(request, body):
    """Why a body is refused; empty if it is accepted."""
    try:
        request(**body)
    except Exception as error:  # noqa: BLE001 - whatever it raises is a refusal
        return " ".join(str(error).split())[:200] or type(error).__name__
    return ""


def load(package, folder):
    """The class of a request."""
    sys.meta_path.insert(0, Finder(package, folder))
    if package == "llama_cpp":  # whose types are found in the package itself
        types_module = importlib.import_module("llama_cpp.llama_types")
        for name, value in vars(types_module).items():
            if not name.startswith("_"):
                setattr(sys.modules["llama_cpp"], name, value)
    return getattr(importlib.import_module(REAL[package][0]), REQUESTS[package])


def main() -> int:
    """Print which bodies are refused, and how many were read."""
    package, folder = sys.argv[1], Path(sys.argv[2])
    request = load(package, folder)
    given, known, complaints = json.load(sys.stdin), 0, []
    for name, body in given:
        why = why_refused(request, body)
        if why and any(word in name for word in KNOWN_REFUSALS.get(package, ())):
            known += 1
        elif why:
            complaints.append(f"{name}: {why}")
    for name, body in WRONG.items():
        if not why_refused(request, body):
            complaints.append(f"{name}: accepted, so this check shows nothing")
    print("\n".join(complaints[:10]))
    print(f"{len(given)} requests read, {known} refused as known, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
