"""Tiny ONNX models with the inputs and outputs of the real ones, to test loading them offline."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from longtake.perception.cards import EncoderCard

VOCABULARY = 64


def _save(path: Path, nodes, inputs, outputs, weights) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def vision(path: Path, card: EncoderCard) -> None:
    """Averages quarters of the picture and mixes them into ``card.dim`` numbers.

    The output is a sequence if the card pools.
    """
    random = np.random.default_rng(1)
    side, dim = card.pixels.side, card.dim
    quarter = side // 2
    weights = {"mix": random.normal(size=(12, dim)).astype(np.float32)}
    nodes = [
        helper.make_node(
            "AveragePool",
            ["pixel_values"],
            ["pooled"],
            kernel_shape=[quarter] * 2,
            strides=[quarter] * 2,
        ),
        helper.make_node("Flatten", ["pooled"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "mix"], ["vector"]),
    ]
    output, shape = card.image.outputs[0], ["batch", dim]
    if card.image.pool == "first":
        # the vector comes first, then a patch token that must not be used
        weights["axis"] = np.array([1], np.int64)
        weights["two"] = np.array([2.0], np.float32)
        nodes += [
            helper.make_node("Unsqueeze", ["vector", "axis"], ["first"]),
            helper.make_node("Pow", ["first", "two"], ["second"]),
            helper.make_node("Concat", ["first", "second"], [output], axis=1),
        ]
        shape = ["batch", 2, dim]
    else:
        nodes.append(helper.make_node("Identity", ["vector"], [output]))
    _save(
        path,
        nodes,
        [
            helper.make_tensor_value_info(
                "pixel_values", TensorProto.FLOAT, ["batch", 3, side, side]
            )
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        weights,
    )


def text(path: Path, card: EncoderCard) -> None:
    """Averages the tokens' vectors; padding counts, as in SigLIP, unless it is the end token."""
    random = np.random.default_rng(2)
    table = random.normal(size=(VOCABULARY, card.dim)).astype(np.float32)
    # padding must count, but not outweigh the words of a short text
    if card.text.pad is None:
        table[card.text.end % VOCABULARY] *= 0.0
    else:
        table[card.text.pad] *= 0.05
    weights = {"table": table, "size": np.array(VOCABULARY, np.int64)}
    nodes = [
        helper.make_node("Mod", ["input_ids", "size"], ["ids"]),
        helper.make_node("Gather", ["table", "ids"], ["tokens"]),
        helper.make_node("ReduceMean", ["tokens"], [card.text.outputs[0]], axes=[1], keepdims=0),
    ]
    _save(
        path,
        nodes,
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"])],
        [
            helper.make_tensor_value_info(
                card.text.outputs[0], TensorProto.FLOAT, ["batch", card.dim]
            )
        ],
        weights,
    )


def tokenizer(path: Path) -> None:
    words = ["[UNK]", "a", "red", "car", "dog", "runs", "the", "street", "Red", "Car"]
    made = Tokenizer(
        WordLevel({word: 10 + number for number, word in enumerate(words)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = Whitespace()
    # a setting in the file, which the card must override
    made.enable_padding(length=9, pad_id=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(str(path))


def folder_for(card: EncoderCard, folder: Path) -> Path:
    """A folder with a tiny model that has the card's inputs and outputs."""
    vision(folder / card.image.file, card)
    if card.text:
        text(folder / card.text.file, card)
        tokenizer(folder / card.text.tokenizer)
    return folder


def vision_folder(folder: Path) -> Path:
    """A vision model of SigLIP's shape in transformers' folder layout; needs the extra ``gpu``."""
    import torch
    from transformers import SiglipVisionConfig, SiglipVisionModel

    torch.manual_seed(0)
    config = SiglipVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=28,
        patch_size=14,
    )
    SiglipVisionModel(config).save_pretrained(folder)
    return _prepared(folder)


def clip_folder(folder: Path) -> Path:
    """A model of CLIP's shape with its tokenizer, likewise."""
    import torch
    from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
    size |= {"num_hidden_layers": 1}
    config = CLIPConfig(
        text_config=size
        | {"vocab_size": 30, "max_position_embeddings": 24, "eos_token_id": 13, "bos_token_id": 10},
        vision_config=size | {"image_size": 28, "patch_size": 14},
        projection_dim=16,
    )
    CLIPModel(config).save_pretrained(folder)
    tokenizer(folder / "tokenizer.json")
    read = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        model_max_length=24,
        pad_token="dog",
        eos_token="car",
    )
    read.save_pretrained(folder)
    return _prepared(folder)


def _prepared(folder: Path) -> Path:
    prepare = {
        "size": {"height": 28, "width": 28},
        "resample": 3,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(prepare))
    return folder
