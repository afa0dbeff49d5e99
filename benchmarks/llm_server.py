"""An OpenAI-compatible server for one GGUF on a GPU, for evaluations with many requests.

    python benchmarks/llm_server.py MODEL.gguf TOKENIZER.json PORT [--slots 160] [--context 4096]
                                    [--enforce]

It ignores ``response_format`` and tools, as many servers do, so it also tests replies that no
grammar enforces; with ``--enforce`` (needs ``llguidance``) replies keep to a JSON schema that was
asked for. It offers ``logprobs`` with up to 20 ``top_logprobs``.
"""

import argparse
import json
import math
import queue
import sys
import threading
import time
from http.server import ThreadingHTTPServer

import torch
from gguf_engine import Engine, Weights
from jinja2.sandbox import ImmutableSandboxedEnvironment
from json_server import JsonHandler
from tokenizers import Tokenizer

STEPS = 6
"""Decoding steps between two looks at the queue."""


class Job:
    """One request."""

    def __init__(self, ids, max_tokens, heat, logprobs, matcher) -> None:
        self.ids, self.max_tokens, self.heat, self.logprobs = ids, max_tokens, heat, logprobs
        self.matcher, self.done = matcher, threading.Event()
        self.out, self.tops, self.error, self.stopped = [], [], None, False


class Scheduler(threading.Thread):
    """Admits waiting jobs into free slots, then decodes a few steps, for ever."""

    def __init__(self, engine: Engine, ends: set[int]) -> None:
        super().__init__(daemon=True)
        self.engine, self.ends, self.waiting = engine, ends, queue.Queue()
        self.running: dict[int, Job] = {}
        self.free = list(range(engine.slots))
        self.stat = {"calls": 0, "steps": 0, "slots": 0, "prompt_tokens": 0, "tokens": 0}
        self.stat |= {"prefilling": 0.0, "decoding": 0.0}

    def run(self):
        while True:
            try:
                self.admit()
                began = time.perf_counter()
                for _ in range(STEPS):
                    if not self.running:
                        break
                    self.decode()
                self.stat["decoding"] += time.perf_counter() - began
            except Exception as error:  # reported to every client
                print("error", repr(error)[:500], flush=True)
                for job in self.running.values():
                    job.error = repr(error)[:300]
                    job.done.set()
                self.free, self.running = list(range(self.engine.slots)), {}

    def admit(self):
        jobs = []
        while len(jobs) < len(self.free):
            try:
                jobs.append(self.waiting.get(block=not (jobs or self.running)))
            except queue.Empty:
                break
        began = time.perf_counter()
        jobs.sort(key=lambda job: len(job.ids))
        while jobs:
            some = [jobs.pop()]  # longest first, so that padding is small
            while jobs and (len(some) + 1) * len(some[0].ids) <= 24576:
                some.append(jobs.pop())
            slots = [self.free.pop() for _ in some]
            self.running |= dict(zip(slots, some, strict=True))
            engine = self.engine
            logits = engine.prefill(slots, [job.ids for job in some])
            index = torch.tensor(slots, device=engine.device)
            heat = torch.tensor([[job.heat] for job in some], device=engine.device)
            engine.heat[index] = heat
            for slot, job in zip(slots, some, strict=True):
                engine.allow(slot, job.matcher)
            logits = engine.held(logits, index)
            noise = -torch.empty_like(logits).exponential_().log_()
            picked = engine.pick(logits, heat, noise)
            engine.token[index] = picked[0]
            engine.place[index] = torch.tensor([len(job.ids) for job in some], device=engine.device)
            self.stat["prompt_tokens"] += sum(len(job.ids) for job in some)
            self.book(dict(zip(slots, range(len(some)), strict=True)), picked)
        self.stat["prefilling"] += time.perf_counter() - began
        self.engine.hot = any(job.heat for job in self.running.values())

    def decode(self):
        longest = max(len(job.ids) + len(job.out) for job in self.running.values()) + 1
        picked = self.engine.step(longest)
        self.stat["steps"] += 1
        self.stat["slots"] += len(self.running)
        self.book({slot: slot for slot in self.running}, picked)

    def book(self, rows, picked):
        tokens = picked[0].tolist()
        wanted = any(self.running[slot].logprobs for slot in rows)
        own, top, names = (part.tolist() if wanted else None for part in picked[1:])
        for slot, row in rows.items():
            job, token = self.running[slot], tokens[row]
            if job.logprobs:
                job.tops.append((token, own[row], list(zip(names[row], top[row], strict=True))))
            job.stopped = token in self.ends
            if not job.stopped:
                job.out.append(token)
                if job.matcher is not None:
                    job.matcher.consume_token(token)
                    job.stopped = job.matcher.is_stopped()
                    self.engine.allow(slot, job.matcher)
            full = len(job.ids) + len(job.out) >= self.engine.context - 1
            if job.stopped or len(job.out) >= job.max_tokens or full:
                self.running.pop(slot)
                self.free.append(slot)
                self.stat["calls"] += 1
                self.stat["tokens"] += len(job.out)
                job.done.set()


def prompt_writer(template):
    """A function that writes messages as the model's own template does."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    compiled = environment.from_string(template)

    def write(messages):
        plain = [{**message, "content": text_of(message["content"])} for message in messages]
        return compiled.render(messages=plain, add_generation_prompt=True)

    return write


def text_of(content):
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content


def schema_of(body):
    """The JSON schema that a reply is to keep to, or none."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return wanted["json_schema"]["schema"]
    return wanted.get("schema")


def schema_matcher(tokenizer_file, size, ends):
    """A function that makes the matcher of a request, which knows the tokens that may come next."""
    from llguidance import LLMatcher, LLTokenizer

    # one of the ends is enough for the grammar; not every version takes several
    tokens = LLTokenizer(tokenizer_file, n_vocab=size, eos_token=max(ends))

    def matcher(body):
        schema = schema_of(body)
        if schema is None:
            return None
        return LLMatcher(tokens, LLMatcher.grammar_from_json_schema(json.dumps(schema)))

    return matcher


def handler(scheduler, tokenizer, write, limit, cap, matcher):
    class Handler(JsonHandler):
        model, context = "qwen", limit

        def get(self):
            return scheduler.stat if self.path.endswith("stat") else super().get()

        def post(self, body):
            ids = tokenizer.encode(write(body["messages"]), add_special_tokens=False).ids
            wanted = int(body.get("max_tokens") or body.get("max_completion_tokens") or 400)
            if len(ids) >= limit - 8:
                message = f"maximum context length is {limit} tokens, the prompt has {len(ids)}"
                self.send(400, {"error": {"message": message, "code": "context_length_exceeded"}})
                return
            heat, logprobs = float(body.get("temperature") or 0.0), bool(body.get("logprobs"))
            job = Job(ids, min(wanted, cap), heat, logprobs, matcher(body) if matcher else None)
            scheduler.waiting.put(job)
            job.done.wait()
            if job.error:
                self.send(500, {"error": {"message": job.error}})
                return
            text = tokenizer.decode(job.out, skip_special_tokens=True)
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": "stop" if job.stopped else "length",
            }
            if job.logprobs:
                count = int(body.get("top_logprobs") or 0)
                content = [entry(tokenizer, *row, count) for row in job.tops]
                choice["logprobs"] = {"content": content}
            usage = {"prompt_tokens": len(ids), "completion_tokens": len(job.out)}
            usage["total_tokens"] = sum(usage.values())
            reply = {"id": "x", "object": "chat.completion", "created": int(time.time())}
            self.send(200, reply | {"model": "qwen", "choices": [choice], "usage": usage})

    return Handler


def entry(tokenizer, token, logprob, tops, count):
    def one(i, value):
        text = tokenizer.decode([i], skip_special_tokens=False)
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    # what a grammar forbids has no probability
    possible = [one(i, value) for i, value in tops[:count] if value > -math.inf]
    return one(token, logprob) | {"top_logprobs": possible}


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("tokenizer")
    parser.add_argument("port", type=int)
    parser.add_argument("--slots", type=int, default=160)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--enforce", action="store_true", help="keep replies to their schema")
    parser.add_argument("--cap", type=int, default=300, help="most tokens of a reply")
    args = parser.parse_args()
    began = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer.from_file(args.tokenizer)
    weights = Weights(args.model, device)
    engine = Engine(weights, args.slots, args.context, device, enforce=args.enforce)
    ends = {tokenizer.token_to_id(name) for name in ("<|im_end|>", "<|endoftext|>")}
    matcher = schema_matcher(args.tokenizer, engine.size, ends) if args.enforce else None
    scheduler = Scheduler(engine, ends)
    scheduler.start()
    print(f"serving after {time.time() - began:.1f} s", flush=True)
    write = prompt_writer(weights.template)
    answering = handler(scheduler, tokenizer, write, args.context, args.cap, matcher)
    Server(("127.0.0.1", args.port), answering).serve_forever()


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    main()
