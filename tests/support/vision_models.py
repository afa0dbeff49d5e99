"""Writes tiny vision models with random weights: a GGUF text model and its projector.

Bytes are the vocabulary, so that no text has to be learned from. Names of keys and tensors are
those that llama.cpp reads (``src/llama-arch.cpp``, ``tools/mtmd/clip-impl.h``).
"""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

Kind = Literal["qwen2vl", "llama"]
WIDTH, HEADS, BLOCKS, PATCH = 64, 2, 2, 14
SIDE = 56
"""Pixels of a side of the pictures that the ``llama`` model sees."""
SPECIALS = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
LETTERS, STRENGTH = b"ABCDEFGH", 10.0
ALIGNMENT = 32


class VisionModel(NamedTuple):
    file: Path
    mmproj: Path


def write_vision_model(
    folder: Path, kind: Kind = "qwen2vl", *, width: int = WIDTH, without: Sequence[str] = ()
) -> VisionModel:
    """A model and its projector; ``without`` names tensors that the projector lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    made = VisionModel(folder / f"{kind}.gguf", folder / f"{kind}-mmproj.gguf")
    write_gguf(made.file, text_keys(kind, width), text_tensors(width))
    tensors = projector_tensors(kind, width)
    kept = {name: value for name, value in tensors.items() if name not in without}
    write_gguf(made.mmproj, projector_keys(kind, width), kept)
    return made


def byte_symbols() -> list[str]:
    """The characters that stand for bytes in GPT-2's vocabulary."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    symbols = {byte: chr(byte) for byte in shown}
    symbols |= {byte: chr(256 + number) for number, byte in enumerate(hidden)}
    return [symbols[byte] for byte in range(256)]


def text_keys(kind: Kind, width: int) -> dict[str, Any]:
    tokens = [*byte_symbols(), *SPECIALS]
    keys = {
        "general.architecture": kind,
        f"{kind}.context_length": 8192,
        f"{kind}.embedding_length": width,
        f"{kind}.block_count": BLOCKS,
        f"{kind}.feed_forward_length": 2 * width,
        f"{kind}.attention.head_count": HEADS,
        f"{kind}.attention.layer_norm_rms_epsilon": 1e-6,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * 256 + [3] * len(SPECIALS),
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.bos_token_id": tokens.index("<|im_start|>"),
        "tokenizer.ggml.eos_token_id": tokens.index("<|im_end|>"),
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
    if kind == "qwen2vl":
        half = width // HEADS // 2
        keys["qwen2vl.rope.dimension_sections"] = [half // 2, half // 4, half // 4, 0]
    return keys


def text_tensors(width: int) -> dict[str, np.ndarray]:
    """Random weights, but for the first two values of each vector, which blocks leave alone.

    By the first, letters of options are likelier than other bytes; by the second, a text or number
    ends soon after it began.
    """
    normal = _normal(1)
    words = 256 + len(SPECIALS)
    tensors = {
        "token_embd.weight": normal(words, width),
        "output_norm.weight": np.ones(width, np.float32),
        "output.weight": normal(words, width),
    }
    for block in range(BLOCKS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"blk.{block}.{name}.weight"] = normal(width, width)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{block}.{name}.weight"] = np.ones(width, np.float32)
        for name in ("attn_q", "attn_k", "attn_v"):
            tensors[f"blk.{block}.{name}.bias"] = normal(width)
        tensors[f"blk.{block}.ffn_gate.weight"] = normal(2 * width, width)
        tensors[f"blk.{block}.ffn_up.weight"] = normal(2 * width, width)
        tensors[f"blk.{block}.ffn_down.weight"] = normal(width, 2 * width)
        for name in ("attn_output", "ffn_down"):
            tensors[f"blk.{block}.{name}.weight"][:2] = 0.0
    read, written = tensors["token_embd.weight"], tensors["output.weight"]
    read[:, :2] = written[:, :2] = 0.0
    read[:, 0] = written[list(LETTERS), 0] = STRENGTH
    read[list(LETTERS + b"0123456789"), 1] = written[list(b",]}"), 1] = STRENGTH
    written[ord('"'), 1] = 3 * STRENGTH
    return tensors


def projector_keys(kind: Kind, width: int) -> dict[str, Any]:
    return {
        "general.architecture": "clip",
        "clip.has_vision_encoder": True,
        "clip.projector_type": "qwen2vl_merger" if kind == "qwen2vl" else "mlp",
        "clip.use_gelu": True,
        "clip.vision.image_size": SIDE,
        "clip.vision.patch_size": PATCH,
        "clip.vision.embedding_length": WIDTH,
        "clip.vision.feed_forward_length": 2 * WIDTH,
        "clip.vision.projection_dim": width,
        "clip.vision.block_count": BLOCKS,
        "clip.vision.attention.head_count": HEADS,
        "clip.vision.attention.layer_norm_epsilon": 1e-6,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
    }


def projector_tensors(kind: Kind, width: int) -> dict[str, np.ndarray]:
    normal = _normal(2)
    tensors = {"v.patch_embd.weight": normal(WIDTH, 3, PATCH, PATCH)}
    if kind == "qwen2vl":
        tensors["v.patch_embd.weight.1"] = normal(WIDTH, 3, PATCH, PATCH)
        tensors |= {"v.post_ln.weight": np.ones(WIDTH, np.float32), "v.post_ln.bias": normal(WIDTH)}
        joined = 4 * WIDTH
    else:
        tensors["v.class_embd"] = normal(WIDTH)
        tensors["v.position_embd.weight"] = normal((SIDE // PATCH) ** 2 + 1, WIDTH)
        joined = WIDTH
    for block in range(BLOCKS):
        for name, rows, columns in (
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", WIDTH, WIDTH),
            ("attn_v", WIDTH, WIDTH),
            ("attn_out", WIDTH, WIDTH),
            ("ffn_up", 2 * WIDTH, WIDTH),
            ("ffn_down", WIDTH, 2 * WIDTH),
        ):
            tensors[f"v.blk.{block}.{name}.weight"] = normal(rows, columns)
            tensors[f"v.blk.{block}.{name}.bias"] = normal(rows)
        for name in ("ln1", "ln2"):
            tensors[f"v.blk.{block}.{name}.weight"] = np.ones(WIDTH, np.float32)
            tensors[f"v.blk.{block}.{name}.bias"] = normal(WIDTH)
    tensors |= {"mm.0.weight": normal(joined, joined), "mm.0.bias": normal(joined)}
    tensors |= {"mm.2.weight": normal(width, joined), "mm.2.bias": normal(width)}
    return tensors


def _normal(seed: int) -> Any:
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        # large enough that what is seen moves the odds, small enough that nothing saturates
        scale = 1.0 if len(shape) == 1 else 2.0 / np.sqrt(np.prod(shape[1:]))
        return (scale * random.normal(size=shape)).astype(np.float32)

    return draw


def write_gguf(path: Path, keys: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    """A file in the format GGUF 3, all tensors as 32-bit floats."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        head += _text(key) + _value(value)
    data = b""
    for name, values in tensors.items():
        shape = values.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += _padded(values.tobytes())
    path.write_bytes(_padded(head) + data)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: Any) -> bytes:
    kind, packed = _packed(value)
    return struct.pack("<I", kind) + packed


def _packed(value: Any) -> tuple[int, bytes]:
    """A value's type and bytes; integers are unsigned, as lengths are."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, _text(value)
    items = [_packed(each) for each in value]
    # token types and sections are signed
    kind = 5 if items[0][0] == 4 else items[0][0]
    return 9, struct.pack("<IQ", kind, len(items)) + b"".join(item for _, item in items)
