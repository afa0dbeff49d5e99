"""A real cross-encoder of the smallest kind: it counts the words that question and text share."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from longtake.perception.minilm import bert_tokenizer
from longtake.perception.reranker import OnnxReranker

HIGHEST, LOWEST = 10.0, -10.0


def write_overlap(path: Path) -> Path:
    """Write a network that scores the share of the question's words that are in the text.

    10 if all are, −10 if none is. Tokens below 2,050 (letters, common words, marks) do not count.
    """
    node, made = helper.make_node, []

    def add(kind, *inputs, **attributes):
        name = f"n{len(made)}"
        made.append(node(kind, list(inputs), [name], **attributes))
        return name

    ids, types = "input_ids", "token_type_ids"
    counts = add("Greater", ids, "common")
    in_text = add("And", add("Equal", types, "one"), counts)
    in_question = add("And", add("Equal", types, "zero"), counts)
    same = add("Equal", add("Unsqueeze", ids, "axis1"), add("Unsqueeze", ids, "axis2"))
    # rows: tokens of the question; columns: tokens of the text
    both = add("And", same, add("Unsqueeze", in_text, "axis1"))
    held = add("ReduceMax", add("Cast", both, to=TensorProto.FLOAT), "axis2")
    asked = add("Cast", in_question, to=TensorProto.FLOAT)
    total = add("ReduceSum", asked, "axis1", keepdims=1)
    held = add("Squeeze", held, "axis2")
    found = add("ReduceSum", add("Mul", held, asked), "axis1", keepdims=1)
    share = add("Div", found, add("Max", total, "one_f"))
    made.append(node("Sub", [add("Mul", share, "span"), "half"], ["logits"]))
    weights = {
        "common": np.array(2050, np.int64),
        "one": np.array(1, np.int64),
        "zero": np.array(0, np.int64),
        "axis1": np.array([1], np.int64),
        "axis2": np.array([2], np.int64),
        "one_f": np.array(1, np.float32),
        "span": np.array(HIGHEST - LOWEST, np.float32),
        "half": np.array(HIGHEST, np.float32),
    }
    shape = ["pairs", "tokens"]
    graph = helper.make_graph(
        made,
        "overlap",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in (ids, types)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", 1])],
        [onnx.numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    return path


def overlap(folder: Path) -> OnnxReranker:
    """The reranker that counts shared words; two thirds of them are enough."""
    model = write_overlap(folder / "overlap.onnx")
    thresholds = {"question": -5.0, "account": -5.0, "support": 0.0, "share": 0.0}
    return OnnxReranker(model, bert_tokenizer(), key="overlap", thresholds=thresholds)
