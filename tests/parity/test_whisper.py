"""A published Whisper computes here what it computes in `transformers`, and travels there and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_whisper import LANGUAGES, columns, publish_whisper
from safetensors.torch import load_file, save_file

from headwise.bundle.weights import open_model
from headwise.errors import ModelError
from headwise.text.speech_tokens import SpeechTokens
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"activation_function": "gelu_new", "decoder_layers": 3},
    {"encoder_layers": 3, "decoder_layers": 1, "d_model": 48, "num_mel_bins": 128},
    {"multilingual": False},
]


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_random_models_have_the_same_logits_and_gradients(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs = publish_whisper(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, ours, _ = open_model(tmp_path / "ours")
    rows, end = theirs.config.vocab_size, theirs.config.eos_token_id
    features = torch.randn(3, 100, theirs.config.num_mel_bins)
    ids = torch.randint(0, rows, (3, 24))
    place = torch.tensor(columns(rows, end))
    expected = theirs(input_features=features.transpose(1, 2), decoder_input_ids=ids).logits
    found = ours(features, place[ids])
    torch.testing.assert_close(found[..., place], expected, atol=1e-4, rtol=1e-4)
    assert found[..., :2].max() < -9000  # padding and unknown, which Whisper does not have
    assert bundle.architecture["absent"] == 2
    for logits in (expected, found[..., place]):
        logits.log_softmax(-1)[..., 7].sum().backward()
    assert ours.stem.first.weight.grad is not None  # type: ignore[union-attr]
    torch.testing.assert_close(
        ours.stem.first.weight.grad,
        theirs.model.encoder.conv1.weight.grad,
        atol=1e-3,
        rtol=1e-3,  # type: ignore[union-attr]
    )


def test_special_tokens_keep_their_meaning(tmp_path: Path) -> None:
    theirs = publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    _, _, tokenizers = open_model(tmp_path / "ours")
    content = json.loads((tmp_path / "ours/preprocessing.json").read_text())
    tokens, names = SpeechTokens.model_validate(content["tokens"]), tokenizers.target.vocabulary
    assert (content["kind"], content["mels"]) == ("log-mel", 20)
    assert {name: names[number] for name, number in tokens.languages.items()} == {n: f"<|{n}|>" for n in LANGUAGES}
    assert {name: names[number] for name, number in tokens.tasks.items()} == {
        "transcribe": "<|transcribe|>", "translate": "<|translate|>"
    }  # fmt: skip
    assert names[tokens.no_timestamps or 0] == "<|notimestamps|>"
    assert names[tokens.no_speech or 0] == "<|nospeech|>"
    assert names[tokens.previous or 0] == "<|startofprev|>"
    assert tokens.timestamps == len(names) - 51
    assert 3 in tokens.suppress_first
    assert len(tokens.suppress) == len(theirs.generation_config.suppress_tokens)
    assert tokenizers.target.decode(tokenizers.target.encode(" again, éèü")) == " again, éèü"


def test_a_model_travels_to_the_hub_and_back(tmp_path: Path) -> None:
    from transformers import WhisperForConditionalGeneration

    theirs = publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "again", to="huggingface")
    again = WhisperForConditionalGeneration.from_pretrained(tmp_path / "again").eval()
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor, atol=2e-6, rtol=0)
    features = torch.randn(2, theirs.config.num_mel_bins, 100)
    for asked in ({"language": "de", "task": "translate"}, {"language": "en", "return_timestamps": True}):
        expected, found = (model.generate(features, max_new_tokens=12, **asked) for model in (theirs, again))
        assert found.tolist() == expected.tolist()
    import_model(tmp_path / "again", tmp_path / "third")
    first, third = (load_file(tmp_path / name / "model.safetensors") for name in ("ours", "third"))
    assert all(torch.equal(first[name], third[name]) for name in first)
    read = [json.loads((tmp_path / name / "preprocessing.json").read_text()) for name in ("ours", "third")]
    assert read[0] == read[1]


def test_files_of_the_slow_tokenizer_are_read_as_well(tmp_path: Path) -> None:
    publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "fast")
    parts = json.loads((tmp_path / "hub/tokenizer.json").read_text())
    (tmp_path / "hub/vocab.json").write_text(json.dumps(parts["model"]["vocab"]))
    merges = "\n".join(" ".join(merge) for merge in parts["model"]["merges"])
    (tmp_path / "hub/merges.txt").write_text(f"#version: 0.2\n{merges}\n")
    added = {token["content"]: token["id"] for token in parts["added_tokens"]}
    (tmp_path / "hub/added_tokens.json").write_text(json.dumps(added))
    (tmp_path / "hub/tokenizer.json").unlink()
    import_model(tmp_path / "hub", tmp_path / "slow")
    fast, slow = (json.loads((tmp_path / name / "preprocessing.json").read_text()) for name in ("fast", "slow"))
    assert fast == slow
    tokenizers = [open_model(tmp_path / name)[2].target for name in ("fast", "slow")]
    assert tokenizers[0].encode("the quick; 你好") == tokenizers[1].encode("the quick; 你好")


def test_what_is_not_whisper_is_refused(tmp_path: Path) -> None:
    publish_whisper(tmp_path / "hub")

    def refused(problem: str, change: Any) -> None:
        shutil.rmtree(tmp_path / "bad", ignore_errors=True)
        shutil.copytree(tmp_path / "hub", tmp_path / "bad")
        change(tmp_path / "bad")
        with pytest.raises(ModelError, match=problem):
            import_model(tmp_path / "bad", tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def configure(name: str, **values: Any) -> Any:
        def change(folder: Path) -> None:
            file = folder / name
            file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

        return change

    def other_positions(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        weights["model.encoder.embed_positions.weight"] = torch.zeros(50, 32)
        save_file(weights, folder / "model.safetensors")

    refused("hop_length = 200 is not supported", configure("preprocessor_config.json", hop_length=200))
    refused("scale_embedding = True", configure("config.json", scale_embedding=True))
    refused("decoder_ffn_dim = 64", configure("config.json", decoder_ffn_dim=64))
    refused("eos_token_id is not a token", configure("config.json", eos_token_id=10_000))
    refused("embed_positions.weight is not what", other_positions)
