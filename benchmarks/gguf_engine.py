"""A language model in GGUF on a GPU: weights, prefill, and decoding for many requests at once.

Reads files of Qwen2 and of llama's architecture (SmolLM2 has it). Every request has a slot in one
static key/value cache; one decoding step serves all slots and is replayed as a CUDA graph.
"""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn import functional

TOP = 20
"""Alternatives kept for every token."""


class Weights:
    """The tensors of a GGUF file, dequantised to bf16."""

    def __init__(self, path: str, device: str) -> None:
        from gguf import GGUFReader
        from gguf.quants import dequantize

        reader = GGUFReader(path)
        fields = {
            name: field.contents()
            for name, field in reader.fields.items()
            # the vocabulary comes from the tokenizer's own file
            if not name.startswith(("tokenizer.ggml.", "GGUF."))
        }
        arch = fields["general.architecture"]
        if arch not in ("qwen2", "llama"):
            sys.exit(f"{path} is a {arch} model; this engine runs qwen2 and llama")
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
            q, k, v = (t.pop(f"{name}.weight") for name in names)
            if arch == "llama":
                q, k = halved(q, self.head), halved(k, self.head)
            self.qkv.append(torch.cat([q, k, v]))
            biases = [t.pop(f"{name}.bias", None) for name in names]  # Qwen2 alone has them
            self.qkv_bias.append(None if biases[0] is None else torch.cat(biases))
            self.gate_up.append(
                torch.cat([t.pop(f"blk.{n}.ffn_gate.weight"), t.pop(f"blk.{n}.ffn_up.weight")])
            )
        self.output = t.get("output.weight", t["token_embd.weight"])
        self.template = fields["tokenizer.chat_template"]


def halved(weight, head):
    """Rows of each head with the pairs that are rotated together half a head apart.

    The files of llama models have them side by side, those of Qwen2 as :func:`rotate` expects.
    """
    return weight.unflatten(0, (-1, head // 2, 2)).transpose(1, 2).flatten(0, 2)


def norm(x, weight, eps):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Engine:
    """Prefill and decoding over a static cache of ``slots`` sequences."""

    def __init__(
        self, weights: Weights, slots: int, context: int, device: str, *, enforce: bool = False
    ) -> None:
        self.w, self.slots, self.context, self.device = weights, slots, context, device
        self.size = weights.output.shape[0]
        shape = (weights.layers, slots, weights.kv_heads, context, weights.head)
        self.keys = torch.zeros(shape, dtype=weights.dtype, device=device)
        self.values = torch.zeros(shape, dtype=weights.dtype, device=device)
        halves = torch.arange(0, weights.head, 2, dtype=torch.float32)
        inverse = 1 / weights.theta ** (halves / weights.head)
        angles = torch.outer(torch.arange(context, dtype=torch.float32), inverse)
        angles = torch.cat([angles, angles], -1)
        self.cos = angles.cos().to(device, weights.dtype)
        self.sin = angles.sin().to(device, weights.dtype)
        self.token = torch.zeros(slots, dtype=torch.long, device=device)
        self.place = torch.zeros(slots, dtype=torch.long, device=device)
        self.heat = torch.zeros(slots, 1, device=device)
        self.noise = torch.zeros(slots, self.size, device=device)
        # one bit for each token that may come next, in words of 32
        words = -(-self.size // 32)
        self.masks = torch.full((slots, words), -1, dtype=torch.int32, device=device)
        self.bits = torch.arange(32, dtype=torch.int32, device=device)
        self.enforce = enforce
        self.bound: set[int] = set()
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
            # padding is on the right, so a causal mask hides it
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
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
        normed = norm(x, t[f"blk.{n}.ffn_norm.weight"], w.eps)
        gate, up = functional.linear(normed, w.gate_up[n]).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * up, t[f"blk.{n}.ffn_down.weight"])

    def _logits(self, x):
        w = self.w
        return functional.linear(norm(x, w.tensors["output_norm.weight"], w.eps), w.output).float()

    def allow(self, slot, matcher):
        """Restrict the next token of a slot to what its matcher allows, if it has one."""
        if matcher is not None:
            allowed = torch.frombuffer(bytearray(matcher.compute_bitmask()), dtype=torch.int32)
            # the matcher's mask has a bit more, for the end
            self.masks[slot] = allowed[: self.masks.shape[1]].to(self.device)
            self.bound.add(slot)
        elif slot in self.bound:
            self.masks[slot] = -1
            self.bound.discard(slot)

    def held(self, logits, slots):
        """The logits of some slots, without the tokens that their masks forbid."""
        if not self.enforce:
            return logits
        allowed = (self.masks[slots][:, :, None] >> self.bits) & 1
        return logits.masked_fill(allowed.flatten(1)[:, : self.size] == 0, -math.inf)

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
        logits = self.held(self._logits(x), self.rows)
        picked = self.pick(logits, self.heat, self.noise)
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
        usual = (512, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
        return [*(length for length in usual if length < self.context), self.context]
