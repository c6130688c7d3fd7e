from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from headwise.bundle.assets import Assets
from headwise.errors import ModelError
from headwise.interop.huggingface.encoders import POOLING, read_sizes, sentence_files, write_sizes
from headwise.interop.huggingface.families.bert import BERT
from headwise.interop.huggingface.layout import Beside
from headwise.interop.huggingface.published import Config


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


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_files_of_sentence_transformers_say_what_was_read_from_them(tmp_path: Path, pooling: str) -> None:
    files = sentence_files({"max_length": 40, "model_dim": 32, "pooling": pooling}, Beside(Assets()))
    assert [part["type"].rpartition(".")[2] for part in files["modules.json"]] == [
        "Transformer", "Pooling", "Normalize",
    ]  # fmt: skip
    assert files["sentence_bert_config.json"]["max_seq_length"] == 40
    (tmp_path / POOLING).parent.mkdir()
    (tmp_path / POOLING).write_text(json.dumps(files[POOLING]))
    assert BERT.read_bare_config(Config(tmp_path / "config.json", {}))["pooling"] == pooling


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
    with pytest.raises(ModelError, match=r"the tokenizer has no token \[SEP\]; it is not one of Bert"):
        BERT.read_beside(tmp_path, Config(tmp_path / "config.json", {"vocab_size": 5}))
