"""A published GPT-2 computes here what it computes in `transformers`, and travels there and back."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from fixtures_published import publish_gpt2
from safetensors.torch import load_file
from tokenizers import models, pre_tokenizers

import headwise
from headwise.bundle.weights import open_model
from headwise.decoding.beam import beam_search
from headwise.decoding.options import NO_REQUEST, Request, SearchOptions
from headwise.decoding.source_batches import Rule
from headwise.text.published import Origin
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"n_layer": 1, "n_head": 1, "n_embd": 32, "n_inner": 50},
    {"activation_function": "gelu", "layer_norm_epsilon": 1e-3},
    {"activation_function": "relu", "n_positions": 24},
    {"activation_function": "silu", "n_head": 8, "n_embd": 64, "n_layer": 3},
    {"tie_word_embeddings": False},
    {"vocab_size": 320},  # more vectors than tokens
]


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_random_models_have_the_same_logits_and_the_same_text(tmp_path: Path, changes: dict[str, Any]) -> None:
    from transformers import AutoTokenizer

    theirs = publish_gpt2(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, ours, _ = open_model(tmp_path / "ours")
    names = AutoTokenizer.from_pretrained(tmp_path / "hub")
    rows = theirs.config.vocab_size
    ids = torch.randint(0, rows, (3, 24))
    end, absent = theirs.config.eos_token_id, bundle.architecture["absent"]
    renumbered = torch.where(ids == end, 3, ids + absent + (ids < end).long())
    with torch.no_grad():
        expected, found = theirs(ids).logits, ours(renumbered)
    columns = [3 if n == end else n + absent + (n < end) for n in range(rows)]
    torch.testing.assert_close(found[..., columns], expected, atol=1e-4, rtol=0)
    assert found[..., :absent].max() < -9000
    generator = headwise.load(tmp_path / "ours")
    for prompt in ("the quick brown", "again;\nand", "éè 你 x"):
        assert [columns.index(n) for n in generator.tokenizer.encode(prompt)] == names.encode(prompt)
        inputs = names(prompt, return_tensors="pt")
        written = theirs.generate(**inputs, max_new_tokens=8, do_sample=False, pad_token_id=end)[0]
        said = written[inputs["input_ids"].size(1) :].tolist()
        (generation,) = generator.generate(prompt, max_tokens=8, temperature=0.0)
        assert [columns.index(n) for n in generation.ids] == [n for n in said if n != end]


@dataclass(frozen=True)
class Prompts:
    """What a search asks of a batch: begun texts of one length, each continued by at most 8 tokens."""

    prompt: torch.Tensor
    inputs: tuple[torch.Tensor, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __len__(self) -> int:
        return len(self.prompt)

    @property
    def requests(self) -> tuple[Request, ...]:
        return (NO_REQUEST,) * len(self)

    @property
    def limits(self) -> torch.Tensor:
        return torch.full((len(self),), 8)

    @property
    def guarded(self) -> torch.Tensor:
        return torch.zeros(len(self), dtype=torch.bool)


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_greedy_search_and_beams_are_those_of_transformers(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs = publish_gpt2(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, ours, _ = open_model(tmp_path / "ours")
    (origin,) = bundle.card["origin"]["tokenizers"]
    order = [-1] * bundle.architecture["absent"] + Origin(**origin).numbering().order
    ids, end = torch.randint(0, 290, (50, 6)), theirs.config.eos_token_id
    renumbered = torch.tensor([[order.index(number) for number in row] for row in ids.tolist()])
    for beam in (1, 4):
        written = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), num_beams=beam, max_new_tokens=8, do_sample=False,
            length_penalty=0.0, pad_token_id=end,
        )  # fmt: skip
        with torch.inference_mode():
            found = beam_search(ours, Prompts(renumbered), SearchOptions(beam=beam, length_penalty=0.0))
        said = [[number for number in row if number != end] for row in written[:, 6:].tolist()]
        assert [[order[number] for number in best.tokens] for (best,) in found] == said


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_an_imported_model_is_exported_as_it_was_published(tmp_path: Path, changes: dict[str, Any]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs = publish_gpt2(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "back").eval()
    ids = torch.randint(0, theirs.config.vocab_size, (2, 20))
    with torch.no_grad():
        torch.testing.assert_close(again(ids).logits, theirs(ids).logits, atol=1e-5, rtol=0)
    one, other = (AutoTokenizer.from_pretrained(tmp_path / name) for name in ("hub", "back"))
    for text in ("the quick\nbrown fox", "你好, éclair", "a <|endoftext|> b"):
        assert one.encode(text) == other.encode(text)
    import_model(tmp_path / "back", tmp_path / "again")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_model_of_our_own_travels_there_and_back(tmp_path: Path, character_gpt: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    export_model(character_gpt, tmp_path / "hub", to="huggingface")
    _, ours, pair = open_model(character_gpt)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "hub").eval()
    names = AutoTokenizer.from_pretrained(tmp_path / "hub")
    ids = torch.randint(4, pair.target.size, (2, 16))
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, ours(ids), atol=1e-5, rtol=0)
    for text in ("a bird sings", "Ünknown 你 signs", ""):
        assert names.encode(text, add_special_tokens=False) == pair.target.encode(text)
    import_model(tmp_path / "hub", tmp_path / "again")
    _, back, tokens = open_model(tmp_path / "again")
    assert tokens.target == pair.target
    before, after = ours.state_dict(), back.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.fixture
def character_gpt(tmp_path: Path) -> Path:
    from headwise.bundle.weights import save_model
    from headwise.config import schema
    from headwise.config.families.lm import FAMILY
    from headwise.models.lm import LanguageModel
    from headwise.text.tokenizer import Tokenizer, TokenizerPair

    torch.manual_seed(5)
    tokenizer = Tokenizer.train(["a bird sings", "two birds sing"], schema.Tokenizer(kind="char", size=290))
    sizes = {**FAMILY.presets["gpt2"], "model_dim": 32, "num_heads": 4, "layers": 2, "ff_dim": 64, "max_length": 32}
    model = LanguageModel(vocab=tokenizer.size, **sizes)
    save_model(tmp_path / "own", model, TokenizerPair.one(tokenizer), family="lm")
    return tmp_path / "own"


def test_a_real_trained_gpt2_writes_what_transformers_writes(tmp_path: Path, real_models: Path) -> None:
    from transformers import GPT2LMHeadModel

    folder = real_models / "gpt2-capp"
    if not folder.is_dir():
        pytest.skip("no gpt2-capp among the published models of HEADWISE_MODELS")
    hub = tmp_path / "hub"
    hub.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(folder / name, hub / name)
    # It brings a table of words instead of a tokenizer file: words stand between bars.
    tokens: dict[str, int] = json.loads((folder / "token_mappings.json").read_text(encoding="utf-8"))["token2id"]
    words = tokenizers.Tokenizer(models.WordLevel(tokens, unk_token="<PAD>"))
    words.pre_tokenizer = pre_tokenizers.Split("|", "removed")
    words.save(str(hub / "tokenizer.json"))
    import_model(hub, tmp_path / "ours")
    generator, theirs = headwise.load(tmp_path / "ours"), GPT2LMHeadModel.from_pretrained(hub).eval()
    groups = [[w for w in tokens if w.startswith(kind)] for kind in ("geometry", "holes", "external", "surface")]
    checked = 0
    for number in range(40):
        prompt = [group[number % len(group)] for group in groups] + ["<SOS>"]
        ids = [tokens[word] for word in prompt]
        assert [generator.tokenizer.vocabulary[n] for n in generator.tokenizer.encode("|".join(prompt))] == prompt
        written = theirs.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False)[0, len(ids) :].tolist()
        said = written[: written.index(tokens["<EOS>"])] if tokens["<EOS>"] in written else written
        (generation,) = generator.generate("|".join(prompt), max_tokens=24, temperature=0.0)
        assert [tokens[generator.tokenizer.vocabulary[n]] for n in generation.ids] == said
        checked += len(said)
    assert checked > 100
