"""Blocks of vision transformers, rebuilt so that a GPU spends its time in matrix products.

::

    quicken(model)      # in place; the vectors stay the same up to rounding

``docs/scale.md`` says what each step gains on an H200 (``benchmarks/gpu.py``).
"""

from __future__ import annotations

from functools import cache
from types import MethodType
from typing import Any

ALIGNED = 128
"""A width of which a GPU's matrix units take whole tiles."""
TANH_GELU = "gelu_pytorch_tanh"
"""The activation that a product can apply to its own results; other kinds of GELU differ."""


def quicken(model: Any) -> None:
    """Rebuild the vision blocks of a model whose layout is that of CLIP or SigLIP."""
    # the attention of text models is masked, and their turn is short
    tower = getattr(model, "vision_model", model)
    activation = getattr(tower.config, "hidden_act", "")
    for block in tower.modules():
        if _has(block, "fc1", "fc2") and block.fc1.out_features == block.fc2.in_features:
            align(block)
        if not _has(block, "self_attn", "mlp"):
            continue
        if _has(block.self_attn, "q_proj", "k_proj", "v_proj", "out_proj"):
            join(block.self_attn)
        if activation == TANH_GELU and _has(block.mlp, "fc1", "fc2"):
            product_gelu()  # registers it
            block.mlp.forward = MethodType(_mlp, block.mlp)


def align(mlp: Any) -> None:
    """Widen the hidden layer of an MLP to a multiple of :data:`ALIGNED`.

    The new units have no weights, so the results are the same. SigLIP-SO400M's 4,304 become 4,352.
    """
    from torch.nn import functional

    into, out = mlp.fc1, mlp.fc2
    missing = -into.out_features % ALIGNED
    into.weight.data = functional.pad(into.weight.data, (0, 0, 0, missing))
    out.weight.data = functional.pad(out.weight.data, (0, missing))
    if into.bias is not None:
        into.bias.data = functional.pad(into.bias.data, (0, missing))
    into.out_features = out.in_features = into.out_features + missing


def join(attention: Any) -> None:
    """Compute the queries, keys and values of an attention in one product."""
    import torch

    parts = [getattr(attention, f"{name}_proj") for name in "qkv"]
    if any(part.bias is None for part in parts):
        return
    joined = torch.nn.Linear(parts[0].in_features, 3 * parts[0].out_features, device="meta")
    joined.weight = torch.nn.Parameter(torch.cat([part.weight.data for part in parts]))
    joined.bias = torch.nn.Parameter(torch.cat([part.bias.data for part in parts]))
    attention.joined = joined
    del attention.q_proj, attention.k_proj, attention.v_proj
    attention.forward = MethodType(_attend, attention)


def _attend(
    attention: Any, hidden_states: Any, attention_mask: Any = None, **_: Any
) -> tuple[Any, None]:
    """As the attention's own ``forward``, without the weights that nobody asks for."""
    from torch.nn import functional

    split = attention.joined(hidden_states).unflatten(-1, (3, attention.num_heads, -1))
    queries, keys, values = split.permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=attention_mask, scale=attention.scale
    )
    return attention.out_proj(mixed.transpose(1, 2).flatten(2)), None


def _mlp(mlp: Any, hidden_states: Any) -> Any:
    """As the MLP's own ``forward``; the activation is part of the first product."""
    import torch

    rows = hidden_states.flatten(0, -2)
    inner = torch.ops.longtake.product_gelu(rows, mlp.fc1.weight, mlp.fc1.bias)
    return mlp.fc2(inner).unflatten(0, hidden_states.shape[:-1])


@cache
def product_gelu() -> Any:
    """The operator ``gelu(rows · weightᵀ + bias)``, with the tanh approximation.

    An operator of its own, because ``torch.compile`` would take the product and its activation
    apart again.
    """
    import torch
    from torch.nn import functional

    def compute(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if rows.is_cuda:
            return torch._addmm_activation(bias, rows, weight.t(), use_gelu=True)
        return functional.gelu(functional.linear(rows, weight, bias), approximate="tanh")

    def shape(rows: torch.Tensor, weight: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return rows.new_empty(rows.shape[0], weight.shape[0])

    schema = "(Tensor rows, Tensor weight, Tensor bias) -> Tensor"
    operator = torch.library.custom_op(
        "longtake::product_gelu", compute, mutates_args=(), schema=schema
    )
    operator.register_fake(shape)
    return operator


def _has(module: Any, *names: str) -> bool:
    return all(hasattr(module, name) for name in names)
