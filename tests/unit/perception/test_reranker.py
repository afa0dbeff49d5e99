"""Rerankers read pairs; the built-in one is there once it was downloaded."""

import hashlib
import shutil

import numpy as np
import pytest
from support.rerankers import HIGHEST, LOWEST, overlap, write_overlap

from longtake.config import PerceptionSettings
from longtake.errors import ConfigError, ModelError
from longtake.llm.catalog import RERANKER, WEIGHTS
from longtake.perception import reranker
from longtake.perception.loader import PerceptionModels
from longtake.perception.protocols import Reranker


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return overlap(tmp_path_factory.mktemp("reranker"))


def test_a_text_scores_by_itself_whatever_else_is_in_the_batch(reader):
    texts = ["pears", "the harbour market sold pears", "", "rain " * 40, *map(str, range(20))]
    together = reader.scores("market pears", texts)
    alone = [reader.scores("market pears", [text])[0] for text in texts]
    assert isinstance(reader, Reranker)
    assert together.dtype == np.float32
    assert np.allclose(together, alone, atol=1e-5)
    assert together[1] == pytest.approx(HIGHEST)
    assert together[3] == pytest.approx(LOWEST)


def test_no_text_gives_no_score(reader):
    assert reader.scores("anything", []).shape == (0,)


def test_a_long_text_is_cut_and_the_question_is_not(reader):
    assert reader.scores("harbour", ["harbour " + "rain " * 2000])[0] == pytest.approx(HIGHEST)
    assert reader.scores("rain " * 300 + "harbour", ["harbour " * 2000])[0] > LOWEST


def test_the_catalog_and_the_loader_name_the_same_file():
    known = WEIGHTS[RERANKER]
    assert (known.file, known.sha256) == (reranker.FILE, reranker.SHA256)


def test_the_built_in_reranker_is_none_until_it_is_downloaded(tmp_path):
    assert PerceptionModels(PerceptionSettings(), tmp_path).reranker is None
    (tmp_path / "models").mkdir()
    write_overlap(tmp_path / "models" / reranker.FILE)
    found = PerceptionModels(PerceptionSettings(), tmp_path).reranker
    assert found is not None
    assert found.scores("harbour", ["harbour"])[0] == pytest.approx(HIGHEST)
    off = PerceptionModels(PerceptionSettings(reranker="none"), tmp_path)
    assert off.reranker is None


def test_another_reranker_comes_from_a_folder(tmp_path):
    from longtake.perception.minilm import bert_tokenizer

    (tmp_path / "onnx").mkdir()
    path = write_overlap(tmp_path / "onnx" / "model.onnx")
    bert_tokenizer().save(str(tmp_path / "tokenizer.json"))
    settings = PerceptionSettings(reranker="mine", reranker_folder=str(tmp_path))
    found = PerceptionModels(settings, tmp_path / "cache").reranker
    assert found is not None
    assert found.scores("harbour", ["rain", "harbour"])[1] == pytest.approx(HIGHEST)
    assert hashlib.sha256(path.read_bytes()).hexdigest()[:16] in found.key
    shutil.rmtree(tmp_path / "onnx")
    with pytest.raises(ModelError, match=r"holds no model.onnx"):
        _ = PerceptionModels(settings, tmp_path / "cache").reranker


def test_unknown_and_missing_rerankers_say_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match="unknown reranker 'bge'"):
        _ = PerceptionModels(PerceptionSettings(reranker="bge"), tmp_path).reranker
    settings = PerceptionSettings(reranker="bge-reranker-base")
    with pytest.raises(ModelError, match="longtake models pull bge-reranker-base"):
        _ = PerceptionModels(settings, tmp_path).reranker


def test_a_network_with_two_outputs_is_refused(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    from longtake.perception.minilm import bert_tokenizer

    cast = helper.make_node("Cast", ["input_ids"], ["logits"], to=TensorProto.FLOAT)
    graph = helper.make_graph(
        [cast],
        "wide",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "n"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "n"])],
    )
    opsets = [helper.make_opsetid("", 13)]
    (tmp_path / "m.onnx").write_bytes(
        helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    )
    assert onnx is not None
    wide = reranker.OnnxReranker(tmp_path / "m.onnx", bert_tokenizer(), key="wide")
    with pytest.raises(ModelError, match="a reranker has one"):
        wide.scores("a question", ["a text"])
