from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwise.config.families.bert import FAMILY
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.families.bert import BERT, LAYOUTS, read_config
from headwise.interop.huggingface.published import Config


def config(folder: Path = Path(), **values: object) -> Config:
    return Config(folder / "config.json", values)


def architecture(**changes: object) -> dict[str, object]:
    settings = FAMILY.resolve("bert-tiny", {"pooling": "first"}).model_dump()
    return {**settings, "vocab": 50, "classes": 3, **changes}


def test_an_empty_config_is_bert_base_and_comes_back() -> None:
    read = read_config(config())
    assert (read["layers"], read["model_dim"], read["norm_epsilon"]) == (12, 768, 1e-12)
    written = BERT.checked_config(architecture(), classifies=True)
    again = read_config(config(**written))
    assert {name: again[name] for name in ("model_dim", "num_heads", "layers", "ff_dim", "activation")} == {
        name: architecture()[name] for name in ("model_dim", "num_heads", "layers", "ff_dim", "activation")
    }


def test_each_class_is_a_task_and_the_encoder_alone_comes_first() -> None:
    tasks = {layout.class_name: layout.task for layout in LAYOUTS}
    assert next(iter(tasks.items())) == ("BertModel", "embed")
    assert (tasks["BertForMaskedLM"], tasks["BertForSequenceClassification"]) == ("fill", "classify")


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"norm": "pre"}, "norm = 'post'"), ({"pooling": "mean"}, "pooling = 'first'"), ({"pooler": False}, "a pooler")],
)
def test_what_the_hub_does_not_have_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        BERT.checked_config(architecture(**changes), classifies=True)


@pytest.mark.parametrize(
    "values", [{"position_embedding_type": "relative_key"}, {"is_decoder": True}, {"layer_norm_eps": 1}]
)
def test_configs_of_other_networks_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ModelError):
        read_config(config(**values))


def test_other_kinds_of_pooling_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ModelError, match="only the mean of all tokens or the first one"):
        BERT.read_bare_config(config(tmp_path))
    assert BERT.read_bare_config(config())["pooling"] == "mean"
