"""Methods on a film with a vision model of real size: calls, tokens, seconds, pictures a second.

    python benchmarks/eyes.py TOKENIZER.json [--size 3b|tiny] [--seconds 600]
                              [--runs METHOD[/SHOW][*N] …]

The model has the shape of Qwen2.5-VL-3B and random weights, so **its answers mean nothing**; what
is measured is the way there. It sees each picture and each clip with its own vision encoder, behind
an OpenAI-compatible server in this process. Replies are held to their schema, and calls of tools to
theirs: texts are a few words of the model's, times are drawn, and choices take turns, since random
weights prefer one of a method's agents to the others. The film is one of the laboratory.
What budgets reserve for each prompt is compared with what the model counted.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import random
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
from json_server import JsonHandler, serve_in_thread
from PIL import Image
from tokenizers import Tokenizer
from transformers import (
    DynamicCache,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
)

from longtake.config import BudgetSettings, MediaSettings, PerceptionSettings, Settings
from longtake.config.entries import OpenAIEntry
from longtake.llm.budget import Ledger, Reservation
from longtake.runner.assignment import ModelAssignment
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.types import Question, Usage
from longtake_bench.lab.film import make_world, write_world
from longtake_bench.report import table

SIZES = {
    # config.json of Qwen/Qwen2.5-VL-3B-Instruct
    "3b": (
        {"hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36},
        {
            "depth": 32,
            "hidden_size": 1280,
            "intermediate_size": 3420,
            "fullatt_block_indexes": [7, 15, 23, 31],
        },
    ),
    "tiny": (
        {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2},
        {"depth": 4, "hidden_size": 64, "intermediate_size": 128, "fullatt_block_indexes": [3]},
    ),
}
TEXT = {
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "max_position_embeddings": 128000,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}
RUNS = ["videoagent", "symphony*2", "a4vl", "uniform", "uniform/sheets", "uniform/video"]
RUNS += ["a4vl/video", "lvagent/video"]
CONTEXT = 32768
WORDS = 10
"""Tokens of a text in a reply."""
FRAME_SECONDS = 1.0
"""Frames of a clip that the model sees: one in this many seconds."""
FILM_SECONDS = 600
TOOLS = """

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>{}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""How the chat template of Qwen2.5 offers tools."""
CALL = '<tool_call>\n{{"name": "{}", "arguments": '


def model_config(size: str) -> Qwen2_5_VLConfig:
    """A configuration of one of the sizes."""
    text, vision = SIZES[size]
    head = text["hidden_size"] // TEXT["num_attention_heads"]
    sections = [head // 8, 3 * head // 16, 3 * head // 16]
    rope = {"rope_type": "default", "mrope_section": sections, "rope_theta": 1e6}
    return Qwen2_5_VLConfig(
        text_config={**TEXT, **text, "rope_parameters": rope},
        vision_config={**vision, "out_hidden_size": text["hidden_size"], "tokens_per_second": 2},
        image_token_id=151655,
        video_token_id=151656,
        vision_start_token_id=151652,
        vision_end_token_id=151653,
        tie_word_embeddings=True,
    )


class VisionModel:
    """A model of random weights and the tokenizer of the real one."""

    def __init__(self, size: str, tokenizer: str) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(0)
        torch.set_default_dtype(torch.bfloat16 if self.device == "cuda" else torch.float32)
        with torch.device(self.device):
            self.model = Qwen2_5_VLForConditionalGeneration(model_config(size)).eval()
        torch.set_default_dtype(torch.float32)
        self.tokenizer = Tokenizer.from_file(tokenizer)
        self.pictures, self.clips = Qwen2VLImageProcessor(), Qwen2VLVideoProcessor()
        vocabulary = self.tokenizer.get_vocab()
        plain = [token for name, token in vocabulary.items() if re.fullmatch("Ġ[a-z]{2,7}", name)]
        self.words = torch.tensor(sorted(plain), device=self.device)
        self.forget()

    def forget(self) -> None:
        """Begin again with what is drawn, and with choices."""
        self.draw, self.turns = random.Random(0), Counter[tuple[str, ...]]()

    def next_of(self, texts: Sequence[str]) -> int:
        """Which of some texts is next: they take turns."""
        self.turns[tuple(texts)] += 1
        return (self.turns[tuple(texts)] - 1) % len(texts)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def prompt(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None
    ) -> tuple[list[int], dict[str, torch.Tensor]]:
        """Tokens with a place for each patch, and the patches."""
        ids: list[int] = []
        seen: dict[str, list[torch.Tensor]] = {}
        if tools:
            ids += self.encode(TOOLS.format("".join(f"\n{json.dumps(each)}" for each in tools)))
        for message in messages:
            ids += self.encode(f"<|im_start|>{message['role']}\n")
            content = message.get("content") or ""
            for part in [{"text": content}] if isinstance(content, str) else content:
                if "text" in part:
                    ids += self.encode(part["text"])
                    continue
                video = "video_url" in part
                data = base64.b64decode(part[part["type"]]["url"].partition("base64,")[2])
                if video:
                    found = self.clips(clip_frames(data), do_sample_frames=False)
                else:
                    found = self.pictures(Image.open(io.BytesIO(data)).convert("RGB"))
                for name, value in found.items():
                    if name.startswith(("pixel", "image_grid", "video_grid")):
                        seen.setdefault(name, []).append(torch.as_tensor(np.asarray(value)))
                grid = seen["video_grid_thw" if video else "image_grid_thw"][-1].reshape(-1)
                pads = int(grid.prod()) // 4
                ids += [151652, *[151656 if video else 151655] * pads, 151653]
            for call in message.get("tool_calls") or []:
                called = call["function"]
                text = CALL.format(called["name"]) + called["arguments"]
                ids += self.encode(f"{text}}}\n</tool_call>")
            ids += self.encode("<|im_end|>\n")
        ids += self.encode("<|im_start|>assistant\n")
        return ids, {name: torch.cat(parts).to(self.device) for name, parts in seen.items()}

    def warm_up(self) -> None:
        """See something once, since the first time takes longer."""
        file = io.BytesIO()
        Image.new("RGB", (480, 270)).save(file, "JPEG")
        url = f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
        part = {"type": "image_url", "image_url": {"url": url}}
        Writer(self, *self.prompt([{"role": "user", "content": [part]}])).words(3)


def clip_frames(data: bytes) -> np.ndarray:
    """Some frames of a clip, at least two."""
    frames, due = [], -1.0
    with av.open(io.BytesIO(data)) as container:
        for frame in container.decode(video=0):
            if frame.time >= due:
                frames.append(frame.to_ndarray(format="rgb24"))
                due = frame.time + FRAME_SECONDS
    return np.stack(frames * 2 if len(frames) == 1 else frames)


class Writer:
    """Writes one reply; each token is fed to the model, whether it was free to choose it or not."""

    def __init__(self, eyes: VisionModel, ids: list[int], seen: dict[str, torch.Tensor]) -> None:
        self.eyes, self.seen, self.pending = eyes, seen, list(ids)
        self.cache, self.out = DynamicCache(), []
        self.written = torch.tensor([], dtype=torch.int64, device=eyes.device)

    def say(self, text: str) -> None:
        """Write what must stand here."""
        tokens = self.eyes.encode(text)
        self.pending += tokens
        self.out += tokens

    def scores(self) -> torch.Tensor:
        """The scores of all tokens in the next place."""
        if not self.pending:
            return self.last
        eyes = self.eyes
        ids = torch.tensor([self.pending], device=eyes.device)
        kinds = (ids == 151655).int() + 2 * (ids == 151656).int()
        begun = self.cache.get_seq_length() > 0
        given = {} if begun else {**self.seen, "mm_token_type_ids": kinds}
        with torch.inference_mode():
            found = eyes.model(
                input_ids=ids, past_key_values=self.cache, use_cache=True, logits_to_keep=1, **given
            )
        self.pending, self.last = [], found.logits[0, -1]
        return self.last

    def take(self, token: int) -> None:
        """Write a token that was chosen."""
        self.pending.append(token)
        self.out.append(token)

    def choose(self, texts: list[str], number: int | None = None) -> None:
        """Write one of some texts, token by token as a grammar lets a model write it."""
        left = [self.eyes.encode(text) for text in texts]
        number = self.eyes.next_of(texts) if number is None else number
        for place, token in enumerate(left[number]):
            allowed = {each[place] for each in left if len(each) > place}
            if len(allowed) > 1:
                self.scores()
            self.take(token)
            left = [each for each in left if each[place : place + 1] == [token]]

    def words(self, number: int) -> None:
        """Write some words."""
        for _ in range(number):
            scores = self.scores()[self.eyes.words].clone()
            # each word once, since a reply that repeats itself is cut
            scores[torch.isin(self.eyes.words, self.written)] = -torch.inf
            chosen = self.eyes.words[scores.argmax()]
            self.written = torch.cat([self.written, chosen[None]])
            self.take(int(chosen))

    def value(self, node: dict[str, Any], schema: dict[str, Any]) -> None:
        """Write a JSON value that a schema allows."""
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        if "anyOf" in node:
            kinds = [each for each in node["anyOf"] if each.get("type") != "null"]
            # a time as a clock or in seconds
            numbers = [each for each in kinds if each.get("type") == "number"]
            return self.value((numbers or kinds)[0], schema)
        kind = node.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if "enum" in node or "const" in node:
            self.choose([json.dumps(each) for each in node.get("enum", [node.get("const")])])
        elif kind == "boolean":
            self.choose(["true", "false"])
        elif kind in ("integer", "number"):
            low = int(node.get("minimum", 0))
            is_time = kind == "number" and "maximum" not in node
            high = int(node.get("maximum", low + (FILM_SECONDS if is_time else 9)))
            texts = [str(each) for each in range(low, high + 1, max(1, (high - low) // 20))]
            # two times in turn would always be the same stretch apart
            self.choose(texts, self.eyes.draw.randrange(len(texts)) if is_time else None)
        elif kind == "string":
            self.say('"')
            # a word has at most eight characters with its space
            self.words(max(1, min(WORDS, node.get("maxLength", 100) // 8)))
            self.say('"')
        elif kind == "array":
            self.say("[")
            for place in range(max(1, node.get("minItems", 1))):
                self.say(", " if place else "")
                self.value(node["items"], schema)
            self.say("]")
        else:
            self.say("{")
            for place, (name, each) in enumerate(node["properties"].items()):
                self.say(f"{', ' if place else ''}{json.dumps(name)}: ")
                self.value(each, schema)
            self.say("}")
        return None


class Handler(JsonHandler):
    """The protocol."""

    model, context = "eyes", CONTEXT
    eyes: VisionModel
    turn = threading.Lock()
    looking = 0.0
    """Seconds in which prompts with pictures were read: decoded, seen and read with their words."""

    def post(self, body: dict[str, Any]) -> None:
        """A reply, or what went wrong."""
        try:
            self.reply(body)
        except ConnectionError:  # who asked ran out of time and is gone
            self.close_connection = True
        except Exception as error:  # told to the client and shown here
            traceback.print_exc()
            with suppress(ConnectionError):
                self.send(500, {"error": {"message": repr(error)[:300]}})

    def reply(self, body: dict[str, Any]) -> None:
        """A reply."""
        if "messages" not in body:
            return self.send(404, {"error": {"message": "not found"}})
        tools = {each["function"]["name"]: each for each in body.get("tools") or []}
        with self.turn:
            began = time.perf_counter()
            ids, seen = self.eyes.prompt(body["messages"], list(tools.values()))
            if len(ids) >= CONTEXT - 512:
                message = f"maximum context length is {CONTEXT} tokens, the prompt has {len(ids)}"
                error = {"message": message, "code": "context_length_exceeded"}
                return self.send(400, {"error": error})
            writer = Writer(self.eyes, ids, seen)
            if seen:
                float(writer.scores()[0])  # waits for the device
                Handler.looking += time.perf_counter() - began
            wanted = body.get("response_format") or {}
            message: dict[str, Any] = {"role": "assistant"}
            name = [*tools, ""][self.eyes.next_of([*tools, ""])]
            if name:
                schema = tools[name]["function"]["parameters"]
                writer.say(CALL.format(name))
                before = len(writer.out)
                writer.value(schema, schema)
                arguments = self.eyes.tokenizer.decode(writer.out[before:])
                writer.say("}\n</tool_call>")
                function = {"name": name, "arguments": arguments}
                message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
            elif wanted.get("type") == "json_schema":
                schema = wanted["json_schema"]["schema"]
                writer.value(schema, schema)
            else:
                writer.words(min(WORDS, body.get("max_tokens") or WORDS))
        if not name:
            message["content"] = self.eyes.tokenizer.decode(writer.out)
        choice = {"index": 0, "message": message}
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(writer.out)}
        choice["finish_reason"] = "stop"
        return self.send(200, {"choices": [choice], "usage": usage, "model": "eyes"})


def record_calls() -> list[tuple[int, Usage]]:
    """From now on, what budgets reserve for each prompt, and what the model counted."""
    calls: list[tuple[int, Usage]] = []
    hold, book = Ledger.hold, Ledger.book
    reserved: dict[int, int] = {}

    def held(ledger: Ledger, *request: Any) -> Any:
        found, options = hold(ledger, *request)
        reserved[id(found)] = found.tokens - options.max_tokens
        return found, options

    def booked(ledger: Ledger, found: Reservation, used: Usage) -> None:
        calls.append((reserved.pop(id(found)), used))
        book(ledger, found, used)

    Ledger.hold, Ledger.book = held, booked  # type: ignore[method-assign]
    return calls


def measure(
    name: str, session: Session, film: Any, questions: list[Question], limit: float
) -> dict[str, Any]:
    """Ask, ``symphony*3`` the first three questions; what was used."""
    name, _, number = name.partition("*")
    questions = questions[: int(number or 1)]
    method_name, _, show = name.partition("/")
    entry = replace(session.settings.models["eyes"], show=show or "pictures")
    settings = replace(session.settings, models={"eyes": entry})
    session = replace(session, settings=settings)
    recorded.clear()
    Handler.looking = 0.0
    Handler.eyes.forget()
    began = time.perf_counter()
    used, states = Usage(), []
    for question in questions:
        left = max(1.0, limit - (time.perf_counter() - began))
        budget = replace(settings.budget, seconds=left)
        session = replace(session, settings=replace(settings, budget=budget))
        result = session.answer(method_name, film, question)
        used, states = used + result.usage, [*states, result.answer.status]
    seconds, calls = time.perf_counter() - began, list(recorded)
    over = [(guess, real.tokens_in) for guess, real in calls if real.tokens_in > guess]
    return {
        "run": f"{name}, {len(questions)} questions" if number else name,
        "states": states,
        "seconds": round(seconds, 1),
        "calls": used.calls,
        "pictures": used.frames,
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "prompts_over_estimate": over,
        "prompt_share": round(used.tokens_in / max(1, sum(guess for guess, _ in calls)), 3),
        "looking": round(Handler.looking, 2),
    }


HEAD = ("run", "calls", "pictures", "tokens in", "tokens out")
HEAD += ("seconds", "pictures a second", "prompts over their estimate")


def cells(row: dict[str, Any]) -> list[str]:
    """A row of the table for the docs."""
    cells = [row["run"]]
    for key in ("calls", "pictures", "tokens_in", "tokens_out"):
        cells.append(f"{row[key]:,}")
    rate = row["pictures"] / max(0.01, row["looking"])
    return [*cells, f"{row['seconds']:.1f}", f"{rate:.1f}", str(len(row["prompts_over_estimate"]))]


def main() -> None:
    """Serve, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("--size", choices=SIZES, default="3b")
    parser.add_argument("--seconds", type=float, default=600, help="for everything together")
    parser.add_argument("--runs", nargs="+", default=RUNS, metavar="METHOD[/SHOW][*N]")
    args = parser.parse_args()
    started = began = time.perf_counter()
    Handler.eyes = VisionModel(args.size, args.tokenizer)
    parameters = sum(each.numel() for each in Handler.eyes.model.parameters())
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{parameters / 1e9:.2f} billion parameters on {device}, transformers", end=" ")
    print(f"{sys.modules['transformers'].__version__}, {time.perf_counter() - began:.1f} s")
    Handler.eyes.warm_up()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("LONGTAKE_CACHE", folder)
        world, path = make_world(1045, FILM_SECONDS // 60), Path(folder) / "world"
        write_world(world, path)
        entry = OpenAIEntry(base_url=serve_in_thread(Handler), model="eyes", max_tokens=512)
        # neither is installed everywhere, and the model reads what it is shown itself
        perception = PerceptionSettings(reader=False, listener="none")
        settings = Settings(
            models={"eyes": entry},
            budget=BudgetSettings(tokens=100_000_000),
            perception=perception,
            media=MediaSettings(device="cpu"),
        )
        session = Session(settings, ModelAssignment(("eyes",), replies=False))
        film = open_film(path / "film.mp4", settings, subtitles=path / "film.srt")
        questions = [asked.question for asked in world.questions]
        began = time.perf_counter()
        film.embeddings()
        print(f"film of {film.duration:.0f} s indexed in {time.perf_counter() - began:.1f} s")
        rows = []
        for name in args.runs:
            left = args.seconds - (time.perf_counter() - started)
            if left < 5:
                break
            rows.append(measure(name, session, film, questions, left))
            print(json.dumps(rows[-1]), flush=True)
        print(table(HEAD, [cells(row) for row in rows]))


recorded = record_calls()

if __name__ == "__main__":
    main()
