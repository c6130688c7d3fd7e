from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from headwise.errors import ModelError
from headwise.interop.huggingface.encoders import read_sizes, write_sizes
from headwise.interop.huggingface.families.bert import BERT
from headwise.interop.huggingface.published import Config
from headwise.interop.huggingface.sentences import POOLING


def test_sizes_go_there_and_back() -> None:
    values = {
        "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 3, "intermediate_size": 80,
        "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-5,
    }  # fmt: skip
    read = read_sizes(Config(Path("config.json"), values))
    assert (read["model_dim"], read["activation"], read["norm_epsilon"]) == (64, "gelu-tanh", 1e-5)
    assert write_sizes(read) == values
    assert write_sizes({**read, "attention_dropout": None})["attention_probs_dropout_prob"] == 0.2


def test_a_head_for_masked_tokens_must_be_tied(tmp_path: Path) -> None:
    bare, masked, _ = BERT.layouts()
    config = Config(tmp_path / "config.json", {"tie_word_embeddings": False})
    assert bare.read_config(config)["pooling"] == "mean"
    with pytest.raises(ModelError, match="tie_word_embeddings = False is not supported"):
        masked.read_config(config)


def test_sentence_vectors_are_exported_with_the_files_of_sentence_transformers(tmp_path: Path) -> None:
    from fixtures_published import publish_bert

    from headwise.workflows.export import export_model
    from headwise.workflows.import_model import import_model

    publish_bert(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    modules = json.loads((tmp_path / "back/modules.json").read_text())
    assert [part["path"] for part in modules] == ["", "1_Pooling", "2_Normalize"]
    assert json.loads((tmp_path / "back" / POOLING).read_text()) == {
        "word_embedding_dimension": 32, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False,
    }  # fmt: skip
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert one.keys() == other.keys()


def test_a_tokenizer_without_a_special_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\na\nb\n")
    with pytest.raises(ModelError, match=r"vocab\.txt has no token \[SEP\]; it is not one of BERT"):
        BERT.read_beside(tmp_path, Config(tmp_path / "config.json", {"vocab_size": 5}))
