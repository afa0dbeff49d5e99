"""The retrieval head of :mod:`longtake.perception.headfile` in torch, for batches of clips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtake.errors import MissingExtra
from longtake.perception.headfile import EPSILON, Shape

PURPOSE = "training a retrieval head"


def need_torch() -> Any:
    """The torch module; raises MissingExtra, which says how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("train", PURPOSE) from error
    return torch


def tokens(weights: Mapping[str, Any], shape: Shape, frames: Any, mask: Any) -> Any:
    """Temporal tokens ``z`` of clips ``b × t × d``; ``mask`` is true for existing frames."""
    torch = need_torch()
    functional = torch.nn.functional
    batch, length, dim = frames.shape

    def linear(rows: Any, name: str) -> Any:
        return rows @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def norm(rows: Any, name: str) -> Any:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return functional.layer_norm(rows, (dim,), weight, bias, EPSILON)

    def split(rows: Any) -> Any:
        return rows.view(batch, length, shape.heads, dim // shape.heads).transpose(1, 2)

    hidden = frames + weights["positions"][:length]
    for layer in range(shape.layers):
        at = f"layer{layer}"
        normed = norm(hidden, f"{at}.norm1")
        query, key, value = (
            split(linear(normed, f"{at}.{part}")) for part in ("query", "key", "value")
        )
        visible = mask[:, None, None, :]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        merged = mixed.transpose(1, 2).reshape(batch, length, dim)
        hidden = hidden + linear(merged, f"{at}.mix")
        wide = functional.gelu(linear(norm(hidden, f"{at}.norm2"), f"{at}.wide"))
        hidden = hidden + linear(wide, f"{at}.narrow")
    return functional.normalize(frames + linear(norm(hidden, "norm"), "out"), dim=-1)


def scores(
    weights: Mapping[str, Any],
    shape: Shape,
    frames: Any,
    mask: Any,
    texts: Any,
    *,
    half: bool = False,
) -> Any:
    """Cosines of every clip with every text, ``b × n``.

    With ``half``, only the transformer runs in bfloat16: cosines in bfloat16 are accurate to a few
    thousandths, which is a few tenths of a logit.
    """
    torch = need_torch()
    functional = torch.nn.functional
    with torch.autocast(frames.device.type, dtype=torch.bfloat16, enabled=half):
        z = tokens(weights, shape, frames, mask)
    z = z.float()
    texts = functional.normalize(texts, dim=-1)
    near = torch.einsum("btd,nd->bnt", z, texts).masked_fill(~mask[:, None, :], float("-inf"))
    closest = near.argmax(dim=-1, keepdim=True)
    # each clip pooled once per token j, with that token added (b × j × d);
    # every text then takes the version of its closest token
    summed = functional.normalize(frames[:, None] + z[:, :, None], dim=-1) * mask[:, None, :, None]
    pooled = functional.normalize(summed.sum(dim=2), dim=-1)
    return torch.einsum("bjd,nd->bnj", pooled, texts).gather(-1, closest).squeeze(-1)
