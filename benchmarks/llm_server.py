"""An OpenAI-compatible server for one Qwen2 GGUF on a GPU, for evaluations with many requests.

    python benchmarks/llm_server.py MODEL.gguf TOKENIZER.json PORT [--slots 160] [--context 4096]

It ignores ``response_format`` and tools, as many servers do, so it also tests replies that no
grammar enforces. It offers ``logprobs`` with up to 20 ``top_logprobs``. Every request has a slot in
one static key/value cache; one decoding step serves all slots and is replayed as a CUDA graph.
"""

from __future__ import annotations

import argparse
import json
import math
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from torch.nn import functional

TOP = 20
STEPS = 6
"""Decoding steps between two looks at the queue."""


class Weights:
    """The tensors of a GGUF file, dequantised to bf16."""

    def __init__(self, path: str, device: str) -> None:
        from gguf import GGUFReader
        from gguf.quants import dequantize

        reader = GGUFReader(path)
        fields = {
            name: field.contents()
            for name, field in reader.fields.items()
            if not name.startswith("tokenizer.ggml.") and not name.startswith("GGUF.")
        }
        arch = fields["general.architecture"]
        self.layers = int(fields[f"{arch}.block_count"])
        self.heads = int(fields[f"{arch}.attention.head_count"])
        self.kv_heads = int(fields[f"{arch}.attention.head_count_kv"])
        self.width = int(fields[f"{arch}.embedding_length"])
        self.eps = float(fields[f"{arch}.attention.layer_norm_rms_epsilon"])
        self.theta = float(fields.get(f"{arch}.rope.freq_base", 10000.0))
        self.head = self.width // self.heads
        dtype = torch.bfloat16 if device == "cuda" else torch.float32

        def load(tensor):
            values = dequantize(tensor.data, tensor.tensor_type)
            return tensor.name, torch.from_numpy(values.copy()).to(device, dtype)

        with ThreadPoolExecutor(16) as pool:
            self.tensors = dict(pool.map(load, reader.tensors))
        self.dtype = dtype
        t = self.tensors
        self.qkv, self.qkv_bias, self.gate_up = [], [], []
        for n in range(self.layers):
            names = [f"blk.{n}.attn_{k}" for k in "qkv"]
            self.qkv.append(torch.cat([t.pop(f"{k}.weight") for k in names]))
            self.qkv_bias.append(torch.cat([t.pop(f"{k}.bias") for k in names]))
            self.gate_up.append(
                torch.cat([t.pop(f"blk.{n}.ffn_gate.weight"), t.pop(f"blk.{n}.ffn_up.weight")])
            )
        self.output = t.get("output.weight", t["token_embd.weight"])


def norm(x, weight, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Engine:
    """Prefill and decoding over a static cache of ``slots`` sequences."""

    def __init__(self, weights: Weights, slots: int, context: int, device: str) -> None:
        self.w, self.slots, self.context, self.device = weights, slots, context, device
        shape = (weights.layers, slots, weights.kv_heads, context, weights.head)
        self.keys = torch.zeros(shape, dtype=weights.dtype, device=device)
        self.values = torch.zeros(shape, dtype=weights.dtype, device=device)
        inverse = 1 / weights.theta ** (
            torch.arange(0, weights.head, 2, dtype=torch.float32) / weights.head
        )
        angles = torch.outer(torch.arange(context, dtype=torch.float32), inverse)
        angles = torch.cat([angles, angles], -1)
        self.cos = angles.cos().to(device, weights.dtype)
        self.sin = angles.sin().to(device, weights.dtype)
        self.token = torch.zeros(slots, dtype=torch.long, device=device)
        self.place = torch.zeros(slots, dtype=torch.long, device=device)
        self.heat = torch.zeros(slots, 1, device=device)
        self.noise = torch.zeros(slots, weights.output.shape[0], device=device)
        self.rows = torch.arange(slots, device=device)
        self.graphs = {}
        self.hot = False

    @torch.inference_mode()
    def prefill(self, slots, prompts):
        """Fill the cache of some slots with their prompts; the logits after each last token."""
        w = self.w
        longest = max(map(len, prompts))
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt)
        ids = ids.to(self.device)
        index = torch.tensor(slots, device=self.device)
        x = functional.embedding(ids, w.tensors["token_embd.weight"])
        cos, sin = self.cos[:longest], self.sin[:longest]
        for n in range(w.layers):
            q, k, v = self._split(n, norm(x, w.tensors[f"blk.{n}.attn_norm.weight"], w.eps))
            q, k, v = (part.transpose(1, 2) for part in (q, k, v))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            self.keys[n, index, :, :longest] = k
            self.values[n, index, :, :longest] = v
            groups = w.heads // w.kv_heads
            k, v = (part.repeat_interleave(groups, 1) for part in (k, v))
            y = functional.scaled_dot_product_attention(
                q, k, v, is_causal=True
            )  # padding is on the right
            x = self._rest(n, x, y.transpose(1, 2).reshape(len(prompts), longest, w.width))
        last = torch.tensor([len(p) - 1 for p in prompts], device=self.device)
        return self._logits(x[torch.arange(len(prompts), device=self.device), last])

    def _split(self, n, x):
        w = self.w
        qkv = functional.linear(x, w.qkv[n], w.qkv_bias[n])
        sizes = [w.heads * w.head, w.kv_heads * w.head, w.kv_heads * w.head]
        return (part.unflatten(-1, (-1, w.head)) for part in qkv.split(sizes, -1))

    def _rest(self, n, x, y):
        w, t = self.w, self.w.tensors
        x = x + functional.linear(y, t[f"blk.{n}.attn_output.weight"])
        gate, up = functional.linear(
            norm(x, t[f"blk.{n}.ffn_norm.weight"], w.eps), w.gate_up[n]
        ).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * up, t[f"blk.{n}.ffn_down.weight"])

    def _logits(self, x):
        w = self.w
        return functional.linear(norm(x, w.tensors["output_norm.weight"], w.eps), w.output).float()

    def pick(self, logits, heat, noise):
        """The next tokens, and the most probable ones with their log-probabilities."""
        logs = logits.log_softmax(-1)
        chosen = (logits + heat * noise).argmax(-1)
        top = logs.topk(TOP, -1)
        return chosen, logs.gather(-1, chosen[:, None])[:, 0], top.values, top.indices

    def _step(self, length):
        w = self.w
        groups = w.heads // w.kv_heads
        x = functional.embedding(self.token, w.tensors["token_embd.weight"])
        cos, sin = self.cos[self.place][:, None], self.sin[self.place][:, None]
        hidden = torch.arange(length, device=self.device) > self.place[:, None]
        mask = torch.zeros(self.slots, 1, 1, length, device=self.device).masked_fill(
            hidden[:, None, None], -math.inf
        )
        for n in range(w.layers):
            q, k, v = self._split(n, norm(x, w.tensors[f"blk.{n}.attn_norm.weight"], w.eps))
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            self.keys[n, self.rows, :, self.place] = k
            self.values[n, self.rows, :, self.place] = v
            q = q.unflatten(1, (w.kv_heads, groups))
            scores = q @ self.keys[n, :, :, :length].transpose(-1, -2)
            weights = (scores.float() / math.sqrt(w.head) + mask).softmax(-1).to(x.dtype)
            y = weights @ self.values[n, :, :, :length]
            x = self._rest(n, x, y.reshape(self.slots, w.width))
        picked = self.pick(self._logits(x), self.heat, self.noise)
        self.token.copy_(picked[0])
        self.place.add_(1).clamp_(max=self.context - 1)
        return picked

    @torch.inference_mode()
    def step(self, longest):
        """One token for every slot."""
        if self.hot:
            self.noise.exponential_().log_().neg_()  # Gumbel noise: argmax of the sum samples
        length = next(n for n in self.lengths() if n >= min(longest, self.context))
        if self.device != "cuda":
            return self._step(length)
        if length not in self.graphs:
            token, place = self.token.clone(), self.place.clone()
            self._step(length)
            torch.cuda.synchronize()
            self.token.copy_(token), self.place.copy_(place)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = self._step(length)
            self.token.copy_(token), self.place.copy_(place)
            self.graphs[length] = (graph, out)
        graph, out = self.graphs[length]
        graph.replay()
        return out

    def lengths(self):
        return [n for n in (512, 1024, 1536, 2048, 3072, 4096, 6144, 8192) if n < self.context] + [
            self.context
        ]


class Job:
    """One request."""

    def __init__(self, ids, most, heat, logprobs) -> None:
        self.ids, self.most, self.heat, self.logprobs = ids, most, heat, logprobs
        self.out, self.tops, self.done, self.error, self.stopped = (
            [],
            [],
            threading.Event(),
            None,
            False,
        )


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
            engine = self.engine
            logits = engine.prefill(slots, [job.ids for job in some])
            index = torch.tensor(slots, device=engine.device)
            heat = torch.tensor(
                [[job.heat] for job in some], device=engine.device, dtype=torch.float32
            )
            engine.heat[index] = heat
            noise = -torch.empty_like(logits).exponential_().log_()
            picked = engine.pick(logits, heat, noise)
            engine.token[index] = picked[0]
            engine.place[index] = torch.tensor([len(job.ids) for job in some], device=engine.device)
            self.running |= dict(zip(slots, some, strict=True))
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
            full = len(job.ids) + len(job.out) >= self.engine.context - 1
            if job.stopped or len(job.out) >= job.most or full:
                self.running.pop(slot)
                self.free.append(slot)
                self.stat["calls"] += 1
                self.stat["tokens"] += len(job.out)
                job.done.set()


SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."


def chatml(messages):
    """The prompt as Qwen's own template writes it."""
    roles = [message["role"] for message in messages]
    parts = [] if roles[:1] == ["system"] else [f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"]
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        parts.append(f"<|im_start|>{message['role']}\n{content}<|im_end|>\n")
    return "".join(parts) + "<|im_start|>assistant\n"


def handler(scheduler, tokenizer, context):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def send(self, code, value):
            body = json.dumps(value).encode()
            self.send_response(code)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            card = {"id": "qwen", "object": "model", "max_model_len": context}
            self.send(
                200,
                scheduler.stat
                if self.path.endswith("stat")
                else {"object": "list", "data": [card]},
            )

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            ids = tokenizer.encode(chatml(body["messages"]), add_special_tokens=False).ids
            most = int(body.get("max_tokens") or body.get("max_completion_tokens") or 400)
            if len(ids) >= context - 8:
                message = f"maximum context length is {context} tokens, the prompt has {len(ids)}"
                self.send(400, {"error": {"message": message, "code": "context_length_exceeded"}})
                return
            job = Job(
                ids,
                min(most, CAP),
                float(body.get("temperature") or 0.0),
                bool(body.get("logprobs")),
            )
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
                choice["logprobs"] = {
                    "content": [entry(tokenizer, *row, count) for row in job.tops]
                }
            usage = {
                "prompt_tokens": len(ids),
                "completion_tokens": len(job.out),
                "total_tokens": len(ids) + len(job.out),
            }
            self.send(
                200,
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": int(time.time()),
                    "model": "qwen",
                    "choices": [choice],
                    "usage": usage,
                },
            )

    return Handler


def entry(tokenizer, token, logprob, tops, count):
    def one(i, value):
        text = tokenizer.decode([i], skip_special_tokens=False)
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    return one(token, logprob) | {"top_logprobs": [one(i, value) for i, value in tops[:count]]}


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def main():
    global CAP
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("tokenizer")
    parser.add_argument("port", type=int)
    parser.add_argument("--slots", type=int, default=160)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--cap", type=int, default=300, help="most tokens of a reply")
    args = parser.parse_args()
    CAP = args.cap
    from tokenizers import Tokenizer

    began = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer.from_file(args.tokenizer)
    engine = Engine(Weights(args.model, device), args.slots, args.context, device)
    ends = {tokenizer.token_to_id(name) for name in ("<|im_end|>", "<|endoftext|>")}
    scheduler = Scheduler(engine, ends)
    scheduler.start()
    print(f"serving after {time.time() - began:.1f} s", flush=True)
    Server(("127.0.0.1", args.port), handler(scheduler, tokenizer, args.context)).serve_forever()


if __name__ == "__main__":
    sys.setswitchinterval(0.001)
    main()
